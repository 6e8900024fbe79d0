package kdump

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
	"dumptriage/internal/cursor"
)

// TestTrapFramesX86: KTHREAD.TrapFrame, and where a thread has none, having made
// no system call yet, the place below InitialStack.
func TestTrapFramesX86(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86} {
		m := machine.Build(v)
		f := openBytes(t, m.Dump(machine.Full))
		rules := map[string]int{}
		for _, th := range f.Threads() {
			for _, want := range m.Processes[1].Threads {
				if want.ETHREAD != th.Kernel.ETHREAD {
					continue
				}
				rules[th.Kernel.TrapFrameRule]++
				if th.Kernel.TrapFrame != want.TrapFrame || pcsp(&th.Kernel.User) != [2]uint64{want.User[0].PC, want.User[0].SP} {
					t.Errorf("%s: %x: trap frame %#x, user %#x; want %#x, %#x", v.Name, th.ID, th.Kernel.TrapFrame, pcsp(&th.Kernel.User), want.TrapFrame, want.User[0].PC)
				}
			}
		}
		if rules["kthread_trap_frame"] != 4 || rules["initial_stack"] != 1 {
			t.Errorf("%s: rules %v", v.Name, rules)
		}
	}
}

// TestBelowInitialStack: "Stack Init" and "TrapFrame @" of !thread end, by page
// offset, in 1000 and d64 on XP, fd0 and d34 on Windows 7, ca0 and c14 on Windows 8.1. These
// are remembered, not measured: the test keeps the code from changing unseen.
func TestBelowInitialStack(t *testing.T) {
	for _, c := range []struct {
		build       uint32
		initial, tf uint64
	}{{2600, 0x1000, 0xd64}, {7601, 0xfd0, 0xd34}, {9200, 0xca0, 0xc14}, {9600, 0xca0, 0xc14}, {19041, 0xca0, 0xc14}} {
		f := &File{hdr: &header{build: c.build, arch: dump.X86}}
		if got := c.initial - f.belowInitialStack(); got != c.tf {
			t.Errorf("build %d: %#x, want %#x", c.build, got, c.tf)
		}
	}
}

func TestStackTrapFrameX86(t *testing.T) {
	m := machine.BuildFault(machine.WindowsX86, machine.DriverIrqlNotLessOrEqual)
	f := openBytes(t, m.Triage())
	th := m.CPUs[0].Thread
	at := th.Fault()[0]
	header, _ := f.HeaderContext()
	sp, _ := header.SP()
	va, regs, ok := f.StackTrapFrame(sp, th.StackBase, at.PC)
	if !ok || va != at.SP-0x74 || pcsp(&regs) != [2]uint64{at.PC, at.SP} {
		t.Fatalf("%v, %#x, %#x; want %#x, %#x", ok, va, pcsp(&regs), at.SP-0x74, at.PC)
	}
	// The head of a Windows 10 frame has edx, ecx and eax from 0x38 on.
	for reg, want := range map[dump.Reg]uint64{dump.RAX: 0xa0, dump.RCX: 0xc0, dump.RDX: 0xd0, dump.RBX: 0x1b, dump.RSI: 0x1e, dump.RDI: 0x1d} {
		if v, known := regs.Get(reg); !known || v != want {
			t.Errorf("register %d is %#x, %v; want %#x", reg, v, known, want)
		}
	}
	if _, _, ok := f.StackTrapFrame(sp, th.StackBase, at.PC+1); ok {
		t.Error("found one of another address")
	}
	if _, _, ok := f.StackTrapFrame(sp, va+0x6c, at.PC); ok {
		t.Error("found one beyond the end")
	}
	m.Kernel.U32(va+4, uint32(at.PC)+1) // DbgEip
	if _, _, ok := openBytes(t, m.Triage()).StackTrapFrame(sp, th.StackBase, at.PC); ok {
		t.Error("found one that does not repeat the address")
	}
}

