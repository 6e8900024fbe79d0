package bugcheck_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/input"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

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

// judge analyses a dump and judges its bugcheck.
func judge(t *testing.T, d *triage.Dump, opt triage.Options) (*triage.Incident, *bugcheck.Verdict) {
	t.Helper()
	opt.NotBeside = true
	inc, err := triage.Analyze(nil, d, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inc.Close() })
	return inc, bugcheck.Of(inc, nil)
}

func images(t *testing.T, d *fixtures.BugCheckDump) triage.Options {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{"ntoskrnl.exe": d.NT, "faulty.sys": d.Driver} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return triage.Options{Images: []string{dir}}
}

// want is what a scene of fixtures.BugCheckScenes must be judged to be.
type want struct {
	class      codes.BugCheckClass
	culprit    bugcheck.Culprit
	name       string // that is blamed
	step       string
	confidence string
	parameter  string // name or text of the parameter that tells most: "2 text"
	missing    string // parameters, such as "34", that lead nowhere
}

var wants = map[string]want{
	// faulty.sys faults; parameter 4 or 3 is the address of its instruction.
	"irql":       {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "2 DISPATCH_LEVEL", ""},
	"page_fault": {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "2 read", ""},
	// The kernel faults, called by faulty.sys: the first driver from there.
	"irql_kernel": {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "3 execute", ""},
	// The CONTEXT and EXCEPTION_RECORD are in the dump, and are not.
	"thread_exception":     {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "1 EXCEPTION_ACCESS_VIOLATION", ""},
	"thread_exception_bad": {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "1 EXCEPTION_ACCESS_VIOLATION", "34"},
	"service_exception":    {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "1 EXCEPTION_ACCESS_VIOLATION", ""},
	// Lists are corrupted before they are found to be: never sure.
	"security_check": {codes.ClassMemory, bugcheck.CulpritDriver, "faulty.sys", "context", "medium", "1 FAST_FAIL_CORRUPT_LIST_ENTRY", ""},
	// The IRP's current location is at a device of faulty.sys, whatever is below and above.
	"power": {codes.ClassPower, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", `2 \Driver\pci`, ""},
	// The IRP is not in the dump; a thread of the power manager is handing it to faulty.sys.
	"power_worker": {codes.ClassPower, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", `2 \Driver\pci`, "4"},
	// Only the device's stack is: of its two drivers pci only passes on.
	"power_stack": {codes.ClassPower, bugcheck.CulpritDriver, "faulty.sys", "parameter", "medium", `2 \Driver\pci`, "34"},
	// One of two drivers that neither pass on: nothing says which.
	"power_pnp":      {codes.ClassPower, bugcheck.CulpritKernel, "ntoskrnl.exe", "kernel", "low", "3 4.1d8", ""},
	"power_directed": {codes.ClassPower, bugcheck.CulpritDriver, "faulty.sys", "parameter", "medium", "3 power down", ""},
	"power_bad":      {codes.ClassPower, bugcheck.CulpritKernel, "ntoskrnl.exe", "kernel", "low", "1 a device object blocks a power IRP for too long", "24"},
	// Hardware is to blame, whoever is on the stack.
	"hardware":     {codes.ClassHardware, bugcheck.CulpritHardware, "", "hardware", "high", "1 machine check", ""},
	"hardware_bad": {codes.ClassHardware, bugcheck.CulpritHardware, "", "hardware", "high", "1 PCI Express error", "2"},
	"dpc":          {codes.ClassHang, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "1 one DPC or ISR took longer than it may", ""},
	// Nothing but the kernel is on the stack; the watchdog captured faulty.sys.
	"dpc_profile":     {codes.ClassHang, bugcheck.CulpritDriver, "faulty.sys", "profile", "medium", "1 too much time at DISPATCH_LEVEL or above, in all", ""},
	"dpc_profile_bad": {codes.ClassHang, bugcheck.CulpritKernel, "ntoskrnl.exe", "kernel", "low", "1 too much time at DISPATCH_LEVEL or above, in all", ""},
	"process_died":    {codes.ClassProcess, bugcheck.CulpritProcess, "System", "process", "medium", "1 System", ""},
	"object_died":     {codes.ClassProcess, bugcheck.CulpritProcess, "csrss.exe", "process", "medium", "3 csrss.exe", "2"},
	// Memory that something damaged earlier: who stumbled over it is hardly to blame.
	"memory": {codes.ClassMemory, bugcheck.CulpritDriver, "faulty.sys", "frame", "low", "1 a page table entry is corrupt", ""},
	"pool":   {codes.ClassMemory, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "3 File", ""},
	// The callers of such calls are at fault, by the page of 0x1A.
	"memory_caller": {codes.ClassMemory, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "1 a driver made a bad MDL", ""},
	// Parameter 3 is a trap frame, though the reference calls it reserved.
	"readonly":  {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "4 ", ""},
	"unhandled": {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "3 write", ""},
	// A disk failed, not who touched what is on it.
	"page_unread":  {codes.ClassStorage, bugcheck.CulpritDriver, "faulty.sys", "context", "low", "1 EXCEPTION_IN_PAGE_ERROR", ""},
	"breakpoint":   {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "1 EXCEPTION_BREAKPOINT", ""},
	"divide":       {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "context", "high", "1 divide error", ""},
	"double_fault": {codes.ClassHardware, bugcheck.CulpritDriver, "faulty.sys", "context", "medium", "1 double fault, and the kernel stack did not overflow", ""},
	// faulty.sys called itself until the stack was full.
	"stack_overflow": {codes.ClassDriver, bugcheck.CulpritDriver, "faulty.sys", "stack", "medium", "1 double fault: the kernel stack overflowed", ""},
	// The kernel that found the change, or ended the process, did not do it.
	"structure":       {codes.ClassSecurity, bugcheck.CulpritNone, "", "", "", "4 a model specific register", ""},
	"thread_died":     {codes.ClassProcess, bugcheck.CulpritProcess, "System", "process", "medium", "1 4.1d8", ""},
	"process_unknown": {codes.ClassProcess, bugcheck.CulpritDriver, "faulty.sys", "frame", "low", "2 a process", "1"},
	"verifier_handle": {codes.ClassVerifier, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", "3 System", ""},
	"sanitizer":       {codes.ClassVerifier, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", "4 write, behind a global variable", ""},
	"undocumented":    {codes.ClassVideo, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "1 ", ""},
	"boot_device":     {codes.ClassStorage, bugcheck.CulpritDriver, "faulty.sys", "frame", "low", `1 \ArcName\multi(0)`, ""},
	"manual":          {codes.ClassRequested, bugcheck.CulpritNobody, "", "requested", "high", "1 ", ""},
	"video":           {codes.ClassVideo, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", "3 STATUS_INSUFFICIENT_RESOURCES", ""},
	"unloaded":        {codes.ClassDriver, bugcheck.CulpritDriver, "dump_stornvm", "unloaded", "medium", "2 execute", ""},
	"video_live":      {codes.ClassLive, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", "1 ", ""},
	"verifier":        {codes.ClassVerifier, bugcheck.CulpritDriver, "faulty.sys", "parameter", "high", "2 faulty.sys", ""},
	"unknown":         {codes.ClassOther, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "1 ", ""},
	"hostile":         {codes.ClassPower, bugcheck.CulpritDriver, "faulty.sys", "frame", "medium", "1 a device object blocks a power IRP for too long", "234"},
}

func TestScenes(t *testing.T) {
	scenes := fixtures.BugCheckScenes()
	if len(scenes) != len(wants) {
		t.Errorf("%d scenes, %d judged", len(scenes), len(wants))
	}
	for name, d := range scenes {
		w, ok := wants[name]
		if !ok {
			t.Errorf("nothing is said of %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, v := judge(t, openBytes(t, name+".dmp", d.Dump), images(t, d))
			check(t, v, w)
		})
		// Small dumps mostly come alone. What is to blame must not depend on images where
		// registers or parameters say it.
		t.Run(name+" without images", func(t *testing.T) {
			_, v := judge(t, openBytes(t, name+".dmp", d.Dump), triage.Options{})
			switch { // nothing but a search finds the driver
			case name == "stack_overflow": // whose stack nothing measures
				w.step = "context"
			case w.step == "frame" || name == "divide":
				w.step, w.confidence = "scan", "low"
			}
			check(t, v, w)
		})
	}
}

func check(t *testing.T, v *bugcheck.Verdict, w want) {
	t.Helper()
	b := &v.Blame
	if v.Class != w.class || b.Culprit != w.culprit || b.Name != w.name || b.Step != w.step || b.Confidence != w.confidence {
		t.Errorf("class %s, blames %s %q by %s, confidence %s;\nwant %+v", v.Class, b.Culprit, b.Name, b.Step, b.Confidence, w)
	}
	i, name, _ := strings.Cut(w.parameter, " ")
	if p := v.Parameters[i[0]-'1']; p.Name+p.Text != name {
		t.Errorf("parameter %s is %q, want %q", i, p.Name+p.Text, name)
	}
	missing := ""
	for i, p := range v.Parameters {
		if p.Missing {
			missing += string(rune('1' + i))
		}
	}
	if missing != w.missing {
		t.Errorf("parameters %q lead nowhere, want %q", missing, w.missing)
	}
}

// The walk starts at the fault wherever its registers are, and says where that was.
func TestFault(t *testing.T) {
	scenes := fixtures.BugCheckScenes()
	pc := scenes["irql"].Walk[3].PC
	for name, want := range map[string]struct {
		source    dump.ContextSource
		parameter int
		missing   bool
		index     int
	}{
		"irql":                 {dump.ContextHeader, 3, false, 3}, // by unwinding through the trap
		"thread_exception":     {dump.ContextParameter, 3, false, 0},
		"thread_exception_bad": {dump.ContextHeader, 3, true, 3},
		"service_exception":    {dump.ContextParameter, 2, false, 0},
		"security_check":       {dump.ContextTrapFrame, 1, false, 0},
	} {
		d := scenes[name]
		inc, _ := judge(t, openBytes(t, name, d.Dump), images(t, d))
		f, th := inc.BugCheck.Fault, &inc.Threads[inc.Crashing]
		if f.Source != want.source || f.Parameter != want.parameter || f.Missing != want.missing || f.Index != want.index || f.At == nil || f.At.IP != pc {
			t.Errorf("%s: %+v", name, f)
		}
		if got := th.Kernel.Frames[want.index].IP; got != pc {
			t.Errorf("%s: the fault's frame is at %#x, want %#x", name, got, pc)
		}
		if (th.Handler != nil) != (want.index == 0) {
			t.Errorf("%s: the bugcheck's own frames: %+v", name, th.Handler)
		}
		if h := th.Handler; h != nil && (len(h.Frames) != 3 || h.Frames[0].Name.Function != "KeBugCheckEx") {
			t.Errorf("%s: the bugcheck's own frames: %+v", name, h.Frames)
		}
	}
}

// A stack is measured from where the fault's stack pointer stood.
func TestStackUse(t *testing.T) {
	scenes := fixtures.BugCheckScenes()
	for name, overflow := range map[string]bool{"stack_overflow": true, "double_fault": false} {
		d := scenes[name]
		_, v := judge(t, openBytes(t, name, d.Dump), images(t, d))
		u := v.Stack
		if u == nil || u.Overflow != overflow || u.Size != 0x6000 {
			t.Fatalf("%s: %+v", name, u)
		}
		if overflow && (u.Left < 0 || u.Left >= 0x200 || u.Modules[0].Module.Name() != "faulty.sys" || u.Modules[0].Bytes < 0x5000) {
			t.Errorf("%s: %+v", name, u)
		}
	}
	d := scenes["stack_overflow"]
	if _, v := judge(t, openBytes(t, "alone", d.Dump), triage.Options{}); v.Stack == nil || !v.Stack.Overflow || len(v.Stack.Modules) != 0 {
		t.Errorf("frames that a search found were measured: %+v", v.Stack)
	}
	d = scenes["divide"]
	if _, v := judge(t, openBytes(t, "divide", d.Dump), images(t, d)); v.Stack != nil {
		t.Errorf("a division by zero measured the stack: %+v", v.Stack)
	}
}

// A stack pointer that is not near the stack says nothing of how full that is: it may be
// one of user mode, damaged, or of another stack.
func TestStackUseElsewhere(t *testing.T) {
	const limit = 0xffffd58a1f4c1000 // of the scenes' thread
	for sp, want := range map[uint64]*bugcheck.StackUse{
		0: nil, 8: nil, 0x12f000: nil, 0x4141414141414141: nil, 0x7ffe00001000: nil, limit - 1<<30: nil, limit - 0x10000: nil, limit + 1<<30: nil, ^uint64(7): nil,
		limit - 0x80: {Left: -0x80, Overflow: true}, limit: {Overflow: true}, limit + 0x1000: {Left: 0x1000},
	} {
		b := bytes.Clone(fixtures.BugCheckScenes()["double_fault"].Dump)
		le := binary.LittleEndian
		old, pc, changed := le.Uint64(b[0x50:]), le.Uint64(b[0x58:]), 0 // parameters 3 and 4
		for i := 0; i+0x20 <= len(b); i++ {
			if le.Uint64(b[i:]) == pc && le.Uint64(b[i+0x18:]) == old { // Rip and Rsp of a trap frame: the parameter's, and the one on the stack
				le.PutUint64(b[i+0x18:], sp)
				changed++
			}
		}
		le.PutUint64(b[0x50:], sp)
		if changed == 0 {
			t.Fatal("no trap frame")
		}
		_, v := judge(t, openBytes(t, "double_fault", b), triage.Options{})
		got, name := v.Stack, v.Parameters[0].Name
		if (got == nil) != (want == nil) || got != nil && (got.Left != want.Left || got.Overflow != want.Overflow || got.Size != 0x6000) {
			t.Errorf("%#x: %+v, want %+v", sp, got, want)
		}
		if got == nil && !strings.HasSuffix(name, "or hardware fails") { // which of the two is not known
			t.Errorf("%#x: %s", sp, name)
		}
	}
}

// Addresses by their region, values that no page names, codes that no page describes.
func TestWords(t *testing.T) {
	scenes := fixtures.BugCheckScenes()
	for name, want := range map[string]struct {
		documented codes.Documentation
		unnamed    string
		region     bugcheck.Region // of parameter 1
	}{
		"irql":         {codes.Documented, "", bugcheck.RegionNull},
		"undocumented": {codes.Undocumented, "", ""},
		"manual":       {codes.NoParameters, "", ""},
		"unknown":      {codes.Undocumented, "", ""},
		"page_fault":   {codes.Documented, "4", bugcheck.RegionKernel},
		"power_bad":    {codes.Documented, "", ""},
	} {
		d := scenes[name]
		_, v := judge(t, openBytes(t, name, d.Dump), images(t, d))
		unnamed := ""
		for i, p := range v.Parameters {
			if p.Unnamed {
				unnamed += string(rune('1' + i))
			}
		}
		if v.Documented != want.documented || unnamed != want.unnamed || v.Parameters[0].Region != want.region {
			t.Errorf("%s: %s, unnamed %q, region %q", name, v.Documented, unnamed, v.Parameters[0].Region)
		}
	}
}

// The processor's manual: an address is canonical when the bits above those that it
// translates, 48 or 57, are copies of the highest.
func TestRegionOf(t *testing.T) {
	for _, c := range []struct {
		arch dump.Arch
		va   uint64
		want bugcheck.Region
	}{
		{dump.AMD64, 0, bugcheck.RegionNull}, {dump.AMD64, 0xffff, bugcheck.RegionNull}, {dump.AMD64, 0x10000, bugcheck.RegionUser},
		{dump.AMD64, 0x7fffffffffff, bugcheck.RegionUser}, {dump.AMD64, 0x800000000000, bugcheck.RegionUnknown},
		{dump.AMD64, 0x100000000000000, bugcheck.RegionNotCanonical}, {dump.AMD64, 0x4141414141414141, bugcheck.RegionNotCanonical},
		{dump.AMD64, 0xfeffffffffffffff, bugcheck.RegionNotCanonical}, {dump.AMD64, 0xff00000000000000, bugcheck.RegionUnknown},
		{dump.AMD64, 0xffff800000000000, bugcheck.RegionKernel}, {dump.AMD64, ^uint64(0), bugcheck.RegionKernel},
		{dump.ARM64, 0x4141414141414141, bugcheck.RegionUnknown}, // may have a signature in it
		{dump.X86, 0x7fffffff, bugcheck.RegionUser}, {dump.X86, 0x80000000, bugcheck.RegionUnknown}, {dump.X86, 0xc0000000, bugcheck.RegionKernel},
	} {
		if got := bugcheck.RegionOf(c.arch, c.va); got != c.want {
			t.Errorf("%s %#x: %q, want %q", c.arch, c.va, got, c.want)
		}
	}
}

func TestDrivers(t *testing.T) {
	d := fixtures.BugCheckScenes()["irql"]
	_, v := judge(t, openBytes(t, "irql", d.Dump), images(t, d))
	if len(v.Drivers) != 1 || v.Drivers[0].Module.Name() != "faulty.sys" || v.Drivers[0].Frames != 2 || v.Drivers[0].First != 3 || v.Drivers[0].Scanned {
		t.Errorf("%+v", v.Drivers)
	}
}
