package crash_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/input"
	"dumptriage/triage"
	"dumptriage/triage/crash"
)

// judged is an incident and the verdict on its crash.
func judged(t *testing.T, d *triage.Dump, opt triage.Options, r *crash.Rules) (*triage.Incident, *crash.Verdict) {
	t.Helper()
	inc, err := triage.Analyze(d, nil, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inc.Close() })
	return inc, crash.Of(inc, r)
}

func openBytes(t *testing.T, name string, b []byte) *triage.Dump {
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

func imageDir(t *testing.T, images map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range images {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// want is what a case of fixtures.CrashCases must be judged to be.
type want struct {
	class      crash.Class
	access     crash.Access
	address    uint64 // when access is set
	blame      string // function
	confidence string
}

// The addresses are those of the instruction's operand by hand: rcx as the
// scene sets it, plus 0x10 where the instruction adds that.
var wants = map[string]want{
	"null_read":             {crash.NullPointer, crash.Read, 0x10, "load", "high"},
	"null_below":            {crash.NullPointer, crash.Read, ^uint64(0xf), "load", "high"},
	"deliberate_null":       {crash.NullPointer, crash.Write, 0, "deliberate", "high"},
	"null_call":             {crash.NullPointer, crash.Execute, 0, "call_through", "high"},
	"freed":                 {crash.UseAfterFree, crash.Read, 0xdddddddddddddded, "load", "medium"},
	"freed_system_heap":     {crash.UseAfterFree, crash.Write, 0xfeeefeeefeeefefe, "store", "medium"},
	"uninitialized":         {crash.Uninitialized, crash.Read, 0xcdcdcdcdcdcdcddd, "load", "high"},
	"guard_bytes":           {crash.OutOfBounds, crash.Read, 0xfdfdfdfdfdfdfe0d, "load", "low"},
	"bit_flip":              {crash.NonCanonical, crash.Read, 0x801d2f6a40210, "load", "low"},
	"non_canonical":         {crash.NonCanonical, crash.Read, 0x0123456789abcdff, "load", "high"},
	"kernel_address":        {crash.KernelAddress, crash.Read, 0xfffff80012340010, "load", "high"},
	"wild_read":             {crash.WildPointer, crash.Read, 0x5500aa10, "load", "high"},
	"write_read_only":       {crash.WriteReadOnly, crash.Write, 0x1d2f6b00010, "store", "high"},
	"execute_heap":          {crash.ExecuteData, crash.Execute, 0x1d2f6a40040, "call_through", "high"},
	"unloaded":              {crash.UnloadedModule, crash.Execute, 0x7ffa10001230, "call_through", "medium"},
	"misaligned":            {crash.MisalignedData, crash.Read, 0x1d2f6a40008, "vector", "high"},
	"allowed":               {crash.AccessViolation, crash.Read, 0x1d2f6a40010, "load", "low"},
	"elsewhere":             {crash.WildPointer, crash.Read, 0x5500aa10, "load", "low"},
	"in_page":               {crash.InPageError, crash.Read, 0x1d2f6b00010, "load", "high"},
	"memcpy":                {crash.WildPointer, crash.Read, 0x5500aa10, "call_through", "high"},
	"heap_failure":          {class: crash.HeapCorruption, blame: "call_through", confidence: "low"},
	"heap_damage":           {crash.HeapCorruption, crash.Read, 0x5500aa10, "call_through", "low"},
	"divide":                {class: crash.DivideByZero, blame: "divide", confidence: "high"},
	"divide_impossible":     {class: crash.DivideByZero, blame: "add_numbers", confidence: "low"},
	"breakpoint":            {class: crash.Breakpoint, blame: "stop", confidence: "high"},
	"attach":                {class: crash.DebuggerBreak},
	"debug_break":           {class: crash.Breakpoint, blame: "call_through", confidence: "high"},
	"illegal":               {class: crash.IllegalInstruction, blame: "undefined", confidence: "high"},
	"privileged":            {class: crash.PrivilegedInstruction, blame: "halt", confidence: "high"},
	"privileged_impossible": {class: crash.PrivilegedInstruction, blame: "add_numbers", confidence: "low"},
	"fastfail_cookie":       {class: crash.StackCookie, blame: "fail_fast", confidence: "low"},
	"fastfail_icall":        {class: crash.ControlFlowGuard, blame: "fail_fast", confidence: "medium"},
	"fastfail_list":         {class: crash.CorruptList, blame: "fail_fast", confidence: "low"},
	"fastfail_argument":     {class: crash.FailFast, blame: "fail_fast", confidence: "high"},
	"abort":                 {class: crash.Abort, blame: "call_through", confidence: "high"},
	"invalid_parameter":     {class: crash.InvalidParameter, blame: "call_through", confidence: "high"},
	"terminate":             {class: crash.Terminate, blame: "call_through", confidence: "high"},
	"pure_call":             {class: crash.PureCall, blame: "call_through", confidence: "high"},
	"thrown":                {class: crash.CxxException, blame: "call_through", confidence: "high"},
	"double_free":           {class: crash.HeapCorruption, blame: "call_through", confidence: "low"},
	"rethrown":              {class: crash.CxxException, blame: "call_through", confidence: "high"},
	"unhandled":             {class: crash.Terminate, blame: "call_through", confidence: "high"},
	"clr":                   {class: crash.CLRException, blame: "call_through", confidence: "high"},
	"raised":                {class: crash.RaisedException, blame: "call_through", confidence: "high"},
	"no_memory":             {class: crash.OutOfMemory, blame: "call_through", confidence: "medium"},
	"missing_dll":           {class: crash.LoaderFailure, blame: "work", confidence: "high"},
	"recursion":             {class: crash.StackOverflow, blame: "recurse", confidence: "high"},
}

func TestCases(t *testing.T) {
	cases, images := fixtures.CrashCases()
	dir := imageDir(t, images)
	seen := map[string]bool{}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			w, ok := wants[c.Name]
			if !ok {
				t.Fatal("nothing says what this case is")
			}
			seen[c.Name] = true
			_, v := judged(t, openBytes(t, c.Name+".dmp", c.Dump), triage.Options{Images: []string{dir}}, nil)
			if v.Class != w.class || v.Access != w.access {
				t.Errorf("class %s, access %q; want %s, %q", v.Class, v.Access, w.class, w.access)
			}
			if w.access != "" && (!v.HasAddress || v.Address != w.address) {
				t.Errorf("address %#x (%v), want %#x", v.Address, v.HasAddress, w.address)
			}
			blame, confidence := "", ""
			if v.Blame != nil {
				blame, confidence = v.Blame.Frame.Name.Function, v.Blame.Confidence
			}
			if blame != w.blame || confidence != w.confidence {
				t.Errorf("blames %q, confidence %q; want %q, %q", blame, confidence, w.blame, w.confidence)
			}
			if v.Uptime != 90*time.Second {
				t.Errorf("ran %s, want 90 s", v.Uptime)
			}
		})
	}
	for name := range wants {
		if !seen[name] {
			t.Errorf("no case %s", name)
		}
	}
}

