package report

import (
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/verdict"
	"dumptriage/unwind"
)

// The scene of a published WinDbg session: a .NET console program whose main
// thread sits in Console.ReadLine, dumped as a user dump and, a moment later, a
// kernel dump. Addresses, stack pointers and names are the session's; the bases
// of the modules are made up.
var (
	ntModule     = module("\\SystemRoot\\system32\\ntoskrnl.exe", 0xfffff8045de00000, 0x1046000, true)
	ntdll        = module("C:\\Windows\\System32\\ntdll.dll", 0x7ffe63870000, 0x1f0000, false)
	kernelbase   = module("C:\\Windows\\System32\\KERNELBASE.dll", 0x7ffe61380000, 0x2a3000, false)
	coreclr      = module("C:\\app\\coreclr.dll", 0x7ffe21200000, 0x500000, false)
	consoleStamp = uint32(0x5e8b9c3a)
)

func module(path string, base, size uint64, kernel bool) *triage.Module {
	return &triage.Module{Module: &dump.Module{Base: base, Size: size, Path: path, Kernel: kernel, TimeDateStamp: consoleStamp}}
}

func frame(sp, ip uint64, m *triage.Module, name string, offset uint64, how unwind.Method) triage.Frame {
	f := triage.Frame{Frame: unwind.Frame{IP: ip, Lookup: ip - 1, SP: sp, Trust: unwind.TrustCFI, Method: how}, Module: m}
	if how == unwind.MethodContext {
		f.Lookup, f.Trust = ip, unwind.TrustContext
	}
	if name != "" {
		f.Name = symbols.Name{Function: name, Offset: offset, Source: symbols.SourceExport}
	}
	return f
}

func registers(arch dump.Arch, pc, sp uint64) dump.Registers {
	r := dump.Registers{Arch: arch}
	r.SetPC(pc)
	r.SetSP(sp)
	return r
}

// userHalf is thread 0 of the user dump.
func userHalf() *triage.Half {
	return &triage.Half{
		Frames: []triage.Frame{
			frame(0xd67c9fe328, 0x7ffe6390d184, ntdll, "NtReadFile", 0x14, unwind.MethodContext),
			frame(0xd67c9fe330, 0x7ffe61405593, kernelbase, "ReadFile", 0x73, unwind.MethodPdata),
			frame(0xd67c9fe3b0, 0x7ffd50724782, nil, "", 0, unwind.MethodPdata),
			frame(0xd67c9fe480, 0x7ffe215bc742, coreclr, "", 0, unwind.MethodFunctionTable),
		},
		Stop:      unwind.Stop{Reason: unwind.StopNoUnwindData, Detail: "coreclr.dll not found"},
		Registers: registers(dump.AMD64, 0x7ffe6390d184, 0xd67c9fe328),
	}
}

// kernelHalf is the same thread in the kernel dump.
func kernelHalf() *triage.Half {
	nt := func(sp, ip uint64, name string, offset uint64) triage.Frame {
		return frame(sp, ip, ntModule, name, offset, unwind.MethodPdata)
	}
	frames := []triage.Frame{
		frame(0xffffe10d62386fb0, 0xfffff8045e688b51, ntModule, "DbgkpLkmdSnapThreadInContext", 0x95, unwind.MethodContext),
		nt(0xffffe10d623874f0, 0xfffff8045e688a7b, "DbgkpLkmdSnapThreadApc", 0x3b),
		nt(0xffffe10d62387520, 0xfffff8045e01dcd0, "KiDeliverApc", 0x1b0),
		nt(0xffffe10d623875d0, 0xfffff8045e01bb67, "KiSwapThread", 0x827),
		nt(0xffffe10d62387680, 0xfffff8045e01ad6f, "KiCommitThreadWait", 0x14f),
		nt(0xffffe10d62387720, 0xfffff8045e01a613, "KeWaitForSingleObject", 0x233),
		nt(0xffffe10d62387810, 0xfffff8045e439c68, "IopSynchronousServiceTail", 0x238),
		nt(0xffffe10d623878b0, 0xfffff8045e411fe9, "NtReadFile", 0x599),
		nt(0xffffe10d62387990, 0xfffff8045e20d9f5, "KiSystemServiceCopyEnd", 0x25),
	}
	for i := range 3 {
		frames[i].Capture = true
	}
	return &triage.Half{
		Frames:    frames,
		Stop:      unwind.Stop{Reason: unwind.StopTrapFrame},
		Registers: registers(dump.AMD64, 0xfffff8045e688b51, 0xffffe10d62386fb0),
	}
}

