package managed_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/managed"
	"dumptriage/minidump"
	"dumptriage/pdata"
)

const corpusDump = "managed/net10-readline-x64"

// openCorpus opens the runtime of the real dump.
func openCorpus(t *testing.T) (*managed.Runtime, string) {
	t.Helper()
	dir := corpus.Need(t, corpusDump)
	in, err := input.Open(filepath.Join(dir, "app.dmp.zst"), input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	f, err := minidump.Open(in, in.Size(), "app.dmp")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Modules() {
		im, err := pdata.OpenMapped(f.Memory(), m.Base, m.Name())
		if err != nil {
			continue
		}
		host := managed.Image{Name: m.Name(), Base: m.Base, PE: im}
		if !managed.HasDescriptor(&host) {
			continue
		}
		r, err := managed.Open(managed.Options{Memory: f.Memory(), Arch: f.System().Arch, Host: host})
		if err != nil {
			t.Fatal(err)
		}
		return r, dir
	}
	t.Fatal("no module has a descriptor")
	return nil, ""
}

// The walk is that of another program; see its first line of a frame:
// "  sp ip module!Type.Method [token]  [jit +offset]".
var walkLine = regexp.MustCompile(`^  [0-9a-f]{16} ([0-9a-f]{16}) (\S+)!(.+) \[([0-9a-f]{8})\]  \[jit \+(0x[0-9a-f]+)\]$`)

// args are the generic arguments that the other program shows.
var args = regexp.MustCompile(`\[[^\]]*\]|<System\.[^>]*>`)

func TestCorpusNames(t *testing.T) {
	r, dir := openCorpus(t)
	f, err := os.Open(filepath.Join(dir, "walk.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		g := walkLine.FindStringSubmatch(lines.Text())
		if g == nil {
			continue
		}
		n++
		ip, _ := strconv.ParseUint(g[1], 16, 64)
		token, _ := strconv.ParseUint(g[4], 16, 32)
		offset, _ := strconv.ParseUint(g[5], 0, 64)
		m, err := r.Method(ip - 1)
		if err != nil || m == nil {
			t.Fatalf("%#x: %v, %v", ip, m, err)
		}
		if name := args.ReplaceAllString(g[3], ""); m.FullName() != name || m.Module != g[2] || m.Token != uint32(token) || ip-m.Start != offset {
			t.Errorf("%#x: %s!%s [%08x] +%#x, want %s!%s [%08x] +%#x", ip, m.Module, m.FullName(), m.Token, ip-m.Start, g[2], name, token, offset)
		}
		if decl := strings.NewReplacer("<System", "[System", "Canon>", "Canon]", "Int32>", "Int32]").Replace(g[3]); !strings.HasPrefix(m.Declaration(), decl) {
			t.Errorf("%#x: declaration %s, want %s", ip, m.Declaration(), decl)
		}
	}
	if n < 50 {
		t.Errorf("%d managed frames in the walk", n)
	}
}

// The process printed its threads and its exception itself.
func TestCorpusThreads(t *testing.T) {
	r, _ := openCorpus(t)
	all, err := r.Threads()
	if err != nil {
		t.Fatal(err)
	}
	names := map[uint32]string{}
	var thrown *managed.Exception
	for i := range all {
		names[all[i].OSID] = all[i].Name
		if all[i].OSID == 296 {
			thrown = all[i].Exception
		}
	}
	for id, name := range map[uint32]string{288: "lock-waiter", 292: "sleeper", 296: "in-catch", 36: "", 300: ".NET TP Worker"} {
		if names[id] != name {
			t.Errorf("thread %d is called %q, want %q", id, names[id], name)
		}
	}
	if thrown == nil || thrown.Type != "System.InvalidOperationException" || thrown.Message != "boom 42" || thrown.HResult != 0x80131509 {
		t.Fatalf("exception %+v", thrown)
	}
	if want := []string{"System.SystemException", "System.Exception", "System.Object"}; !slices.Equal(thrown.Bases, want) {
		t.Errorf("derived from %q, want %q", thrown.Bases, want)
	}
	var trace []string
	for _, f := range thrown.Stack {
		trace = append(trace, f.Method.Declaration())
	}
	const fail = "ConsoleApp1.Program.Fail(Int32)"
	if want := []string{fail, fail, fail, fail, "ConsoleApp1.Program.Thrower()"}; !slices.Equal(trace, want) {
		t.Errorf("stack trace %q, want %q", trace, want)
	}
}
