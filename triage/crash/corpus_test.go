package crash_test

import (
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/crash"
)

// The programs of these dumps were made to crash in these ways, in functions of
// these names; their texts of ground truth say so.
func TestMadeCrashes(t *testing.T) {
	dir := corpus.Need(t, "wine/t64-clang-O1")
	images := corpus.Need(t, "wine")
	for _, c := range []struct {
		file   string
		class  crash.Class
		access crash.Access
		blame  string
	}{
		{"dbg_av.dmp", crash.NullPointer, crash.Write, "end_av"},
		{"dbg_nullcall.dmp", crash.NullPointer, crash.Execute, "end_nullcall"},
		{"dbg_div.dmp", crash.DivideByZero, "", "end_div"},
		{"dbg_int3.dmp", crash.Breakpoint, "", "end_int3"},
		{"dbg_cxx.dmp", crash.CxxException, "", "end_cxx"},
		{"dbg_so.dmp.zst", crash.StackOverflow, crash.Write, "recurse"},
		{"dbg_fastfail.dmp", crash.FailFast, "", "end_fastfail"},
		{"dbg_heap.dmp", crash.HeapCorruption, crash.Read, "end_heap"},
		{"inproc_av.dmp", crash.NullPointer, crash.Write, "end_av"},
		{"inproc_div.dmp", crash.DivideByZero, "", "end_div"},
		{"inproc_int3.dmp", crash.Breakpoint, "", "end_int3"},
		{"inproc_raise.dmp", crash.RaisedException, "", "end_raise"},
		{"inproc_ud2.dmp", crash.IllegalInstruction, "", "end_ud2"},
		{"inproc_abort.dmp", crash.Abort, "", "end_abort"},
	} {
		t.Run(c.file, func(t *testing.T) {
			v := judgeFile(t, dir+"/"+c.file, images, dir)
			if v == nil || v.Class != c.class || v.Access != c.access && c.class != crash.StackOverflow {
				t.Fatalf("%+v, want %s", v, c.class)
			}
			if v.Blame == nil || v.Blame.Frame.Name.Function != c.blame {
				t.Errorf("blames %+v, want %s", v.Blame, c.blame)
			}
			if len(v.Inconsistencies) > 0 || len(v.BitFlips) > 0 {
				t.Errorf("finds %v, %v", v.Inconsistencies, v.BitFlips)
			}
		})
	}
}

// The same without the images of the system: the way from where it was raised is
// found by scanning, over the remains of calls that are over.
func TestMadeCrashesWithoutImages(t *testing.T) {
	dir := corpus.Need(t, "wine/t64-clang-O1")
	for file, blame := range map[string]string{"dbg_cxx.dmp": "end_cxx", "dbg_heap.dmp": "end_heap", "inproc_raise.dmp": "end_raise"} {
		v := judgeFile(t, dir+"/"+file, "", "")
		if v.Blame == nil || v.Blame.Frame.Name.Function != blame || v.Blame.Confidence != "low" {
			t.Errorf("%s: blames %+v, want %s", file, v.Blame, blame)
		}
	}
}

// What other tools and the makers of these dumps say of them.
func TestForeignCrashes(t *testing.T) {
	for _, c := range []struct {
		file   string
		class  crash.Class
		access crash.Access
		module string // blamed
	}{
		{"user/A01-unity-mono-jit-x64/crash.dmp", crash.NullPointer, crash.Read, "UnityPlayer.dll"},
		{"user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab", crash.Breakpoint, "", "targetapp.exe"},
		{"user/A03-breakpad-minidump2-x86/minidump2.dmp", crash.NullPointer, crash.Write, "test_app.exe"},
		{"user/A04-lldb-fizzbuzz-x86/fizzbuzz_no_heap.dmp", crash.NullPointer, crash.Read, "fizzbuzz.exe"},
		{"user/A05-lldb-sigsegv-x64-pdb/sigsegv.dmp", crash.NullPointer, crash.Write, "sigsegv.exe"},
		{"user/A07-thread-names-x86/thread_name_list.dmp", crash.WildPointer, crash.Read, "allocer32.exe"},
		{"user/A08-fastfail-x64/tiny-exe-fastfail.dmp", crash.Abort, "", "tiny.exe"},
		{"user/A10-sentry-native-x64/minidump.dmp", crash.NullPointer, crash.Write, "sentry_example.exe"},
		{"user/A11-electron-v8-x64/windows.dmp", crash.NullPointer, crash.Write, "electron.exe"},
		{"user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", crash.InvalidParameter, "", "CrashTest.exe"},
		{"wine/msvc/winpty-agent.bp.dmp", crash.Breakpoint, "", "winpty-agent.exe"},
		{"user/A13-notepad-hang-x64-x86/notepad-small-32bit.dmp", crash.DebuggerBreak, "", ""},
		{"user/A13-notepad-hang-x64-x86/notepad-small-64bit.dmp", crash.DebuggerBreak, "", ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			v := judgeFile(t, corpus.Need(t, c.file), "", "")
			if v == nil || v.Class != c.class || v.Access != c.access {
				t.Fatalf("%+v, want %s", v, c.class)
			}
			module := ""
			if v.Blame != nil {
				module = v.Blame.Frame.Module.Name()
			}
			if module != c.module {
				t.Errorf("blames %s, want %s", module, c.module)
			}
		})
	}
}

func judgeFile(t *testing.T, file, images, syms string) *crash.Verdict {
	t.Helper()
	d, err := triage.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	var opt triage.Options
	if images != "" {
		opt.Images, opt.Symbols = []string{images}, symbols.DirPath(syms)
	}
	_, v := judged(t, d, opt, nil)
	return v
}
