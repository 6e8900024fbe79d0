package signature_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/signature"
	"dumptriage/triage/verdict"
)

var update = flag.Bool("update", false, "write testdata/bkt1.golden; only for another algorithm, or dumps that are new")

// goldenDumps are the dumps whose signatures are pinned: of the project's
// fixtures, and of real ones where they are at hand. images are folders beside.
var goldenDumps = []struct{ dump, images string }{
	{"fixtures/crash/crashdemo.dmp", "fixtures/crash/images"},
	{"fixtures/crash/legacy-x86.dmp", "fixtures/crash/images"},
	{"fixtures/readline/ConsoleApp1.dmp", "fixtures/readline/images"},
	{"fixtures/readline/ConsoleApp1.Kernel.dmp", "fixtures/readline/images"},
	{"fixtures/bugcheck/faulty.dmp", "fixtures/bugcheck/images"},
	{"fixtures/jit/jithost.dmp", "fixtures/jit/images"},
	{"fixtures/crashes/thrown.dmp", "fixtures/crashes/images"},
	{"fixtures/crashes/abort.dmp", "fixtures/crashes/images"},
	{"fixtures/crashes/recursion.dmp", "fixtures/crashes/images"},
	{"fixtures/crashes/freed.dmp", "fixtures/crashes/images"},
	{"fixtures/locks/lockdemo.dmp", "fixtures/locks/images"},
	{"fixtures/locks/lockdemo-small.dmp", "fixtures/locks/images"},
	{"corpus/user/A01-unity-mono-jit-x64/crash.dmp", ""},
	{"corpus/user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab", "corpus/user/A02-wow64-full-memory-debug-build"},
	{"corpus/user/A04-lldb-fizzbuzz-x86/fizzbuzz_no_heap.dmp", ""},
	{"corpus/user/A05-lldb-sigsegv-x64-pdb/sigsegv.dmp", "corpus/user/A05-lldb-sigsegv-x64-pdb"},
	{"corpus/user/A08-fastfail-x64/tiny-exe-fastfail.dmp", ""},
	{"corpus/user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", ""},
	{"corpus/kernel/k01-triage-x64-16cpu/triage_x64.dmp", ""},
	{"corpus/kernel/k02-triage-x64-user-seam/083125-14875-01.dmp", ""},
	{"corpus/wine/msvc/winpty-agent.bp.dmp", "corpus/wine"},
	{"corpus/wine/mini/mini-x64-O2.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/dbg_av.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/inproc_av.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/dbg_div.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/inproc_div.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/dbg_cxx.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/dbg_heap.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/dbg_so.dmp.zst", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/hang_jit.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/hang_deadlock.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/hang_sleep.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/hang_threads.dmp", "corpus/wine"},
	{"corpus/wine/t64-clang-O1/inproc_abort.dmp", "corpus/wine"},
	{"corpus/user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave.dmp", ""},
	{"corpus/user/A13-notepad-hang-x64-x86/notepad-small-64bit.dmp", ""},
}

// TestGolden keeps the promise that bkt1 answers for ever what it answers today.
// The file was looked over by hand: each text names what its dump is about. A line
// changes only with the names that its frames have, when a function gets its own.
func TestGolden(t *testing.T) {
	const file = "testdata/bkt1.golden"
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		want[name] = rest
	}
	absent := 0
	for _, g := range goldenDumps {
		s, ok := signatureOf(t, g.dump, g.images)
		if !ok {
			absent++
			continue
		}
		got := fmt.Sprintf("%s\t%s\t%s", s.ID, s.ExactID, s.Text)
		if got != want[g.dump] && !*update {
			t.Errorf("%s:\ngot  %s\nwant %s", g.dump, got, want[g.dump])
		}
		want[g.dump] = got
	}
	if absent > 0 {
		t.Logf("%d of %d dumps are not at hand", absent, len(goldenDumps))
	}
	if *update {
		var b strings.Builder
		for _, g := range goldenDumps {
			fmt.Fprintf(&b, "%s\t%s\n", g.dump, want[g.dump])
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// One fault, written by the program itself and by a debugger from outside; and in
// one program the frames of two different faults.
func TestOneFaultTwoWriters(t *testing.T) {
	const dir = "corpus/wine/t64-clang-O1/"
	for _, fault := range []string{"av", "div", "int3"} {
		inside, ok := signatureOf(t, dir+"inproc_"+fault+".dmp", "corpus/wine")
		outside, ok2 := signatureOf(t, dir+"dbg_"+fault+".dmp", "corpus/wine")
		if !ok || !ok2 {
			t.Skip("not in a collection of real dumps beside the project")
		}
		if inside.ID != outside.ID {
			t.Errorf("%s: %s and %s", fault, inside.Text, outside.Text)
		}
	}
}

func signatureOf(t *testing.T, name, images string) (*signature.Signature, bool) {
	t.Helper()
	path, ok := find(name)
	if !ok {
		return nil, false
	}
	d, err := triage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var opt triage.Options
	if images != "" {
		dir, _ := find(images)
		opt.Symbols = symbols.DirPath(dir)
	}
	user, kernel := d, (*triage.Dump)(nil)
	if d.Kernel() {
		user, kernel = nil, d
	}
	inc, err := triage.Analyze(user, kernel, "given", opt)
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	s := verdict.Of(inc, verdict.Options{}).Signature
	if s == nil {
		t.Fatalf("%s has no signature", name)
	}
	return s, true
}

// find returns where a fixture or a dump of the collection is.
func find(name string) (string, bool) {
	if inner, ok := strings.CutPrefix(name, "corpus/"); ok {
		return corpus.Find(inner)
	}
	path := filepath.Join("..", "..", filepath.FromSlash(name))
	_, err := os.Stat(path)
	return path, err == nil
}

// The stack that is hashed has no frame by scan: the dumps above have many.
func TestNoGuessInAnyStack(t *testing.T) {
	guesses := 0
	for _, g := range goldenDumps {
		s, ok := signatureOf(t, g.dump, g.images)
		if !ok {
			continue
		}
		for _, st := range s.Steps {
			if st.Fate == signature.FateScan {
				guesses++
			}
		}
		frames := slices.DeleteFunc(slices.Clone(s.Stack), func(name string) bool { return name == "waits for" })
		if len(frames) > len(s.Steps) || slices.Contains(s.Stack, "") {
			t.Errorf("%s: stack %q", g.dump, s.Stack)
		}
	}
	if guesses == 0 {
		t.Log("no dump with guesses at hand")
	}
}
