package kdump

import (
	"testing"
	"time"

	"dumptriage/dump"
)

const (
	faultIP = 0xfffff80020001234
	faultSP = stackBase - 0x1800
	entryIP = ntBase + 0x3f6a80 // KeBugCheckEx
	entrySP = stackBase - 0x4000
)

// system7E is a 0x7E in a system thread: P3 and P4 point at an EXCEPTION_RECORD
// and a CONTEXT on the stack, the header stands at KeBugCheckEx. A second
// processor runs its idle thread; a second thread waits.
func system7E() *bugcheck64 {
	h := header64Bytes(4, 0x1000007e, [4]uint64{0xffffffffc0000005, faultIP, recordVA, contextVA})
	ctx := &bin{amd64Context(entryIP, entrySP)}
	ctx.u64(0x80, 0x7e) // rcx
	ctx.u64(0x88, 0xffffffffc0000005)
	ctx.u64(0xb8, faultIP)
	ctx.u64(0xc0, recordVA)
	h.put(0x348, ctx.b)
	h.u32(0xf00, 0x80000003)
	h.u32(0xf04, 1)
	h.u64(0xf08, 0)
	h.u64(0xf10, entryIP)
	h.u32(0xf18, 0)
	h.u32(0x1038, 0xcff)

	stack := &bin{make([]byte, 0x4000)} // from entrySP to stackBase
	stack.put(int(contextVA-uint64(entrySP)), amd64Context(faultIP, faultSP))
	rec := int(recordVA - uint64(entrySP))
	stack.u32(rec, 0xc0000005)
	stack.u64(rec+0x10, faultIP)
	stack.u32(rec+0x18, 2)
	stack.u64(rec+0x20, 1)
	stack.u64(rec+0x28, 0x18)

	const base2 = uint64(0xffffa00000108000)
	blobs := &bin{}
	blobs.put(0, []byte("DumpBlob"))
	blobs.u32(8, 0x10)
	blobs.u32(12, 0xf0004a61)
	record := func(guid byte, size, pre, post uint32) {
		off := len(blobs.b)
		blobs.u32(off, 0x20)
		blobs.u8(off+4, guid)
		blobs.grow(off + 0x14)
		blobs.u32(off+0x14, size)
		blobs.u32(off+0x18, pre)
		blobs.u32(off+0x1c, post)
		blobs.grow(off + 0x20 + int(size+pre+post))
	}
	record(1, 5, 3, 0)
	record(0, 0, 0, 0) // an empty one with a zero GUID must not end the list
	record(2, 8, 0, 4)
	blobs.grow(len(blobs.b) + 64) // a tail of zeros does

	return &bugcheck64{
		header:  h,
		prcb:    prcb64(0, ethread, prcbVA+0x9000, 0),
		process: eprocess64(4, 0),
		thread:  ethread64(threadSpec{base: stackBase, state: 2, kernelStack: stackBase - 0x20000, pid: 4, tid: 264}),
		stack:   block{entrySP, stack.b},
		blobs:   blobs.b,
		blocks: []block{
			{base2 - 0x500, switchFrame64(base2-0x300, ntBase+0x1111)},
			{prcb1VA, prcb64(1, prcb1VA+0xb2c0, prcb1VA+0xb2c0, 0xffff900000000010)},
			{0xffff900000000010, amd64Context(ntBase+0x38d14d, 0xffffa00000207000)},
			{0xffffa00000207000, make([]byte, 0x800)},
			{0xffffa00000207800, make([]byte, 0x800)},
			{ethread, []byte{0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef}}, // the stub at the current thread
			{ntBase + 0xcfdc80, (&bin{}).pointers(prcbVA, prcb1VA)},           // KiProcessorBlock
			{ethread2, ethread64(threadSpec{base: base2, state: 5, kernelStack: base2 - 0x500, pid: 4, tid: 300})},
			{0xffffd00000400004, []byte("abcdef")},
			{0xffffd00000400000, []byte("0123456789")}, // overlaps the one before, which wins
		},
	}
}

