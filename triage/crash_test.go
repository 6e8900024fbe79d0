package triage

import (
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

func TestCrashScene(t *testing.T) {
	c := fixtures.CrashAMD64()
	dir := imageDir(t, map[string][]byte{"crashdemo.exe": c.Image})
	inc := analyze(t, openBytes(t, "crashdemo.dmp", c.Dump), nil, Options{Images: []string{dir}})
	if inc.Crashing != 0 || inc.Crash == nil || inc.Crash.Code != 0xc0000005 || inc.Crash.Module == nil || inc.Crash.Module.Name() != "crashdemo.exe" {
		t.Fatalf("crashing %d, %+v", inc.Crashing, inc.Crash)
	}
	if in := inc.Crash.Instruction; in == nil || in.Text != "mov eax, dword ptr [rcx+0x10]" || len(in.Accesses) != 1 || in.Accesses[0] != (MemoryAccess{Address: 0x10, Size: 4, Write: false, Known: true}) {
		t.Errorf("instruction %+v", in)
	}
	if a := inc.Crash.Adjusted; a == nil || *a != (AdjustedAddress{Kind: "null-pointer", Offset: 0x10}) {
		t.Errorf("adjusted %+v", a)
	}
	th := &inc.Threads[0]
	wantHalf(t, "user", th.User, c.Walk)
	for i, f := range th.User.Frames {
		if f.Name.Function != c.Walk[i].Function || f.Name.Offset != c.Walk[i].Offset || f.Name.Source != symbols.SourceExport {
			t.Errorf("frame %d is %+v, want %s+%#x", i, f.Name, c.Walk[i].Function, c.Walk[i].Offset)
		}
	}
	if th.User.Frames[0].Method != unwind.MethodException || th.Handler != nil { // the thread's own registers are the exception's
		t.Errorf("begins by %q, handler %+v", th.User.Frames[0].Method, th.Handler)
	}
}

func TestBugCheckScene(t *testing.T) {
	b := fixtures.BugCheckTriage()
	dir := imageDir(t, map[string][]byte{"ntoskrnl.exe": b.NT, "faulty.sys": b.Driver})
	inc := analyze(t, nil, openBytes(t, "faulty.dmp", b.Dump), Options{Images: []string{dir}})
	if inc.BugCheck == nil || inc.BugCheck.Code != 0xd1 || inc.BugCheck.Live || inc.Crashing != 0 {
		t.Fatalf("crashing %d, %+v", inc.Crashing, inc.BugCheck)
	}
	th := &inc.Threads[0]
	wantHalf(t, "kernel", th.Kernel, b.Walk)
	for i := range th.Kernel.Frames { // nothing here is a capture's
		if th.Kernel.Frames[i].Capture {
			t.Errorf("frame %d is marked", i)
		}
	}
	if th.User != nil || th.Seam != nil || th.Stitched {
		t.Errorf("a system thread's user half: %+v", th)
	}
	if len(inc.CPUs) == 0 || inc.CPUs[0].Thread != 0 || inc.CPUs[0].Kernel != th.Kernel {
		t.Errorf("processors %+v", inc.CPUs)
	}
	if f := inc.BugCheck.Fault; f.Source != dump.ContextHeader || f.TrapFrame != 0 || f.Index != 3 || f.Parameter != 3 || inc.Threads[0].Handler != nil {
		t.Errorf("fault %+v, handler %+v", f, inc.Threads[0].Handler)
	}
	// Without the kernel's image nothing leads from KeBugCheckEx to the fault. Its trap
	// frame is on the stack: rbp of KiPageFault's frame is 80h above it.
	inc = analyze(t, nil, openBytes(t, "faulty.dmp", b.Dump), Options{})
	th = &inc.Threads[0]
	if f := inc.BugCheck.Fault; f.Source != dump.ContextTrapFrame || f.TrapFrame != b.Walk[2].SP || f.Index != 0 {
		t.Errorf("fault %+v", f)
	}
	for i, f := range th.Kernel.Frames {
		if w := b.Walk[3+i]; f.IP != w.PC || f.SP != w.SP {
			t.Errorf("frame %d is at %#x, stack %#x, want %#x, %#x", i, f.IP, f.SP, w.PC, w.SP)
		}
	}
	// What leads to KeBugCheckEx is kept apart; its entry is proved.
	if h := th.Handler; h == nil || len(h.Frames) != 3 || h.Frames[1].IP != b.Walk[1].PC || h.Frames[1].SP != b.Walk[1].SP {
		t.Errorf("handler %+v", h)
	}
}

// Where the fault of a bugcheck is: at the CONTEXT that a parameter points to, else
// at the address that a parameter gives.
func TestBugCheckFault(t *testing.T) {
	const ntBase, driverBase, stackBase, contextVA, worker = 0xfffff80312c00000, 0xfffff8031a340000, 0xffffd58a1f4c7000, 0xffffd58a1f4c6800, 0x1d8
	frame := fixtures.Steps(fixtures.Push(fixtures.RBX), fixtures.Alloc(0x20))
	nt := &fixtures.Image{Name: "ntoskrnl.exe", Base: ntBase, TimeDateStamp: 0x5e000001, SizeOfImage: 0x10000, Exe: true, Subsystem: 1, Functions: []*fixtures.Function{
		{Name: "MmCopy", RVA: 0x1000, Size: 0x60, Prolog: frame},
		{Name: "PspSystemThreadStartup", RVA: 0x1100, Size: 0x60, Prolog: frame, Calls: []fixtures.Call{{ReturnTo: 0x30}}}}}
	driver := &fixtures.Image{Name: "faulty.sys", Base: driverBase, TimeDateStamp: 0x5e000002, SizeOfImage: 0x9000, Subsystem: 1, Functions: []*fixtures.Function{
		{Name: "Worker", RVA: 0x1340, Size: 0x60, Prolog: frame, Calls: []fixtures.Call{{ReturnTo: 0x2e}}}}}
	hal := &fixtures.Image{Name: "HAL.dll", Base: driverBase + 0x100000, TimeDateStamp: 0x5e000003, SizeOfImage: 0x9000, Subsystem: 1, Functions: []*fixtures.Function{
		{Name: "Worker", RVA: 0x1340, Size: 0x60, Prolog: frame}}}
	dir := imageDir(t, map[string][]byte{"ntoskrnl.exe": nt.File(), "faulty.sys": driver.File(), "hal.dll": hal.File()})
	startup := nt.At("PspSystemThreadStartup", 0x30)
	for _, x := range []struct {
		name   string
		code   uint32
		frames []fixtures.Frame
		pc     uint64 // of the CONTEXT, when not the first frame's
		module string
		offset uint64
		symbol string
		source dump.ContextSource
	}{
		{"driver", 0x7e, []fixtures.Frame{driver.At("Worker", 0x22), startup}, 0, "faulty.sys", 0x1362, "Worker", dump.ContextParameter},
		{"kernel", 0x7e, []fixtures.Frame{nt.At("MmCopy", 0x18), driver.At("Worker", 0x2e), startup}, 0, "ntoskrnl.exe", 0x1018, "MmCopy", dump.ContextParameter},
		{"HAL", 0x7e, []fixtures.Frame{hal.At("Worker", 0x22), startup}, 0, "HAL.dll", 0x1362, "Worker", dump.ContextParameter},
		{"no module", 0x7e, []fixtures.Frame{driver.At("Worker", 0x22), startup}, 0xfffff80999990000, "", 0, "", dump.ContextParameter},
		{"no context in the parameters", 0xd1, []fixtures.Frame{driver.At("Worker", 0x22), startup}, 0, "faulty.sys", 0x1362, "Worker", dump.ContextHeader},
	} {
		t.Run(x.name, func(t *testing.T) {
			initial := uint64(stackBase - 0x370)
			stack := fixtures.BuildStack(initial-fixtures.StackSize(x.frames...), stackBase, fixtures.Registers{EFlags: 0x50246}, x.frames...)
			regs := stack.Walk[0].Registers
			if x.pc != 0 {
				regs.RIP = x.pc
			}
			context := regs.KernelContext()
			// SYSTEM_THREAD_EXCEPTION_NOT_HANDLED: status, address, EXCEPTION_RECORD, CONTEXT.
			params := [4]uint64{0xffffffffc0000005, regs.RIP, 0, contextVA}
			if x.code == 0xd1 { // DRIVER_IRQL_NOT_LESS_OR_EQUAL: address, IRQL, operation, instruction
				params = [4]uint64{0x18, 2, 0, regs.RIP}
			}
			created := time.Date(2023, 6, 1, 6, 0, 0, 0, time.UTC)
			d := &fixtures.TriageDump{
				KernelSystem: fixtures.KernelSystem{Build: 19041, Base: ntBase, Time: created.Add(time.Hour), Uptime: time.Hour,
					Processors: []fixtures.Processor{{PRCB: 0xfffff80310b1c180, IdleThread: 0xfffff80313927600, MHz: 2904}},
					Drivers: []fixtures.Driver{{Path: `\SystemRoot\system32\ntoskrnl.exe`, Base: ntBase, Size: nt.Size(), CheckSum: nt.CheckSum(), TimeDateStamp: nt.TimeDateStamp},
						{Path: `\SystemRoot\System32\drivers\faulty.sys`, Base: driverBase, Size: driver.Size(), CheckSum: driver.CheckSum(), TimeDateStamp: driver.TimeDateStamp},
						{Path: `\SystemRoot\system32\HAL.dll`, Base: hal.Base, Size: hal.Size(), CheckSum: hal.CheckSum(), TimeDateStamp: hal.TimeDateStamp}},
					BugCheck: x.code, Parameters: params},
				Process: fixtures.KernelProcess{EPROCESS: 0xffffa50d6e0a6040, PID: 4, DirBase: 0x1aa002, Image: "System", Created: created},
				Thread: fixtures.KernelThread{ETHREAD: 0xffffa50d7a3c1080, ID: worker, StackBase: stackBase, StackLimit: stackBase - 0x6000, InitialStack: initial,
					KernelStack: stack.Memory.VA - 0x730, Stack: stack, Start: driverBase + 0x1340, Priority: 13, Created: created},
				Context: context, ContextVA: 0xfffff80310b24740, Blocks: []fixtures.Range{{VA: contextVA - 0x100000, Data: context}},
			}
			d.Parameters[3] -= map[bool]uint64{true: 0x100000}[x.code == 0x7e] // off the stack, in a block of its own
			inc := analyze(t, nil, openBytes(t, "x.dmp", d.Bytes()), Options{Images: []string{dir}})
			if inc.BugCheck == nil || inc.BugCheck.Code != x.code || inc.BugCheck.Live || inc.Crashing != 0 || inc.Threads[0].ID != worker {
				t.Fatalf("crashing %d, %+v", inc.Crashing, inc.BugCheck)
			}
			f := inc.BugCheck.Fault
			if f.At == nil || f.Index != 0 || (f.At.Module == nil) != (x.module == "") {
				t.Fatalf("fault %+v", f)
			}
			if x.module == "" {
				return
			}
			if f.At.Module.Name() != x.module || f.At.IP-f.At.Module.Base != x.offset || f.At.Name.Function != x.symbol || f.Source != x.source {
				t.Errorf("%s+%#x (%s), %v", f.At.Module.Name(), f.At.IP-f.At.Module.Base, f.At.Name.Function, f.Source)
			}
		})
	}
}