// seedIncident is the pair; its second thread has no kernel half and its third
// is the finalizer.
func seedIncident() *triage.Incident {
	waiting := &triage.Half{
		Frames:    []triage.Frame{frame(0xd67d1ff5f8, 0x7ffe6390f7b4, ntdll, "NtWaitForMultipleObjects", 0x14, unwind.MethodContext)},
		Stop:      unwind.Stop{Reason: unwind.StopEndOfStack},
		Registers: registers(dump.AMD64, 0x7ffe6390f7b4, 0xd67d1ff5f8),
	}
	return &triage.Incident{
		Inputs: []triage.Input{
			{Path: "app.dmp", Size: 123456789, Format: dump.FormatMinidump, Kind: "full memory"},
			{Path: "app.Kernel.dmp", Size: 900000, Format: dump.FormatKernel64, Kind: "triage (live)"},
		},
		System:   dump.System{Arch: dump.AMD64, Major: 10, Build: 19041, NTVersion: "10.0.19041.3803", CPUCount: 8, CPUVendor: "GenuineIntel", CPUFamily: 6, CPUModel: 158, CPUStepping: 10},
		Process:  dump.Process{PID: 0x3adc, HasPID: true, Name: "ConsoleApp1.exe"},
		Crashing: -1,
		Threads: []triage.Thread{
			{
				Thread: dump.Thread{ID: 0x5920, TEB: 0xd67cb98000, StackBase: 0xd67ca00000, StackLimit: 0xd67c9f0000},
				User:   userHalf(), Kernel: kernelHalf(), Stitched: true,
				KernelInfo: &dump.KernelThread{ETHREAD: 0xffffcf8d5ae14080, State: 5, WaitReason: 0, CPU: -1, TrapFrame: 0xffffe10d62387a00},
				Seam:       &triage.Seam{Rule: "trap frame reached by unwinding", UserIP: 0x7ffe6390d184, UserSP: 0xd67c9fe328},
			},
			{Thread: dump.Thread{ID: 0x2240, TEB: 0xd67cba0000}, User: waiting, KernelNote: "not in the kernel dump"},
			{Thread: dump.Thread{ID: 0x3c68, TEB: 0xd67cba4000, Name: ".NET Finalizer"}, User: waiting, KernelNote: "not in the kernel dump"},
		},
		Modules: []*triage.Module{coreclr, kernelbase, ntdll, ntModule},
		Pairing: &triage.Pairing{User: "app.dmp", Kernel: "app.Kernel.dmp", How: "beside", PID: 0x3adc},
		Missing: []symbols.Missing{{Module: coreclr.Module, Key: "5E8B9C3A500000", Tried: []string{"dump memory", "images/coreclr.dll"}, Reason: "images/coreclr.dll has time stamp 5E8B9C3B"}},
	}
}

// crash32Incident is a 32-bit access violation in the shape of rust-minidump's
// test_app example: main called CrashFunction, which wrote to 0x45.
func crash32Incident() *triage.Incident {
	app := module("c:\\test_app.exe", 0x400000, 0x2d000, false)
	app.CodeView = dump.CodeView{Signature: "RSDS", Age: 1, PDB: "c:\\test_app.pdb",
		GUID: [16]byte{0xe5, 0x32, 0x98, 0x5a, 0x72, 0x28, 0xc1, 0x41, 0x83, 0x8e, 0xd9, 0x89, 0x14, 0xe9, 0xb7, 0xff}}
	app.TimeDateStamp, app.UsedInStack, app.Named = 0x45d35f6c, true, true
	kernel32 := module("C:\\WINDOWS\\system32\\kernel32.dll", 0x7c800000, 0xf4000, false)
	kernel32.Version = dump.FileVersion{5, 1, 2600, 2945}
	kernel32.UsedInStack = true
	regs := registers(dump.X86, 0x40429e, 0x12fe84)
	regs.Set(dump.RAX, 0x45)
	regs.Set(dump.RBP, 0x12fe88)
	regs.Set(dump.RegEFlags, 0x10246)
	f0 := frame(0x12fe84, 0x40429e, app, "CrashFunction", 0xe, unwind.MethodContext)
	f0.FP, f0.HasFP = 0x12fe88, true
	f0.Name.Full = "void __cdecl CrashFunction(int *)"
	f1 := frame(0x12fe90, 0x404200, app, "main", 0x50, unwind.MethodEBP)
	f1.FP, f1.HasFP, f1.Trust = 0x12ff70, true, unwind.TrustFramePointer
	f2 := frame(0x12ff78, 0x7c816fd7, kernel32, "", 0, unwind.MethodScan)
	f2.Trust = unwind.TrustScan
	return &triage.Incident{
		Captured: time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC),
		Inputs:   []triage.Input{{Path: "crash.dmp", Size: 22788, Format: dump.FormatMinidump}},
		System:   dump.System{Arch: dump.X86, Major: 5, Minor: 1, Build: 2600, ServicePack: "Service Pack 2", CPUCount: 1},
		Crashing: 0,
		Crash: &triage.Crash{
			Exception: dump.Exception{ThreadID: 3060, Code: 0xc0000005, Address: 0x40429e, Parameters: []uint64{1, 0x45}},
			Module:    app,
			Instruction: &triage.Instruction{Text: "mov dword ptr [eax], 0x1",
				Accesses: []triage.MemoryAccess{{Address: 0x45, Size: 4, Write: true, Known: true}}},
		},
		Threads: []triage.Thread{{Thread: dump.Thread{ID: 3060, TEB: 0x7ffdf000},
			User: &triage.Half{Frames: []triage.Frame{f0, f1, f2}, Stop: unwind.Stop{Reason: unwind.StopStackMissing}, Registers: regs}}},
		Modules: []*triage.Module{app, kernel32},
	}
}