func (m *bin) pointers(vs ...uint64) []byte {
	for _, v := range vs {
		m.u64(len(m.b), v)
	}
	return m.b
}

func TestBugCheck7E(t *testing.T) {
	f := openBytes(t, system7E().bytes())
	if f.Kind() != "triage" || f.Live() {
		t.Errorf("kind %q live %v", f.Kind(), f.Live())
	}
	if bc := f.BugCheck(); bc.Code != 0x7e || bc.Raw != 0x1000007e || bc.Parameters[1] != faultIP {
		t.Errorf("bugcheck %+v", bc)
	}
	if got := f.Captured(); !got.Equal(time.Date(2021, 2, 21, 1, 38, 22, 987765700, time.UTC)) {
		t.Errorf("captured %v", got)
	}
	s := f.System()
	if s.Arch != dump.AMD64 || s.Major != 10 || s.Build != 19041 || s.NTVersion != "10.0.19041.804" || s.Revision != 804 || s.CPUCount != 2 ||
		s.Uptime != 10*time.Minute || s.ProductType != 1 || s.SuiteMask != 0x110 || s.CPUVendor != "GenuineIntel" || s.CPUMHz != 2400 ||
		s.CPUFamily != 6 || s.CPUModel != 0x9e || s.CPUStepping != 3 {
		t.Errorf("system %+v", *s)
	}
	p := f.Process()
	if p.PID != 4 || !p.HasPID || p.Name != "ConsoleApp1.ex" || p.EPROCESS != eprocess || p.DirBase != 0x36795000 || p.PEB != 0x7ff000 {
		t.Errorf("process %+v", *p)
	}
	if mods := f.Modules(); len(mods) != 2 || mods[0].Name() != "ntoskrnl.exe" || mods[0].Base != ntBase || mods[0].Size != ntSize ||
		mods[0].CheckSum != 0xa5938c || mods[0].TimeDateStamp != ntStamp || !mods[0].Kernel || mods[1].Path != `\SystemRoot\System32\drivers\bad.sys` {
		t.Errorf("modules %+v", mods)
	}
	if u := f.UnloadedModules(); len(u) != 1 || u[0].Path != "dump_storpor" || u[0].Base != 0xfffff80030000000 || u[0].Size != 0x33000 || !u[0].Unloaded {
		t.Errorf("unloaded %+v", u)
	}
	if f.BrokenDriver() != `\SystemRoot\System32\drivers\bad.sys` {
		t.Errorf("broken driver %q", f.BrokenDriver())
	}
	wantNoDamage(t, f)
}

func TestBugCheckThreads(t *testing.T) {
	f := openBytes(t, system7E().bytes())
	ts := f.Threads()
	if len(ts) != 2 {
		t.Fatalf("%d threads", len(ts))
	}
	a, b := ts[0], ts[1]
	if a.ID != 264 || a.Kernel.PID != 4 || a.Kernel.CPU != 0 || a.Kernel.ETHREAD != ethread || a.ContextSource != dump.ContextParameter ||
		pcsp(&a.Context) != [2]uint64{faultIP, faultSP} || a.StackBase != stackBase || a.StackLimit != stackBase-0x6000 || a.TEB != 0 {
		t.Errorf("current thread %+v %+v", a, *a.Kernel)
	}
	if a.Kernel.TrapFrame != 0 || !a.Kernel.User.Empty() {
		t.Errorf("a system thread has no user half: %+v", *a.Kernel)
	}
	// Waiting: rbp, rip from the frame, rsp just above it; nothing else is known.
	ks := uint64(0xffffa00000108000 - 0x500)
	if b.ID != 300 || b.Kernel.CPU != -1 || b.Kernel.State != 5 || b.Kernel.WaitReason != 6 || b.ContextSource != dump.ContextSwitchFrame ||
		pcsp(&b.Context) != [2]uint64{ntBase + 0x1111, ks + 0x40} || b.Context.Known(dump.RBX) {
		t.Errorf("waiting thread %+v %+v", b, *b.Kernel)
	}
	if rbp, ok := b.Context.Get(dump.RBP); !ok || rbp != ks+0x200 {
		t.Errorf("rbp %#x %v", rbp, ok)
	}
	if e := f.Exception(); e == nil || e.Code != 0xc0000005 || e.Address != faultIP || len(e.Parameters) != 2 || e.Parameters[1] != 0x18 || e.ThreadID != 264 {
		t.Errorf("exception %+v", e)
	}
	if !f.BugCheckEntry() {
		t.Error("the header stands at the entry of KeBugCheckEx")
	}
	if regs, ok := f.HeaderContext(); !ok || pcsp(&regs) != [2]uint64{entryIP, entrySP} {
		t.Errorf("header context %v %#x", ok, pcsp(&regs))
	}
}

