package scrub_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/scrub"
	"dumptriage/triage"
)

func open(t testing.TB, b []byte, name string) *triage.Dump {
	t.Helper()
	f, err := input.New(bytes.NewReader(b), int64(len(b)), name, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func openFile(t testing.TB, path string) *triage.Dump {
	t.Helper()
	d, err := triage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// stacks lists every frame of a dump, by a walk of the test's own.
func stacks(t testing.TB, d *triage.Dump, opt triage.Options) []string {
	t.Helper()
	inc, err := triage.Analyze(d, nil, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	var out []string
	for i := range inc.Threads {
		th := &inc.Threads[i]
		for k, h := range []*triage.Half{th.User, th.Handler, th.Wow64} {
			if h == nil {
				continue
			}
			for _, f := range h.Frames {
				out = append(out, fmt.Sprintf("%d.%d %#x %#x %v %v %s+%#x", th.ID, k, f.IP, f.SP, f.Method, f.Trust, f.Name.Function, f.Name.Offset))
			}
			out = append(out, fmt.Sprintf("%d.%d %s", th.ID, k, h.Stop.Reason))
		}
	}
	return out
}

// check scrubs a dump and walks what came of it.
func check(t *testing.T, d *triage.Dump, opt triage.Options) *scrub.Result {
	t.Helper()
	res, err := scrub.Dump(d, scrub.Options{Triage: opt, Comment: "scrubbed"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range res.Differences {
		t.Errorf("differs: %v", x)
	}
	beside := opt
	beside.Symbols, beside.NotBeside = append(triage.Beside(d), opt.Symbols...), true
	small := open(t, res.Bytes, "small.dmp")
	if want, got := stacks(t, d, beside), stacks(t, small, beside); !slices.Equal(want, got) {
		t.Errorf("frames were\n%s\nare\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	if e := small.Errors(); len(e) > 0 {
		t.Errorf("the new dump is damaged: %v", e[0])
	}
	sameFacts(t, d, small)
	return res
}

// sameFacts compares what a dump says besides memory.
func sameFacts(t *testing.T, old, now *triage.Dump) {
	t.Helper()
	if o, n := old.System(), now.System(); o.Arch != n.Arch || o.Build != n.Build || o.CPUCount&0xff != n.CPUCount {
		t.Errorf("system was %+v, is %+v", o, n)
	}
	if o, n := old.Process(), now.Process(); o.PID != n.PID || o.Name != n.Name || n.CommandLine != "" {
		t.Errorf("process was %+v, is %+v", o, n)
	}
	if o, n := old.Captured(), now.Captured(); !o.Equal(n) {
		t.Errorf("written %v, now %v", o, n)
	}
	for i, m := range old.Modules() {
		n := now.Modules()[i]
		if m.Base != n.Base || m.Size != n.Size || m.Name() != n.Path || m.Version != n.Version || m.TimeDateStamp != n.TimeDateStamp || m.CodeView.DebugID() != n.CodeView.DebugID() {
			t.Errorf("module was %+v, is %+v", m, n)
		}
	}
	for i, th := range old.Threads() {
		n := &now.Threads()[i]
		if th.ID != n.ID || th.TEB != n.TEB || th.StackBase != n.StackBase || th.StackLimit != n.StackLimit || n.Name != "" {
			t.Errorf("thread was %+v, is %+v", th, n)
		}
		sameRegisters(t, th.ID, &th.Context, &n.Context)
	}
	if o, n := old.Exception(), now.Exception(); (o == nil) != (n == nil) {
		t.Error("the exception came or went")
	} else if o != nil {
		if o.Code != n.Code || o.Address != n.Address || o.ThreadID != n.ThreadID || !slices.Equal(o.Parameters, n.Parameters) {
			t.Errorf("exception was %+v, is %+v", o, n)
		}
		sameRegisters(t, o.ThreadID, &o.Context, &n.Context)
	}
}

func sameRegisters(t *testing.T, thread uint32, old, now *dump.Registers) {
	t.Helper()
	for reg := range dump.Reg(dump.NumRegs) {
		if old.Arch != dump.ARM64 && reg == dump.RegSSP {
			continue // lies behind the CONTEXT, and no stack is unwound by it
		}
		ov, ok := old.Get(reg)
		nv, nok := now.Get(reg)
		if nv == 1 && old.Arch == dump.AMD64 && ov>>47 != 0 && ov>>56 != 0xff {
			continue // no address
		}
		if ok != nok || ov != nv {
			t.Errorf("thread %d: %s was %#x (%v), is %#x (%v)", thread, old.Arch.RegName(reg), ov, ok, nv, nok)
		}
	}
}

func TestFixtures(t *testing.T) {
	root := filepath.Join("..", "fixtures")
	for _, tc := range []struct{ dump, images string }{
		{"readline/ConsoleApp1.dmp", "readline/images"},
		{"crash/crashdemo.dmp", "crash/images"},
		{"crash/legacy-x86.dmp", "crash/images"},
		{"crash/frameless-x86.dmp", ""},
		{"crashes/thrown.dmp", "crashes/images"},
		{"crashes/recursion.dmp", "crashes/images"},
		{"crashes/freed.dmp", ""},
		{"jit/jithost.dmp", "jit/images"},
		{"arm64/ecdemo.dmp", ""},
		{"locks/lockdemo.dmp", "locks/images"},
		{"locks/lockdemo-small.dmp", ""},
	} {
		t.Run(strings.ReplaceAll(tc.dump, "/", "_"), func(t *testing.T) {
			opt := triage.Options{}
			if tc.images != "" {
				opt.Images = []string{filepath.Join(root, filepath.FromSlash(tc.images))}
			}
			res := check(t, openFile(t, filepath.Join(root, filepath.FromSlash(tc.dump))), opt)
			if res.Frames == 0 {
				t.Error("no frames: the test shows nothing")
			}
		})
	}
}

// forms are how a text lies in memory.
func forms(s string) [][]byte {
	var wide []byte
	for _, u := range utf16.Encode([]rune(s)) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	return [][]byte{[]byte(s), wide}
}

// TestNoSecrets scrubs dumps in which every text is a marker.
func TestNoSecrets(t *testing.T) {
	secrets := map[string]string{}
	dumps := fixtures.PrivateDumps(func(what string) string {
		if secrets[what] == "" {
			secrets[what] = fmt.Sprintf("qz%02dhush", len(secrets))
		}
		return secrets[what]
	})
	images := filepath.Join("..", "fixtures", "crashes", "images")
	for name, b := range dumps {
		for _, opt := range []triage.Options{{}, {Images: []string{images}}} {
			d := open(t, b, name+".dmp")
			res := check(t, d, opt)
			for what, secret := range secrets {
				for _, form := range forms(secret) {
					if bytes.Contains(res.Bytes, form) {
						t.Errorf("%s: the new dump holds the %s", name, what)
					}
				}
			}
			if what := "command line"; !bytes.Contains(b, forms(secrets[what])[1]) {
				t.Errorf("%s: the old dump does not hold the %s: the test shows nothing", name, what)
			}
		}
	}
}

func TestKeepNames(t *testing.T) {
	dumps := fixtures.PrivateDumps(func(what string) string { return "the " + what })
	d := open(t, dumps["thrown"], "thrown.dmp")
	res, err := scrub.Dump(d, scrub.Options{KeepNames: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := open(t, res.Bytes, "small.dmp").Threads()[0].Name; got != "the thread name" {
		t.Errorf("the thread is called %q", got)
	}
}

// TestStackWords puts marks at random between what stacks need, where a scan for
// return addresses reads them, and looks for them in the new dump.
func TestStackWords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for round := range 30 {
		b := slices.Clone(fixtures.PrivateDumps(func(string) string { return "x" })["wild_read"])
		plain := open(t, b, "plain.dmp")
		needed := map[uint64]bool{}
		inc, err := triage.Analyze(plain, nil, "", triage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range inc.Threads[0].User.Frames {
			needed[f.IP] = true
		}
		th := plain.Threads()[0]
		mem := plain.Memory().(*dump.FileMemory)
		var marks [][]byte
		sp, _ := th.Context.SP()
		for va := sp; va+8 <= th.StackBase; va += 8 {
			v, err := dump.ReadUint64(mem, va)
			if err != nil {
				break
			}
			if needed[v] || v >= th.StackLimit && v <= th.StackBase || rnd.IntN(3) > 0 {
				continue
			}
			r, _ := mem.Find(va)
			mark := fmt.Appendf(nil, "%08x", rnd.Uint32())
			copy(b[r.Off+int64(va-r.VA):], mark)
			marks = append(marks, mark)
		}
		inc.Close()
		if len(marks) < 5 {
			t.Fatalf("only %d marks: the test shows little", len(marks))
		}
		opt := triage.Options{}
		if round%2 == 1 {
			opt.Images = []string{filepath.Join("..", "fixtures", "crashes", "images")}
		}
		res := check(t, open(t, b, "marked.dmp"), opt)
		for _, m := range marks {
			if bytes.Contains(res.Bytes, m) {
				t.Fatalf("round %d: the new dump holds the mark %s of %d; loosened: %v", round, m, len(marks), res.Loosened)
			}
		}
	}
}

// TestAgain: there is nothing left to take out of a scrubbed dump.
func TestAgain(t *testing.T) {
	opt := triage.Options{Images: []string{filepath.Join("..", "fixtures", "crash", "images")}}
	first := check(t, openFile(t, filepath.Join("..", "fixtures", "crash", "crashdemo.dmp")), opt)
	second := check(t, open(t, first.Bytes, "crashdemo.dmp"), opt)
	if len(second.Bytes) > len(first.Bytes) {
		t.Errorf("%d bytes became %d", len(first.Bytes), len(second.Bytes))
	}
}

// TestCorpus scrubs real dumps and writes the figures of docs/privacy.md to the log.
func TestCorpus(t *testing.T) {
	for _, tc := range []struct {
		name string
		most int // bytes of the new dump
	}{
		{"user/A01-unity-mono-jit-x64/crash.dmp", 310_000},
		{"user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab.dmp", 190_000},
		{"user/A03-breakpad-minidump2-x86/minidump2.dmp", 7_000},
		{"user/A04-lldb-fizzbuzz-x86/fizzbuzz_no_heap.dmp", 4_000},
		{"user/A05-lldb-sigsegv-x64-pdb/sigsegv.dmp", 6_000},
		{"user/A07-thread-names-x86/thread_name_list.dmp", 10_000},
		{"user/A08-fastfail-x64/tiny-exe-fastfail.dmp", 14_000},
		{"user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave-x86.dmp", 7_500},
		{"user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave.dmp", 11_500},
		{"user/A10-sentry-native-x64/minidump.dmp", 33_000},
		{"user/A11-electron-v8-x64/windows.dmp", 78_000},
		{"user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", 22_000},
		{"user/A13-notepad-hang-x64-x86/notepad-small-32bit.dmp", 7_000},
		{"wine/t64-clang-O1/hang_jit.dmp", 5_000},
		{"wine/t64-clang-O1/hang_readfile.full.dmp.zst", 96_000},
		{"managed/net10-readline-x64/app.dmp.zst", 460_000}, // with what the names of .NET frames are read from
	} {
		t.Run(strings.ReplaceAll(tc.name, "/", "_"), func(t *testing.T) {
			path := corpus.Need(t, tc.name)
			d := openFile(t, path)
			res := check(t, d, triage.Options{})
			if len(res.Bytes) > tc.most {
				t.Errorf("%d bytes, at most %d were expected", len(res.Bytes), tc.most)
			}
			t.Logf("%d -> %d bytes, %d threads, %d frames, loosened %v", d.File.Size(), len(res.Bytes), res.Threads, res.Frames, res.Loosened)
		})
	}
}

// What a .NET process says in exceptions and strings stays out, though the names of its
// methods are read from memory beside it.
func TestManagedTexts(t *testing.T) {
	d := openFile(t, corpus.Need(t, "managed/net10-readline-x64/app.dmp.zst"))
	res := check(t, d, triage.Options{})
	for _, secret := range []string{"boom 42", "lock-waiter", "MyDynamic", "never", // of its literals and objects
		`lab\sample`, `console\app10`} { // of the paths of its assemblies
		var wide []byte
		for _, r := range secret {
			wide = append(wide, byte(r), 0)
		}
		if bytes.Contains(res.Bytes, wide) {
			t.Errorf("the new dump holds %q", secret)
		}
	}
	for _, secret := range []string{`app10`, `artifacts\obj`} { // of the PDB's path in the image
		if bytes.Contains(res.Bytes, []byte(secret)) {
			t.Errorf("the new dump holds %q", secret)
		}
	}
}

// FuzzDump: whatever the dump, scrubbing it ends in a dump or an error.
func FuzzDump(f *testing.F) {
	for _, name := range []string{"crash/frameless-x86.dmp", "arm64/ecdemo.dmp", "crashes/freed.dmp"} {
		b, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := input.New(bytes.NewReader(b), int64(len(b)), "x.dmp", input.Options{})
		if err != nil {
			return
		}
		d, err := triage.OpenInput(in)
		if err != nil {
			in.Close()
			return
		}
		defer d.Close()
		res, err := scrub.Dump(d, scrub.Options{})
		if err != nil {
			return
		}
		// What a dump holds bounds what is made of it.
		if limit := 64*len(b) + 1<<20; len(res.Bytes) > limit {
			t.Errorf("%d bytes became %d", len(b), len(res.Bytes))
		}
	})
}