func verdictOf(t *testing.T, name string) (*triage.Incident, *crash.Verdict) {
	t.Helper()
	cases, images := fixtures.CrashCases()
	for _, c := range cases {
		if c.Name == name {
			return judged(t, openBytes(t, name+".dmp", c.Dump), triage.Options{Images: []string{imageDir(t, images)}}, nil)
		}
	}
	t.Fatalf("no case %s", name)
	return nil, nil
}

func TestThrownObject(t *testing.T) {
	_, v := verdictOf(t, "thrown")
	if v.Thrown == nil || strings.Join(v.Thrown.Types, " ") != "app::ParseError std::runtime_error std::exception" || v.Thrown.Message != "line 7: unexpected token" {
		t.Errorf("thrown: %+v", v.Thrown)
	}
	// E_POINTER is what rexcep.h of the runtime lists for these three.
	if _, v := verdictOf(t, "clr"); v.Thrown == nil || v.Thrown.HResult != 0x80004003 ||
		!slices.Equal(v.Thrown.ByHResult, []string{"System.NullReferenceException", "System.ArgumentNullException", "System.AccessViolationException"}) {
		t.Errorf("CLR: %+v", v.Thrown)
	}
}

func TestRecursionIsFound(t *testing.T) {
	_, v := verdictOf(t, "recursion")
	r := v.Recursion
	// 40 frames that take turns; each takes 0x38 bytes and a return address.
	if r == nil || r.From != 0 || r.Frames != 2 || r.Rounds != 20 || r.AtLeast || r.Bytes != 2*0x40 {
		t.Errorf("%+v", r)
	}
}

func TestInconsistencies(t *testing.T) {
	cases, images := fixtures.CrashCases()
	dir := imageDir(t, images)
	want := map[string]crash.Inconsistency{
		"divide_impossible": crash.DivideNotPossible, "privileged_impossible": crash.NotPrivileged,
		"allowed": crash.AccessWasAllowed, "elsewhere": crash.AccessNotInstruction,
	}
	for _, c := range cases {
		_, v := judged(t, openBytes(t, c.Name+".dmp", c.Dump), triage.Options{Images: []string{dir}}, nil)
		got := v.Inconsistencies
		if w, ok := want[c.Name]; ok && (len(got) != 1 || got[0] != w) || !ok && len(got) > 0 {
			t.Errorf("%s: %v, want %q", c.Name, got, w)
		}
	}
}