// TestVolatilesX86: where a version's frame has eax is published for Windows up to
// 7 and 10, and not taken for what is between.
func TestVolatilesX86(t *testing.T) {
	for build, want := range map[uint32]int{2600: 0x44, 7601: 0x44, 9200: 0, 9600: 0, 10240: 0x40, 19041: 0x40} {
		f := &File{hdr: &header{build: build, arch: dump.X86}}
		got := 0
		for _, s := range f.volatileSlotsX86() {
			if s.reg == dump.RAX {
				got = s.off
			}
		}
		if got != want {
			t.Errorf("build %d: eax at %#x, want %#x", build, got, want)
		}
	}
}

// TestDoubleFaultX86: without the parameter the processor's KPCR names the task
// state segment, and what no task gate filled is none.
func TestDoubleFaultX86(t *testing.T) {
	m := machine.BuildFault(machine.WindowsPAE, machine.UnexpectedKernelTrap)
	want := m.CPUs[0].Thread.Fault()[0]
	for name, c := range map[string]struct {
		edit      func(b []byte)
		parameter int
		found     bool
	}{
		"parameter":    {func([]byte) {}, 1, true},
		"KPCR":         {func(b []byte) { binary.LittleEndian.PutUint32(b[0x30:], 0) }, -1, true},
		"another trap": {func(b []byte) { binary.LittleEndian.PutUint32(b[0x2c:], 0xd) }, -1, false},
	} {
		b := m.Triage()
		c.edit(b)
		f := openBytes(t, b)
		regs, source, ok := f.FaultContext()
		if ok != c.found {
			t.Errorf("%s: found %v", name, ok)
			continue
		}
		if p, _ := f.FaultParameter(); p != c.parameter || ok && (source != dump.ContextTask || pcsp(&regs) != [2]uint64{want.PC, want.SP}) {
			t.Errorf("%s: parameter %d, %v, %#x", name, p, source, pcsp(&regs))
		}
	}
	tss := m.Parameters[1]
	for name, edit := range map[string]struct {
		off uint64
		v   uint32
	}{"user code": {0x4c, 0x1b}, "no flags": {0x24, 0}, "no eip": {0x20, 0}, "a user stack": {0x38, 0x12fe00}} {
		b := m.Kernel.Read(tss+edit.off, 4)
		m.Kernel.U32(tss+edit.off, edit.v)
		if _, _, ok := openBytes(t, m.Triage()).FaultContext(); ok {
			t.Errorf("%s: taken for registers", name)
		}
		if n := tasks(openBytes(t, m.Dump(machine.Full))); n != 0 {
			t.Errorf("%s: %d threads have registers of a task", name, n)
		}
		m.Kernel.Write(tss+edit.off, b)
	}
	if n := tasks(openBytes(t, m.Dump(machine.Full))); n != 1 {
		t.Errorf("%d threads have registers of a task", n)
	}
}

// tasks counts the threads that were left for another task.
func tasks(f *File) (n int) {
	for _, th := range f.Threads() {
		if !th.Kernel.Task.Empty() {
			n++
		}
	}
	return n
}

// TestProcessorState: where the data block does not say where KPRCB.Context is,
// each processor's registers are in KPRCB.ProcessorState.
func TestProcessorState(t *testing.T) {
	for _, v := range []machine.Variant{machine.WindowsPAE, machine.WindowsX86, machine.Windows22H2, machine.Windows7} {
		v.OldBlock = true
		m := machine.Build(v)
		f := openBytes(t, m.Dump(machine.Full))
		cpus := f.CPUs()
		if len(cpus) != len(m.CPUs) {
			t.Fatalf("%s: %d processors, want %d; damage %v", v.Name, len(cpus), len(m.CPUs), f.Damage())
		}
		for i, want := range m.CPUs {
			got := &cpus[i]
			source := dump.ContextPRCB
			if i == 0 {
				source = dump.ContextHeader // it wrote the dump
			}
			if got.Source != source || got.Idle != want.IsIdle || pcsp(&got.Context) != [2]uint64{want.Kernel[0].PC, want.Kernel[0].SP} {
				t.Errorf("%s: processor %d: %v, idle %v, %#x; want %#x at %#x", v.Name, i, got.Source, got.Idle, pcsp(&got.Context), want.Kernel[0].PC, want.Kernel[0].SP)
			}
		}
	}
}

