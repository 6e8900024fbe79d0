package crash

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

// known are the classes that a rule may give or refine.
var known = map[Class]bool{"*": true, "access": true}

func init() {
	for _, c := range classOfCode {
		known[c] = true
	}
	for _, c := range classOfFailFast {
		known[c] = true
	}
	for _, c := range []Class{RaisedException, StatusRaised, Unknown, DebuggerBreak, PureCall, Terminate} {
		known[c] = true
	}
}

// A misspelt class would be silence: every class in the rules exists.
func TestRulesNameClasses(t *testing.T) {
	classes := 0
	for _, r := range builtIn() {
		if r.Section != "class" {
			continue
		}
		classes++
		if !known[Class(r.Attrs["class"])] {
			t.Errorf("%s: no class %q", r.String(), r.Attrs["class"])
		}
		for word := range strings.SplitSeq(r.Attrs["from"], ",") {
			if !known[Class(word)] {
				t.Errorf("%s: from=%q is no class", r.String(), word)
			}
		}
	}
	if classes < 40 {
		t.Errorf("only %d rules about classes", classes)
	}
}

func frameIn(path, function string) triage.Frame {
	return triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustCFI, IP: 0x1010, Lookup: 0x100f},
		Module: &triage.Module{Module: &dump.Module{Path: path, Base: 0x1000, Size: 0x1000}},
		Name:   symbols.Name{Function: function, Offset: 0x10, Source: symbols.SourcePDB}}
}

func TestBlameRules(t *testing.T) {
	const app = `C:\demo\app.exe`
	r := NewRules(nil)
	for _, c := range []struct{ path, function, why string }{
		{app, "main", ""},
		{app, "Parser::parse", ""},
		{app, "core::Engine::run", ""}, // a namespace of many programs, not only Rust's
		{app, "", ""},
		{app, "abort", "machinery"},
		{app, "_CxxThrowException", "machinery"},
		{app, "__scrt_common_main_seh", "start"},
		{app, "std::vector<int>::push_back", "runtime"},
		{app, "operator new", "runtime"},
		{app, "operator new[]", "runtime"},
		{app, "operator delete", "runtime"},
		{app, "core::panicking::panic_fmt", "machinery"},
		{app, "alloc::raw_vec::handle_error", "runtime"},
		{app, "google_breakpad::ExceptionHandler::WriteMinidump", "machinery"},
		{app, "runtime.sigpanic", "runtime"},
		{`C:\Windows\System32\ntdll.dll`, "RtlUserThreadStart", "start"},
		{`C:\Windows\System32\ntdll.dll`, "KiUserExceptionDispatcher", "machinery"},
		{`C:\Windows\System32\ntdll.dll`, "RtlAllocateHeap", "os"},
		{`C:\windows\system32\ntdll.dll`, "", "os"},
		{`KERNELBASE.dll`, "RaiseException", "machinery"},
		{`KERNELBASE.dll`, "ReadFile", "os"},
		{`C:\app\ucrtbased.dll`, "memcpy", "runtime"},
		{`C:\app\VCRUNTIME140D.dll`, "", "runtime"},
		{`C:\app\MSVCP140.dll`, "", "runtime"},
		{`C:\Windows\System32\drivers\etc\strange.dll`, "", "os"},
		{`\Device\HarddiskVolume3\Windows\SysWOW64\strange.dll`, "", "os"},
		{`C:\Windows\System32\notepad.exe`, "", ""}, // the program itself
		{`C:\Windows\WinSxS\x\comctl32.dll`, "", "os"},
		{`C:\Program Files\dotnet\shared\Microsoft.NETCore.App\8.0.1\System.Console.dll`, "", "runtime"},
		{`C:\app\coreclr.dll`, "", "runtime"},
		{`C:\app\mono-2.0-bdwgc.dll`, "", "runtime"},
		{`C:\app\monograph.dll`, "", ""},
		{`C:\app\atlas.dll`, "", ""},
		{`C:\app\atl100.dll`, "", "runtime"},
		{`C:\app\mfc140u.dll`, "", "runtime"},
	} {
		f := frameIn(c.path, c.function)
		skip, _ := r.why(&f)
		why := ""
		if skip != nil {
			why = skip.Attrs["why"]
		}
		if why != c.why {
			t.Errorf("%s!%s: %q (%v), want %q", c.path, c.function, why, skip, c.why)
		}
	}
}

