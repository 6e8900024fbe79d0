package metadata

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/minidump"
)

// oracleFrame is a frame that the dumped process itself printed: "md .. mt .. tok 6000008
// native+0 Name [module]".
var oracleFrame = regexp.MustCompile(`tok ([0-9a-f]+) native\S+ (\S+) \[(.*)\.dll\]$`)

// typeVariables are what reflection shows behind a generic type's name: "Box`1[T]".
var typeVariables = regexp.MustCompile(`\[[^\]]*\]`)

// The metadata that a real dump of .NET 10 holds in memory names each token as the
// process named it.
func TestCorpus(t *testing.T) {
	f, err := input.Open(corpus.Need(t, "managed/net10-readline-x64/app.dmp.zst"), input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := minidump.Open(f, f.Size(), "app.dmp")
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := d.Memory64List()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*Metadata{}
	for _, r := range ranges {
		findRoots(d.Memory(), r, found)
	}
	oracle, err := os.Open(corpus.Need(t, "managed/net10-readline-x64/oracle.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer oracle.Close()
	checked := 0
	for lines := bufio.NewScanner(oracle); lines.Scan(); {
		frame := oracleFrame.FindStringSubmatch(lines.Text())
		if frame == nil {
			continue
		}
		m := found[frame[3]]
		if m == nil {
			t.Fatalf("%s is not among the %d assemblies found", frame[3], len(found))
		}
		token, err := strconv.ParseUint(frame[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Method(uint32(token))
		if want := typeVariables.ReplaceAllString(frame[2], ""); got.FullName() != want || err != nil || got.Signature != nil {
			t.Errorf("%#x: %s, %v, %v; want %s", token, got.FullName(), err, got.Signature, want)
		}
		checked++
	}
	if checked < 40 {
		t.Errorf("only %d frames were compared", checked)
	}
	t.Logf("%d frames, %d assemblies", checked, len(found))
}

// findRoots opens all metadata of a range of memory by its signature.
func findRoots(mem dump.Memory, r dump.Range, found map[string]*Metadata) {
	b := make([]byte, r.Size)
	n, _ := mem.ReadAt(b, r.VA)
	for at := 0; ; at++ {
		i := bytes.Index(b[at:n], []byte("BSJB"))
		if i < 0 {
			return
		}
		at += i
		size := int64(n - at)
		m, err := Open(Memory(mem, r.VA+uint64(at), size), size)
		if err != nil {
			continue
		}
		if a, err := m.Assembly(); err == nil && found[a.Name] == nil {
			found[a.Name] = m
		}
	}
}
