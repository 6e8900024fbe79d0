package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

func incidents() map[string]*triage.Incident {
	return map[string]*triage.Incident{"seed": seedIncident(), "crash32": crash32Incident(), "bugcheck": bugCheckIncident()}
}

func renderJSON(t *testing.T, inc *triage.Incident, opt Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, inc, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func indent(t *testing.T, out []byte) []byte {
	t.Helper()
	if n := bytes.Count(out, []byte("\n")); n != 1 || out[len(out)-1] != '\n' {
		t.Errorf("%d newlines: an object must be one line, so that many make JSON lines", n)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestJSONGoldens(t *testing.T) {
	for name, inc := range incidents() {
		t.Run(name, func(t *testing.T) {
			opt := judged(inc)
			opt.Unique = name == "seed"
			out := renderJSON(t, inc, opt)
			validate(t, out)
			golden(t, name+".json", indent(t, out))
			if again := renderJSON(t, inc, opt); !bytes.Equal(again, out) {
				t.Error("the same incident came out differently")
			}
		})
	}
}

// at follows keys and indexes into decoded JSON.
func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func checkAll(t *testing.T, doc any, want map[string]any, split func(string) []any) {
	t.Helper()
	for path, w := range want {
		if got := at(doc, split(path)...); !equalJSON(got, w) {
			t.Errorf("%s = %#v, want %#v", path, got, w)
		}
	}
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func dotted(path string) []any {
	var out []any
	for _, p := range strings.Split(path, ".") {
		if len(p) == 1 && p[0] >= '0' && p[0] <= '9' {
			out = append(out, int(p[0]-'0'))
		} else {
			out = append(out, p)
		}
	}
	return out
}

// The values are those that rust-minidump prints for its own test_app dump,
// except that module_offset and function_offset count from ip in callers too.
func TestJSONMatchesRustMinidump(t *testing.T) {
	doc := validate(t, renderJSON(t, crash32Incident(), testOptions))
	checkAll(t, doc, map[string]any{
		"crash_info.type":                          "EXCEPTION_ACCESS_VIOLATION_WRITE",
		"crash_info.code":                          "0xc0000005",
		"crash_info.address":                       "0x00000045",
		"crash_info.crashing_thread":               0,
		"crash_info.memory_accesses.0.access_type": "write",
		"crashing_thread.threads_index":            0,
		"crashing_thread.thread_id":                3060,
		"crashing_thread.frames.0.registers.eax":   "0x00000045",
		"threads.0.frames.0.registers.eflags":      "0x00010246",
		"threads.0.frames.0.registers.ecx":         nil, // not known
		"threads.0.frames.1.registers":             nil,
		"threads.0.frame_count":                    3,
		"threads.0.frames.0.trust":                 "context",
		"threads.0.frames.0.offset":                "0x0040429e",
		"threads.0.frames.0.module":                "test_app.exe",
		"threads.0.frames.0.module_offset":         "0x0000429e",
		"threads.0.frames.0.function_offset":       "0x0000000e",
		"threads.0.frames.1.offset":                "0x004041ff",
		"threads.0.frames.1.ip":                    "0x00404200",
		"threads.0.frames.1.trust":                 "frame_pointer",
		"threads.0.frames.1.unwind":                "ebp",
		"threads.0.frames.2.function":              nil,
		"threads.0.frames.2.missing_symbols":       true,
		"threads.0.last_error_value":               nil,
		"threads.0.stop.reason":                    "stack_missing",
		"modules.0.base_addr":                      "0x00400000",
		"modules.0.end_addr":                       "0x0042d000",
		"modules.0.filename":                       "test_app.exe",
		"modules.0.code_id":                        "45D35F6C2d000",
		"modules.0.debug_file":                     "test_app.pdb",
		"modules.0.debug_id":                       "5A9832E5287241C1838ED98914E9B7FF1",
		"modules.0.loaded_symbols":                 true,
		"modules.0.version":                        nil,
		"modules.1.version":                        "5.1.2600.2945",
		"modules.1.missing_symbols":                true,
		"system_info.os":                           "Windows NT",
		"system_info.os_ver":                       "5.1.2600 Service Pack 2",
		"system_info.cpu_arch":                     "x86",
		"pid":                                      nil,
		"status":                                   "OK",
		"thread_count":                             1,
	}, dotted)
}

// The joined stack is kernel_frames, then frames; consumers of frames see the
// user half alone.
func TestJSONHalves(t *testing.T) {
	opt := testOptions
	opt.Unique = true
	doc := validate(t, renderJSON(t, seedIncident(), opt))
	checkAll(t, doc, map[string]any{
		"pid":                                     15068, // 0x3adc
		"threads.0.stitched":                      true,
		"threads.0.frames.0.function":             "NtReadFile",
		"threads.0.frames.0.child_sp":             "0x000000d67c9fe328",
		"threads.0.frames.2.module":               nil,
		"threads.0.frames.2.module_offset":        nil,
		"threads.0.kernel_frames.8.function":      "KiSystemServiceCopyEnd",
		"threads.0.kernel_frames.0.registers.rip": "0xfffff8045e688b51",
		"threads.0.seam.user_ip":                  "0x00007ffe6390d184",
		"threads.0.kernel_stop.reason":            "trap_frame",
		"threads.0.kernel.state":                  "Waiting",
		"threads.0.kernel.wait_reason":            "Executive",
		"threads.0.kernel.cpu":                    nil,
		"threads.1.kernel.note":                   "not in the kernel dump",
		"threads.2.thread_name":                   ".NET Finalizer",
		"crashing_thread":                         nil,
		"crash_info":                              nil,
		"groups.0.thread_ids":                     []int{0x2240, 0x3c68},
		"groups.1.thread_ids":                     []int{0x5920},
		"modules.3.kind":                          "kernel",
		"pairing.how":                             "beside",
		"system_info.cpu_info":                    "GenuineIntel family 6 model 158 stepping 10",
		"system_info.nt_version":                  "10.0.19041.3803",
		"missing_images.0.filename":               "coreclr.dll",
	}, dotted)
}

func TestJSONBugCheck(t *testing.T) {
	inc := bugCheckIncident()
	doc := validate(t, renderJSON(t, inc, judged(inc)))
	checkAll(t, doc, map[string]any{
		"bugcheck.code":                        "0x0000007e",
		"bugcheck.raw_code":                    "0x1000007e",
		"bugcheck.name":                        "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED",
		"bugcheck.parameters":                  []string{"0xffffffffc0000005", "0xfffff8048b58334c", "0xffff850429891ee8", "0xffff850429891720"},
		"bugcheck.parameter_meaning.3":         "context record",
		"bugcheck.live":                        false,
		"bugcheck.blame.module":                "amdppm.sys",
		"bugcheck.blame.offset":                "0x000000000000334c",
		"bugcheck.blame.culprit":               "driver",
		"bugcheck.blame.step":                  "context",
		"bugcheck.blame.confidence":            "high",
		"bugcheck.fault.parameter":             4,
		"bugcheck.fault.context":               "context_record",
		"bugcheck.drivers_on_stack.0.module":   "amdppm.sys",
		"bugcheck.parameter_details.0.name":    "EXCEPTION_ACCESS_VIOLATION",
		"bugcheck.parameter_details.2.missing": true,
		"analysis.blame":                       "amdppm+0x334c",
		"threads.0.frames":                     []any{},
		"threads.0.kernel.cpu":                 3,
		"threads.0.kernel.wait_reason":         nil, // stale unless waiting
		"cpus.0.kernel_frames.1.module":        "amdppm.sys",
		"status":                               "PARTIAL",
		"errors.0.code":                        "truncated",
		"errors.0.offset":                      0x2000,
	}, dotted)
}

// What is known of a thread is said, and what is not is absent rather than zero.
func TestJSONThreadFacts(t *testing.T) {
	created := time.Date(2024, 2, 29, 23, 59, 59, 500_000_000, time.UTC)
	arm := registers(dump.ARM64, 0x7ff800001000, 0x2f0010)
	arm.Set(dump.ARM64LR, 0x7ff800002000)
	arm.Set(dump.ARM64CPSR, 0x60000000)
	half := &triage.Half{Frames: []triage.Frame{frame(0x2f0010, 0x7ff800001000, nil, "", 0, unwind.MethodContext)}, Registers: arm}
	inc := &triage.Incident{System: dump.System{Arch: dump.ARM64}, Crashing: -1, Threads: []triage.Thread{
		{Thread: dump.Thread{ID: 7, HasLastError: true, LastError: 0, StartAddress: 0x7ff800003000, StackBase: 0x300000, StackLimit: 0x2f0000,
			Times: &dump.ThreadTimes{Created: created, Kernel: 1500 * time.Millisecond, HasInfo: true}}, User: half, Handler: half},
		{Thread: dump.Thread{ID: 8, Times: &dump.ThreadTimes{}}},
		{Thread: dump.Thread{ID: 9, Kernel: &dump.KernelThread{}}, KernelInfo: &dump.KernelThread{State: 0xff, Live: true, WaitReason: 3, CPU: 0}},
	}}
	doc := validate(t, renderJSON(t, inc, testOptions))
	checkAll(t, doc, map[string]any{
		"system_info.cpu_arch":               "arm64",
		"system_info.os_ver":                 nil,
		"threads.0.last_error_value":         "ERROR_SUCCESS",
		"threads.0.last_error_code":          "0x00000000", // known to be zero
		"threads.0.start_address":            "0x00007ff800003000",
		"threads.0.stack.base":               "0x0000000000300000",
		"threads.0.stack.limit":              "0x00000000002f0000",
		"threads.0.times.created":            "2024-02-29T23:59:59.5Z",
		"threads.0.times.exited":             nil,
		"threads.0.times.kernel_seconds":     1.5,
		"threads.0.times.user_seconds":       0,
		"threads.0.handler_frames.0.ip":      "0x00007ff800001000",
		"threads.0.frames.0.registers.pc":    "0x00007ff800001000",
		"threads.0.frames.0.registers.lr":    "0x00007ff800002000",
		"threads.0.frames.0.registers.cpsr":  "0x60000000",
		"threads.0.frames.0.registers.x0":    nil,
		"threads.0.frames.0.symbol_source":   "none",
		"threads.0.frames.0.missing_symbols": false, // no module that could have any
		"threads.1.times":                    nil,
		"threads.1.last_error_value":         nil,
		"threads.1.stack":                    nil,
		"threads.1.teb":                      nil,
		"threads.1.stop":                     nil,
		"threads.2.kernel.state":             "CapturedByApc",
		"threads.2.kernel.wait_reason":       nil,
		"threads.2.kernel.cpu":               0,
		"threads.2.kernel.ethread":           nil,
	}, dotted)
}

// A frame in no module names the modules that had been there.
func TestJSONUnloaded(t *testing.T) {
	f := frame(0x1000, 0x71230010, nil, "", 0, unwind.MethodScan)
	gone := &dump.Module{Path: `C:\x\gone.dll`, Base: 0x71230000, Size: 0x1000}
	f.Unloaded = []triage.UnloadedHit{{Module: gone, Offset: 0x10}, {Module: gone, Offset: 0x20}, {Module: &dump.Module{Path: "other.dll"}, Offset: 1}}
	inc := &triage.Incident{System: dump.System{Arch: dump.X86}, Crashing: -1, Unloaded: []dump.Module{*gone},
		Threads: []triage.Thread{{User: &triage.Half{Frames: []triage.Frame{f}}}}}
	doc := validate(t, renderJSON(t, inc, testOptions))
	checkAll(t, doc, map[string]any{
		"threads.0.frames.0.unloaded_modules": []any{
			map[string]any{"module": "gone.dll", "offsets": []string{"0x00000010", "0x00000020"}},
			map[string]any{"module": "other.dll", "offsets": []string{"0x00000001"}}},
		"unloaded_modules.0.filename": "gone.dll",
		"unloaded_modules.0.end_addr": "0x71231000",
	}, dotted)
	if got := renderText(t, inc, testOptions); !strings.Contains(got, " <Unloaded_gone.dll>+0x10\n") {
		t.Errorf("text:\n%s", got)
	}
	inc.Threads[0].User.Frames[0].Name = symbols.Name{Function: "Start", Offset: 0x10, Source: symbols.SourceExport}
	if got := renderText(t, inc, testOptions); !strings.Contains(got, " <Unloaded_gone.dll>!Start+0x10\n") {
		t.Errorf("text with a name:\n%s", got)
	}
}

// A frame limit is said, so that nobody takes the rest for the whole.
func TestJSONFrameLimit(t *testing.T) {
	opt := testOptions
	opt.Frames = 2
	doc := validate(t, renderJSON(t, seedIncident(), opt))
	checkAll(t, doc, map[string]any{"threads.0.truncated": true, "threads.0.frame_count": 2, "threads.0.frames.2": nil,
		"threads.0.kernel_frames.2": nil, "threads.0.kernel_frames.1.function": "DbgkpLkmdSnapThreadApc", "threads.1.truncated": nil}, dotted)
}

func TestDebugID(t *testing.T) {
	// A PDB 2.0 is named by its signature in capitals, then its age.
	if got := (&dump.CodeView{Signature: "NB10", Stamp: 0x4c1a9d3f, Age: 0x1f}).DebugID(); got != "4C1A9D3F1f" {
		t.Errorf("NB10: %q", got)
	}
	if got := (&dump.CodeView{}).DebugID(); got != "" {
		t.Errorf("no record: %q", got)
	}
}

func TestFailureJSON(t *testing.T) {
	var b bytes.Buffer
	errs := []*dump.Error{{Code: dump.UnsupportedFormat, File: "a.txt", Offset: -1, Size: -1, Msg: "not a dump", Err: errors.New("magic \"abcd\"")}}
	if err := FailureJSON(&b, testOptions, []triage.Input{{Path: "a.txt"}}, errs); err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"dumptriage/1","tool":{"name":"dumptriage","version":"0.0.0-test"},"status":"ERROR",` +
		`"errors":[{"code":"unsupported_format","severity":"error","file":"a.txt","message":"not a dump: magic \"abcd\""}],"inputs":[{"path":"a.txt"}]}` + "\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
	validate(t, b.Bytes())
}

func TestStatus(t *testing.T) {
	content := triage.Incident{Threads: make([]triage.Thread, 1)}
	for name, c := range map[string]struct {
		content bool
		err     *dump.Error
		status  string
		exit    int
	}{
		"nothing wrong":                 {true, nil, "OK", 0},
		"a warning":                     {true, &dump.Error{Code: dump.BadRecord, Warning: true}, "OK", 0},
		"a damaged stream":              {true, &dump.Error{Code: dump.Truncated}, "PARTIAL", 3},
		"memory of a kind not read yet": {true, &dump.Error{Code: dump.UnsupportedFormat}, "PARTIAL", 3},
		"not a dump":                    {false, &dump.Error{Code: dump.UnsupportedFormat}, "ERROR", 1},
		"another platform":              {true, &dump.Error{Code: dump.UnsupportedPlatform}, "ERROR", 1},
		"dumps of two processes":        {true, &dump.Error{Code: dump.Mismatch}, "ERROR", 1},
		"nothing could be read":         {false, &dump.Error{Code: dump.IO}, "ERROR", 1},
	} {
		inc := triage.Incident{}
		if c.content {
			inc = content
		}
		if c.err != nil {
			inc.Errors = []*dump.Error{c.err}
		}
		if s, x := Status(&inc); s != c.status || x != c.exit {
			t.Errorf("%s: %s %d, want %s %d", name, s, x, c.status, c.exit)
		}
	}
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// An error of the writer is returned, wherever it strikes.
func TestWriteErrors(t *testing.T) {
	inc := wideIncident(300, 50)
	for _, left := range []int{0, 100_000, 1_000_000} {
		if err := JSON(&failingWriter{left}, inc, testOptions); err == nil {
			t.Errorf("JSON: no error after %d bytes", left)
		}
		if err := Text(&failingWriter{left}, inc, testOptions); err == nil && left < 1_000_000 {
			t.Errorf("Text: no error after %d bytes", left)
		}
	}
}