// A runtime that is linked into a program is told by its source files, as PDBs of
// Microsoft's compilers and DWARF of others name them.
func TestSourceRules(t *testing.T) {
	r := NewRules(nil)
	for file, why := range map[string]string{
		`minkernel\crts\ucrt\src\appcrt\lowio\write.cpp`:                                  "runtime",
		`d:\th\minkernel\crts\ucrt\src\appcrt\heap\free_base.cpp`:                         "runtime",
		`D:\a\_work\1\s\src\vctools\crt\vcstartup\src\startup\exe_common.inl`:             "runtime",
		`f:\dd\vctools\crt_bld\self_x86\crt\src\fread.c`:                                  "runtime",
		`VCCRT\vcruntime\inc\internal_shared.h`:                                           "runtime",
		`C:\Program Files (x86)\Windows Kits\10\Include\10.0.26100.0\ucrt\stdio.h`:        "runtime",
		`C:\VS\VC\Tools\MSVC\14.40.33807\include\xmemory`:                                 "runtime",
		"/build/mingw-w64/mingw-w64-crt/stdio/mingw_vfprintf.c":                           "runtime",
		"/rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/core/src/slice/index.rs": "runtime",
		`C:\src\app\minkernel.cpp`:                                                        "",
		`C:\src\app\library\core.rs`:                                                      "",
		`D:\a\_work\1\s\deps\winpty\src\agent\main.cc`:                                    "",
	} {
		f := frameIn(`C:\demo\app.exe`, "f")
		f.Name.File = file
		got := ""
		if skip, _ := r.why(&f); skip != nil {
			got = skip.Attrs["why"]
		}
		if got != why {
			t.Errorf("%s: %q, want %q", file, got, why)
		}
	}
	list, err := rules.Parse("mine.rules", "[app]\napp!f\n[source]\n*\\third_party\\* why=runtime\n", rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil || Check(list) != nil {
		t.Fatal(err, Check(list))
	}
	mine := NewRules(list)
	f := frameIn(`C:\demo\app.exe`, "f")
	f.Name.File = `vccrt\x.h`
	if skip, app := mine.why(&f); skip != nil || app == nil {
		t.Errorf("the application's own function: %v, %v", skip, app)
	}
	f = frameIn(`C:\demo\app.exe`, "g")
	f.Name.File = "C:/src/Third_Party/zlib/inflate.c"
	if skip, _ := mine.why(&f); skip == nil || skip.File != "mine.rules" {
		t.Errorf("a user's folder of sources: %v", skip)
	}
}

// incident is a crash with these frames, each outside a thread's stack bounds.
func incident(code uint32, frames ...triage.Frame) *triage.Incident {
	return &triage.Incident{
		System:  dump.System{Arch: dump.AMD64},
		Crash:   &triage.Crash{Exception: dump.Exception{ThreadID: 1, Code: code, Context: dump.Registers{Arch: dump.AMD64}}},
		Threads: []triage.Thread{{Thread: dump.Thread{ID: 1}, User: &triage.Half{Frames: frames}}},
	}
}

func TestClassRules(t *testing.T) {
	const app, ntdll = `C:\demo\app.exe`, `C:\Windows\System32\ntdll.dll`
	for _, c := range []struct {
		what   string
		code   uint32
		frames []triage.Frame
		want   Class
	}{
		{"an assertion's abort", 0xc0000409, []triage.Frame{frameIn(app, "abort"), frameIn(app, "_wassert"), frameIn(app, "main")}, Assertion},
		{"a breakpoint in an assertion", 0x80000003, []triage.Frame{frameIn(app, "_CrtDbgReportW"), frameIn(app, "main")}, Assertion},
		{"heap checks under a debugger", 0x80000003, []triage.Frame{frameIn(ntdll, "RtlpBreakPointHeap"), frameIn(ntdll, "RtlpReportHeapFailure"), frameIn(ntdll, "RtlFreeHeap"), frameIn(app, "main")}, HeapCorruption},
		{"attach", 0x80000003, []triage.Frame{frameIn(ntdll, "DbgBreakPoint"), frameIn(ntdll, "DbgUiRemoteBreakin"), frameIn(ntdll, "RtlUserThreadStart")}, DebuggerBreak},
		{"start under a debugger", 0x80000003, []triage.Frame{frameIn(ntdll, "LdrpDoDebuggerBreak"), frameIn(ntdll, "LdrpInitializeProcess"), frameIn(ntdll, "LdrInitializeThunk")}, DebuggerBreak},
		{"ntdll's breakpoint, called by the program", 0x80000003, []triage.Frame{frameIn(ntdll, "DbgBreakPoint"), frameIn(app, "main")}, Breakpoint},
		{"a callback that the heap walk called", 0xc0000005, []triage.Frame{frameIn(app, "callback"), frameIn(ntdll, "RtlAllocateHeap"), frameIn(app, "main")}, AccessViolation},
		{"operator new gives up", 0xc0000409, []triage.Frame{frameIn(app, "abort"), frameIn(app, "operator new"), frameIn(app, "main")}, OutOfMemory},
		{"a Rust panic", 0xc0000409, []triage.Frame{frameIn(app, "std::panicking::rust_panic_with_hook"), frameIn(app, "core::panicking::panic"), frameIn(app, "demo::main")}, Abort},
		{"the same functions far from the top", 0xc0000409, append(repeat(frameIn(app, "f"), topFrames), frameIn(app, "abort")), FailFast},
		{"a name found by a guess", 0xc0000409, []triage.Frame{frameIn(app, "f"), guessed(frameIn(app, "abort"))}, FailFast},
	} {
		inc := incident(c.code, c.frames...)
		share(inc.Threads[0].User.Frames)
		if v := Of(inc, nil); v.Class != c.want {
			t.Errorf("%s: %s (%s), want %s", c.what, v.Class, v.Rule, c.want)
		}
	}
}

// share makes frames of the same path frames of the same module.
func share(frames []triage.Frame) {
	byPath := map[string]*triage.Module{}
	for i := range frames {
		m := frames[i].Module
		if byPath[m.Path] == nil {
			byPath[m.Path] = m
		}
		frames[i].Module = byPath[m.Path]
	}
}

func repeat(f triage.Frame, n int) []triage.Frame {
	var out []triage.Frame
	for range n {
		out = append(out, f)
	}
	return out
}

func guessed(f triage.Frame) triage.Frame { f.Trust = unwind.TrustScan; return f }

// A user's rules come first, and may name what is the application's.
func TestUserRules(t *testing.T) {
	list, err := rules.Parse("mine.rules", "[skip]\napp!Log* why=runtime\n[app]\nours!*\n[class]\napp!Fatal class=assertion from=breakpoint\n", rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil || Check(list) != nil {
		t.Fatal(err, Check(list))
	}
	r := NewRules(list)
	inc := incident(0x80000003, frameIn(`C:\demo\app.exe`, "Fatal"), frameIn(`C:\demo\app.exe`, "LogAndDie"), frameIn(`C:\Windows\System32\ours.dll`, "Work"))
	v := Of(inc, r)
	if v.Class != Assertion || v.Rule != "mine.rules:6" {
		t.Errorf("class %s by %s", v.Class, v.Rule)
	}
	if b := v.Blame; b == nil || b.Index != 0 || b.Rule != BlameFirst {
		t.Errorf("blame %+v", b)
	}
	inc.Threads[0].User.Frames = inc.Threads[0].User.Frames[1:]
	if b := Of(inc, r).Blame; b == nil || b.Index != 1 || b.Rule != BlameNamed || b.Source != "mine.rules:4" {
		t.Errorf("blame %+v", b)
	}
	for text, want := range map[string]string{
		"[skip]\nf why=tired\n":                    "x:2: why=\"tired\"; there are os, runtime, machinery, start",
		"[class]\nf top=yes\n":                     "x:2: a [class] rule wants class=",
		"[class]\nf class=abort\n":                 "x:2: a [class] rule wants from=, the classes that it may refine, or *",
		"[class]\nf class=ours from=access,ours\n": "x:2: from=\"ours\"; there are " + classList() + ", access, *",
	} {
		bad, err := rules.Parse("x", text, rules.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(bad); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