// TestProcessorStateStale: where the block says where KPRCB.Context is, what lies
// in ProcessorState is of another time.
func TestProcessorStateStale(t *testing.T) {
	m := machine.Build(machine.WindowsPAE)
	prcb := m.CPUs[1].PRCB
	offsets := m.Variant.Offsets()
	m.Kernel.Write(prcb+offsets["KPRCB.ProcessorState"], m.CPUs[1].Context)
	m.Kernel.U32(prcb+offsets["KPRCB.Context"], 0)
	f := openBytes(t, m.Dump(machine.Full))
	if c := f.CPUs()[1]; c.Source != dump.ContextNone {
		t.Errorf("%+v", c)
	}
}

// TestProcessorStateForeign: registers of user code with a kernel stack, or the other
// way round, are none that a processor saved.
func TestProcessorStateForeign(t *testing.T) {
	const segCs, esp = 0xbc, 0xc4 // of the x86 CONTEXT
	for name, edit := range map[string]struct {
		off uint64
		v   uint32
	}{"user code": {segCs, 0x1b}, "a user stack": {esp, 0x12fe00}, "no selector": {segCs, 0}} {
		v := machine.WindowsPAE
		v.OldBlock = true
		m := machine.Build(v)
		m.Kernel.U32(m.CPUs[1].PRCB+v.Offsets()["KPRCB.ProcessorState"]+edit.off, edit.v)
		if c := openBytes(t, m.Dump(machine.Full)).CPUs()[1]; c.Source != dump.ContextNone {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestDriverListX86: the entries' checksums and stamps are those of the images.
func TestDriverListX86(t *testing.T) {
	m := machine.BuildFault(machine.WindowsPAE, machine.KernelModeException)
	got := openBytes(t, m.Triage()).Modules()
	if len(got) != len(m.Drivers) {
		t.Fatalf("%d drivers, want %d", len(got), len(m.Drivers))
	}
	for i, want := range m.Drivers {
		if d := &got[i]; d.Base != want.Base || d.Size != uint64(want.Size) || d.CheckSum != want.Image.CheckSum() || d.TimeDateStamp != want.Stamp || d.Path != want.Path {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
}

// TestOldBlock: a block as short as that of Windows XP says nothing of offsets. It
// is of use for that build alone, whose layout is known.
func TestOldBlock(t *testing.T) {
	b := &bin{make([]byte, 0x290)}
	b.u32(0x10, 0x4742444b)
	b.u32(0x14, 0x290)
	b.u64(0x18, 0xffffffff804d7000)
	for _, c := range []struct {
		arch    dump.Arch
		build   uint32
		ethread int
	}{{dump.X86, 2600, 0x258}, {dump.X86, 3790, 0}, {dump.AMD64, 2600, 0}} {
		k, err := parseKDBG(cursor.New(b.b, kdbgStream, -1), 4)
		if err != nil {
			t.Fatal(err)
		}
		k.addOldLayout(&header{arch: c.arch, build: c.build})
		if k.thread.size != c.ethread || (k.prcb.size != 0) != (c.ethread != 0) {
			t.Errorf("%s %d: ETHREAD of %#x, KPRCB of %#x", c.arch, c.build, k.thread.size, k.prcb.size)
		}
	}
	b.u32(0x14, 0x28c)
	if _, err := parseKDBG(cursor.New(b.b, kdbgStream, -1), 4); err == nil {
		t.Error("a shorter block is taken")
	}
}