func TestBugCheckCPUs(t *testing.T) {
	f := openBytes(t, system7E().bytes())
	cpus := f.CPUs()
	if len(cpus) != 2 {
		t.Fatalf("%d processors", len(cpus))
	}
	if c := cpus[0]; c.Number != 0 || c.PRCB != prcbVA || c.ETHREAD != ethread || c.ThreadID != 264 || c.Idle || c.Source != dump.ContextHeader || c.StackBase != stackBase {
		t.Errorf("processor 0: %+v", c)
	}
	// Its stack is two adjoining blocks: the top is the end of the second.
	if c := cpus[1]; c.Number != 1 || c.PRCB != prcb1VA || !c.Idle || c.ThreadID != 0 || c.Source != dump.ContextPRCB ||
		pcsp(&c.Context) != [2]uint64{ntBase + 0x38d14d, 0xffffa00000207000} || c.StackBase != 0xffffa00000208000 {
		t.Errorf("processor 1: %+v", c)
	}
}

// Copies win over stubs, the first block over a later one.
func TestBugCheckMemory(t *testing.T) {
	f := openBytes(t, system7E().bytes())
	if v, err := dump.ReadUint64(f.Memory(), ethread+0x38); err != nil || v != stackBase {
		t.Errorf("ETHREAD copy: %#x %v", v, err)
	}
	if v, err := dump.ReadUint32(f.Memory(), ethread); err != nil || v != 6 {
		t.Errorf("the stub won: %#x %v", v, err)
	}
	b := make([]byte, 12)
	n, err := f.Memory().ReadAt(b, 0xffffd00000400000)
	if string(b[:n]) != "0123abcdef" || err == nil {
		t.Errorf("overlap: %q %v", b[:n], err)
	}
	if v, err := dump.ReadUint32(f.Memory(), kdbgVA+0x10); err != nil || v != 0x4742444b {
		t.Errorf("KDBG: %#x %v", v, err)
	}
}

func TestSectionsAndBlobs(t *testing.T) {
	f := openBytes(t, system7E().bytes())
	blobs := f.Blobs()
	if len(blobs) != 3 || blobs[0].GUID[0] != 1 || blobs[0].Size != 5 || blobs[1].Size != 0 || blobs[2].Size != 8 {
		t.Fatalf("blobs %+v", blobs)
	}
	start := int64(f.tri.sizeOfDump)
	if blobs[0].Offset != start+0x10+0x20+3 || blobs[2].Offset != start+0x10+0x28+0x20+0x20 {
		t.Errorf("blob offsets %#x %#x from %#x", blobs[0].Offset, blobs[2].Offset, start)
	}
	count := map[string]int{}
	for _, s := range f.Sections() {
		count[s.Name] = s.Count
	}
	if count["DataBlocks"] != 10 || count["DriverList"] != 2 || count["SecondaryData"] != 3 || count["UnloadedDrivers"] != 1 {
		t.Errorf("sections %v", count)
	}
}

