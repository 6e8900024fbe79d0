package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dumptriage/report"
)

func init() {
	eat["mapped.dmp"] = func(dump string) { // reads all of a large file
		for i := 0; i < len(mapLarge(dump)); i += 4096 {
			sink += eaten[i]
		}
	}
	eat["outside.dmp"] = func(string) { // memory that Go's allocator does not know
		eaten, _ = syscall.Mmap(-1, 0, hungryBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		for i := 0; i < len(eaten); i += 4096 {
			eaten[i] = 1
		}
	}
}

var sink byte

// mapLarge maps a file beside the dump.
func mapLarge(dump string) []byte {
	if eaten == nil {
		f, err := os.OpenFile(filepath.Join(filepath.Dir(dump), "large"), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		if err := f.Truncate(hungryBytes); err != nil {
			panic(err)
		}
		if eaten, err = syscall.Mmap(int(f.Fd()), 0, hungryBytes, syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
			panic(err)
		}
	}
	return eaten
}

// TestMemoryOfTheSystem: what the process has beside Go's allocator counts, and the pages
// of mapped files do not, as a container's limit ends no process for them.
func TestMemoryOfTheSystem(t *testing.T) {
	if heldBySystem() == 0 {
		t.Skip("the system does not tell what a process holds")
	}
	got := feed(t, "mapped.dmp", "outside.dmp", "after.dmp")
	for name, status := range map[string]string{"mapped.dmp": report.StatusOK, "outside.dmp": report.StatusError, "after.dmp": report.StatusOK} {
		if r := got[name]; r.Status != status || (status == report.StatusError) != strings.Contains(string(r.Line), "bytes of memory") {
			t.Errorf("%s: %s %.300s", name, r.Status, r.Line)
		}
	}
}

// The lines are those of proc(5).
func TestOwnMemory(t *testing.T) {
	for status, want := range map[string]uint64{
		"Name:\tx\nVmRSS:\t   18312 kB\nRssAnon:\t    4276 kB\nRssFile:\t   14036 kB\nRssShmem:\t       8 kB\nVmSwap:\t      12 kB\n": 4288 << 10,
		"VmRSS:\t   18312 kB\n":                          0,
		"RssAnon:\t    many kB\n":                        0,
		"RssAnon:\t 99999999999999999999999 kB\nRssAnon": 0,
	} {
		if got := ownMemory([]byte(status)); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
}