func TestBitFlip(t *testing.T) {
	_, v := verdictOf(t, "bit_flip")
	if len(v.BitFlips) != 1 {
		t.Fatalf("%+v", v.BitFlips)
	}
	f := v.BitFlips[0]
	if f.Address != 0x1d2f6a40210 || f.Source != dump.RCX || !f.HasSource || f.Nearby != 1 || f.Confidence < 0.5 {
		t.Errorf("%+v", f)
	}
	// A pattern of freed memory is no bit flip, nor is a null pointer.
	for _, name := range []string{"freed", "null_read", "non_canonical"} {
		if _, v := verdictOf(t, name); len(v.BitFlips) != 0 {
			t.Errorf("%s: %+v", name, v.BitFlips)
		}
	}
}

func TestRegistersAndTargets(t *testing.T) {
	inc, v := verdictOf(t, "write_read_only")
	if g := v.Target; g.Kind != crash.TargetPrivate || g.Region == nil || g.Region.Protect != 2 {
		t.Errorf("target %+v", g)
	}
	kinds := map[dump.Reg]crash.TargetKind{}
	for _, r := range v.Registers {
		kinds[r.Reg] = r.Target.Kind
		if r.Target.Kind == crash.TargetStack && r.Target.ThreadID != inc.Crash.ThreadID {
			t.Errorf("stack of thread %#x", r.Target.ThreadID)
		}
	}
	if kinds[dump.RCX] != crash.TargetPrivate || kinds[dump.RSP] != crash.TargetStack {
		t.Errorf("registers point to %v", kinds)
	}
	if _, v := verdictOf(t, "unloaded"); v.Target.Unloaded == nil || v.Target.Unloaded.Offset != 0x1230 || v.Target.Unloaded.Module.Name() != "plugin.dll" {
		t.Errorf("unloaded: %+v", v.Target)
	}
	if _, v := verdictOf(t, "deliberate_null"); !v.Constant {
		t.Error("a constant address was not seen")
	}
	if _, v := verdictOf(t, "null_read"); v.Constant {
		t.Error("[rcx+10h] was taken for a constant address")
	}
	if _, v := verdictOf(t, "in_page"); !v.HasStatus || v.Status != 0xc000009c {
		t.Errorf("in-page status %#x", v.Status)
	}
}

// Without images the frames are guesses, which the confidence says, and what is
// missing is named.
func TestWithoutImages(t *testing.T) {
	cases, _ := fixtures.CrashCases()
	for _, c := range cases {
		_, v := judged(t, openBytes(t, c.Name+".dmp", c.Dump), triage.Options{}, nil)
		if b := v.Blame; b != nil && b.Index > 0 && b.Confidence != "low" && (v.Access != crash.Execute || b.Confidence != "medium") {
			t.Errorf("%s: frame %d is blamed with confidence %s", c.Name, b.Index, b.Confidence)
		}
		if c.Name == "null_read" && (len(v.Next) == 0 || v.Next[0].Kind != crash.NextImages || v.Next[0].Modules[0].Name() != "crashes.exe") {
			t.Errorf("next: %+v", v.Next)
		}
	}
}

// The object of an exception that "throw;" raised again, and of one that found no
// handler, is that of the record which the first throw left on the stack.
func TestThrownBefore(t *testing.T) {
	const message = "line 7: unexpected token"
	_, v := verdictOf(t, "rethrown")
	if o := v.Thrown; o == nil || !o.Again || len(o.Types) != 3 || o.Types[0] != "app::ParseError" || o.Message != message {
		t.Errorf("raised again: %+v", v.Thrown)
	}
	_, v = verdictOf(t, "unhandled")
	if len(v.Earlier) != 1 || v.Thrown != nil {
		t.Fatalf("%+v", v.Earlier)
	}
	if e := v.Earlier[0]; e.Live || e.Nested || e.Thrown == nil || e.Thrown.Again || e.Thrown.Types[0] != "app::ParseError" || e.Thrown.Message != message || e.By != nil {
		t.Errorf("without a handler: %+v", e)
	}
	// The record of the exception itself is none that came before.
	if _, v = verdictOf(t, "thrown"); len(v.Earlier) != 0 || v.Thrown.Again {
		t.Errorf("%+v", v.Earlier)
	}
}

// What the heap found is in what the exception's parameter points to.
func TestHeapFailure(t *testing.T) {
	_, v := verdictOf(t, "double_free")
	if f := v.Heap; f == nil || *f != (crash.HeapFailure{Type: 8, Name: "block_not_busy", Heap: 0x1d2f6a40000, Address: 0x1d2f6a40040}) {
		t.Errorf("%+v", v.Heap)
	}
	if _, v = verdictOf(t, "heap_failure"); v.Heap != nil { // that memory is not in the dump
		t.Errorf("%+v", v.Heap)
	}
}