// A thread that was running when nobody kept its registers has none: its
// KernelStack is stale even when a plausible frame lies there.
func TestStaleKernelStackIsNotUsed(t *testing.T) {
	s := system7E()
	const base2 = uint64(0xffffa00000108000)
	s.blocks[7].data = ethread64(threadSpec{base: base2, state: 2, kernelStack: base2 - 0x500, pid: 4, tid: 300})
	f := openBytes(t, s.bytes())
	if th := f.Threads()[1]; th.ContextSource != dump.ContextNone || !th.Context.Empty() || th.Kernel.Note == "" {
		t.Errorf("thread %+v note %q", th, th.Kernel.Note)
	}
}

// Outside every kernel module a "return address" is none.
func TestSwitchFrameMustReturnIntoKernel(t *testing.T) {
	s := system7E()
	s.blocks[0].data = switchFrame64(0, 0xffffd00000000000)
	f := openBytes(t, s.bytes())
	if th := f.Threads()[1]; th.ContextSource != dump.ContextNone || th.Kernel.Note == "" {
		t.Errorf("thread %+v", th)
	}
}

// Without KiProcessorBlock the KPRCB's own empty lists say where it lies.
func TestPRCBAddressByItsLists(t *testing.T) {
	s := system7E()
	s.blocks[6].va = 0xffffd00000500000
	p := &bin{s.prcb}
	for _, off := range []int{0x2f80, 0x30a0, 0x3200, 0x5c00, 0x7000} {
		p.u64(off, prcbVA+uint64(off))
		p.u64(off+8, prcbVA+uint64(off))
	}
	f := openBytes(t, s.bytes())
	if c := f.CPUs()[0]; c.PRCB != prcbVA {
		t.Errorf("KPRCB at %#x", c.PRCB)
	}
}

func TestFaultTrapFrames(t *testing.T) {
	for name, c := range map[string]struct {
		code      uint32
		params    [4]uint64
		exception bool
	}{
		"0x139": {0x139, [4]uint64{3, contextVA, recordVA, 0}, true},
		"0x8e":  {0x1000008e, [4]uint64{0xc0000005, faultIP, contextVA, 0}, true},
		"0xbe":  {0xbe, [4]uint64{0xfffff8054b74d12d, 0x394d121, contextVA, 0xb}, false},
		// As published debugger transcripts show it: the frame, its stack pointer, its
		// program counter.
		"0x7f":  {0x7f, [4]uint64{8, contextVA, faultSP, faultIP}, false},
		"0x2b":  {0x2b, [4]uint64{contextVA, 0, 0, 0}, false},
		"0x151": {0x151, [4]uint64{faultIP, contextVA, 0, 0}, false},
	} {
		s := system7E()
		s.header.u32(0x38, c.code)
		for i, p := range c.params {
			s.header.u64(0x40+8*i, p)
		}
		tf := &bin{make([]byte, 0x190)}
		tf.u64(0x38, 0xcccc) // rcx
		tf.u64(0x140, 0x1)   // rbx: what lies there is not the faulting code's
		tf.u64(0x158, 0xb00)
		tf.u64(0x168, faultIP)
		tf.u16(0x170, 0x10)
		tf.u64(0x180, faultSP)
		tf.u16(0x188, 0x18)
		stack := &bin{s.stack.data}
		stack.put(int(contextVA-uint64(entrySP)), tf.b)
		f := openBytes(t, s.bytes())
		regs, source, ok := f.FaultContext()
		if !ok || source != dump.ContextTrapFrame || pcsp(&regs) != [2]uint64{faultIP, faultSP} || regs.Known(dump.RBX) {
			t.Errorf("%s: %v %v %#x", name, ok, source, pcsp(&regs))
		}
		if rcx, ok := regs.Get(dump.RCX); !ok || rcx != 0xcccc {
			t.Errorf("%s: rcx %#x %v", name, rcx, ok)
		}
		if e := f.Exception(); (e != nil) != c.exception || e != nil && (e.Code != 0xc0000005 || e.Address != faultIP) {
			t.Errorf("%s: exception %+v", name, e)
		}
		if th := f.Threads()[0]; th.ContextSource != dump.ContextTrapFrame {
			t.Errorf("%s: thread from %v", name, th.ContextSource)
		}
		// A frame from user mode is not the fault's.
		tf.u16(0x170, 0x33)
		stack.put(int(contextVA-uint64(entrySP)), tf.b)
		if _, _, ok := openBytes(t, s.bytes()).FaultContext(); ok {
			t.Errorf("%s: took a user-mode trap frame", name)
		}
	}
}