// bugCheckIncident has the code and parameters of a published
// SYSTEM_THREAD_EXCEPTION_NOT_HANDLED minidump whose culprit is a processor
// driver.
func bugCheckIncident() *triage.Incident {
	driver := module("\\SystemRoot\\System32\\drivers\\amdppm.sys", 0xfffff8048b580000, 0x3c000, true)
	half := &triage.Half{
		Frames: []triage.Frame{
			frame(0xffff850429891000, 0xfffff80438212340, ntModule, "KeBugCheckEx", 0, unwind.MethodContext),
			frame(0xffff850429891008, 0xfffff8048b58334c, driver, "", 0, unwind.MethodPdata),
		},
		Stop:      unwind.Stop{Reason: unwind.StopEndOfStack},
		Registers: registers(dump.AMD64, 0xfffff80438212340, 0xffff850429891000),
	}
	info := &dump.KernelThread{ETHREAD: 0xffffdb05bf3c7080, State: 2, CPU: 3}
	idle := &triage.Half{
		Frames:    []triage.Frame{frame(0xffff850429800000, 0xfffff80438290000, ntModule, "HalProcessorIdle", 0xf, unwind.MethodContext)},
		Stop:      unwind.Stop{Reason: unwind.StopNoUnwindData},
		Registers: registers(dump.AMD64, 0xfffff80438290000, 0xffff850429800000),
	}
	return &triage.Incident{
		Inputs:   []triage.Input{{Path: "083125-14875-01.dmp", Format: dump.FormatKernel64, Size: 1, Comments: []string{"written by a tool\r\n  because\x1b of this"}}},
		System:   dump.System{Arch: dump.AMD64, Major: 10, Build: 26100},
		Crashing: 0,
		BugCheck: &triage.BugCheck{
			BugCheck:     dump.BugCheck{Code: 0x7e, Raw: 0x1000007e, Parameters: [4]uint64{0xffffffffc0000005, 0xfffff8048b58334c, 0xffff850429891ee8, 0xffff850429891720}},
			BrokenDriver: "amdppm.sys",
			Fault:        triage.Fault{Source: dump.ContextParameter, Parameter: 3, At: &half.Frames[1], Index: 1},
		},
		Threads: []triage.Thread{{Thread: dump.Thread{ID: 0x1c, Kernel: info}, Kernel: half, KernelInfo: info}},
		Modules: []*triage.Module{ntModule, driver},
		CPUs:    []triage.CPU{{CPU: dump.CPU{Number: 3, ThreadID: 0x1c}, Kernel: half}, {CPU: dump.CPU{Number: 4, Idle: true}, Kernel: idle}},
		Errors:  []*dump.Error{{Code: dump.Truncated, File: "083125-14875-01.dmp", Stream: "DUMP_HEADER", Offset: 0x2000, Size: 64, Msg: "the record ends beyond the end of the file"}},
	}
}

// judged are the test options with the verdict on a bugcheck.
func judged(inc *triage.Incident) Options {
	opt := testOptions
	if inc.BugCheck != nil && !inc.BugCheck.Live {
		opt.Verdict = &verdict.Verdict{Kind: verdict.KindBugCheck, BugCheck: bugcheck.Of(inc, nil)}
	}
	return opt
}