// A double fault's parameters are a trap frame only where they agree with it: before
// Windows 8 they are control registers, and another trap has none.
func TestDoubleFaultDisagrees(t *testing.T) {
	for _, params := range [][4]uint64{
		{8, 0x80050033, 0x406f8, faultIP}, // CR0, CR4
		{8, contextVA, faultSP + 8, faultIP},
		{8, contextVA, faultSP, faultIP + 1},
		{0xd, contextVA, faultSP, faultIP},
	} {
		s := system7E()
		s.header.u32(0x38, 0x7f)
		for i, p := range params {
			s.header.u64(0x40+8*i, p)
		}
		tf := &bin{make([]byte, 0x190)}
		tf.u64(0x168, faultIP)
		tf.u16(0x170, 0x10)
		tf.u64(0x180, faultSP)
		stack := &bin{s.stack.data}
		stack.put(int(contextVA-uint64(entrySP)), tf.b)
		f := openBytes(t, s.bytes())
		if _, _, ok := f.FaultContext(); ok {
			t.Errorf("%#x: took registers", params)
		}
		if p, found := f.FaultParameter(); p != -1 || found {
			t.Errorf("%#x: parameter %d, found %v", params, p, found)
		}
	}
}

// The exception of 0x1E has its first two parameters in the bugcheck's.
func TestExceptionParameters(t *testing.T) {
	s := system7E()
	s.header.u32(0x38, 0x1e)
	for i, p := range []uint64{0xffffffffc0000005, faultIP, 1, 0x28} {
		s.header.u64(0x40+8*i, p)
	}
	e := openBytes(t, s.bytes()).Exception()
	if e == nil || e.Code != 0xc0000005 || len(e.Parameters) != 2 || e.Parameters[0] != 1 || e.Parameters[1] != 0x28 {
		t.Errorf("%+v", e)
	}
}

// The parameter that holds the CONTEXT, as the reference gives it for each code.
func TestFaultContexts(t *testing.T) {
	for _, c := range []struct {
		code    uint32
		params  [4]uint64
		context int
	}{
		{0x23, [4]uint64{0x1a0042, recordVA, contextVA}, 2},
		{0x26, [4]uint64{0x1a0042, recordVA, contextVA}, 2},
		{0x9b, [4]uint64{0x1a0042, recordVA, contextVA}, 2},
		{0x108, [4]uint64{1, recordVA, contextVA}, 2},
		{0x10f, [4]uint64{recordVA, contextVA}, 1},
		{0x12c, [4]uint64{0x1a0042, recordVA, contextVA}, 2},
		{0x149, [4]uint64{0x42, recordVA, contextVA, faultIP}, 2},
		{0x18d, [4]uint64{2, faultIP, recordVA, contextVA}, 3},
	} {
		s := system7E()
		s.header.u32(0x38, c.code)
		for i, p := range c.params {
			s.header.u64(0x40+8*i, p)
		}
		f := openBytes(t, s.bytes())
		if regs, source, _ := f.FaultContext(); source != dump.ContextParameter || pcsp(&regs) != [2]uint64{faultIP, faultSP} {
			t.Errorf("%#x: registers from %v: %#x", c.code, source, pcsp(&regs))
		}
		if p, found := f.FaultParameter(); p != c.context || !found {
			t.Errorf("%#x: parameter %d, found %v", c.code, p, found)
		}
		if e := f.Exception(); e == nil || e.Code != 0xc0000005 || e.Address != faultIP {
			t.Errorf("%#x: exception %+v", c.code, e)
		}
	}
}

// A parameter that points outside the dump leaves the header's registers.
func TestFaultContextMissing(t *testing.T) {
	s := system7E()
	s.header.u64(0x58, 0xffffa00000900000)
	f := openBytes(t, s.bytes())
	if th := f.Threads()[0]; th.ContextSource != dump.ContextHeader || pcsp(&th.Context) != [2]uint64{entryIP, entrySP} {
		t.Errorf("thread %+v", th)
	}
}

// Registers that are not at the entry of KeBugCheckEx with its arguments prove
// nothing about what the stack pointer points at.
func TestBugCheckEntryNeedsProof(t *testing.T) {
	for name, spoil := range map[string]func(*bin){
		"rip":     func(h *bin) { h.u64(0x348+0xf8, entryIP+4) },
		"rcx":     func(h *bin) { h.u64(0x348+0x80, 0x7f) },
		"rdx":     func(h *bin) { h.u64(0x348+0x88, 1) },
		"r9":      func(h *bin) { h.u64(0x348+0xc0, 1) },
		"code":    func(h *bin) { h.u32(0xf00, 0xc0000005) },
		"context": func(h *bin) { h.u64(0x348+0xf8, 0) },
	} {
		s := system7E()
		spoil(s.header)
		if openBytes(t, s.bytes()).BugCheckEntry() {
			t.Errorf("%s: taken for the entry", name)
		}
	}
}

// Without a copy of its block in the header the processor that wrote the dump is
// the one whose stack pointer is the header's.
func TestCrashedProcessorByStackPointer(t *testing.T) {
	s := system7E()
	s.prcb, s.thread = nil, nil
	s.header.put(0x348, amd64Context(ntBase+0x38d14d, 0xffffa00000207000))
	f := openBytes(t, s.bytes())
	if len(f.processors()) != 1 || !f.processors()[0].crashed || f.processors()[0].number != 1 {
		t.Errorf("processors %+v", f.processors())
	}
}

// A block that the end of the file cuts keeps the bytes that are there.
func TestCutBlock(t *testing.T) {
	s := system7E()
	s.blobs = nil
	const va = 0xffffd00000800000
	s.blocks = append(s.blocks, block{va, []byte("0123456789abcdef")})
	b := s.bytes()
	f := openBytes(t, b[:len(b)-4-6]) // TRGD and six bytes of the last block
	got := make([]byte, 16)
	n, err := f.Memory().ReadAt(got, va)
	if string(got[:n]) != "0123456789" || err == nil {
		t.Errorf("%q %v", got[:n], err)
	}
	if d := f.Damage(); len(d) != 2 || d[0].Code != dump.Truncated || d[1].Code != dump.Truncated || d[1].Stream != "TRIAGE_DATA_BLOCK" {
		t.Errorf("damage %v", d)
	}
}

// A thread without a TEB has no user half, whatever lies at the top of its stack.
func TestSystemThreadHasNoTrapFrame(t *testing.T) {
	s := system7E()
	stack := &bin{s.stack.data}
	userTrapFrame(stack, 0x4000-0x370-0x190, 0x7ffe00001000, 0x10000008)
	f := openBytes(t, s.bytes())
	if k := f.Threads()[0].Kernel; k.TrapFrame != 0 || !k.User.Empty() {
		t.Errorf("trap frame %#x", k.TrapFrame)
	}
}
