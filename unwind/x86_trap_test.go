package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
)

// A 32-bit kernel whose stack has a trap frame in the kernel, at tf0, and the one
// of the thread's entry from user mode, at tfUser. The offsets are the public
// type's. What the trap interrupted is at 0x1720 with the stack pointer tf0+0x74.
const (
	nt86    = 0x82800000
	tf0     = esp0 + 0x100
	tfUser  = esp0 + 0x400
	trapEIP = nt86 + 0x1720
	trapEBP = esp0 + 0x200
	userEIP = 0x77a1201d
	userESP = 0x12fe2c
	userEBP = 0x12fe50
	mark86  = 0xbadb0d00
)

// kernel86 is that space, all of whose code is int3 but for the calls that
// return to 0x1540, into the trap's handler, and to 0x1640, into the system
// call's entry.
func kernel86() *space {
	s := newSpace(0x1000)
	s.base = nt86
	s.modules = []dump.Module{{Base: nt86, Size: 0x10000, Path: "ntoskrnl.exe", Kernel: true}, {Base: 0x77a10000, Size: 0x10000, Path: "ntdll.dll"}}
	s.callAt(0x1540)
	s.callAt(0x1640)
	s.trap86(tf0, trapEIP, trapEBP, 8)
	s.poke32(tf0+0x50, 0x30, 0x11, 0x12, 0x13) // fs, edi, esi, ebx
	s.poke32(trapEBP, tfUser, nt86+0x1640)     // the interrupted function's frame
	s.trap86(tfUser, userEIP, userEBP, 0x1b)
	s.poke32(tfUser+0x50, 0x3b)
	s.poke32(tfUser+0x74, userESP, 0x23)
	return s
}

func (s *space) trap86(va uint64, eip, ebp, cs uint32) {
	s.poke32(va, ebp, eip, mark86)
	s.poke32(va+0x60, ebp, 0, eip, cs, 0x246)
}

func kernelBounds86() Options {
	return Options{Kernel: true, StackLimit: stackLow, StackBase: stackHigh, TrapFrame: tfUser}
}

func wantSeam86(t *testing.T, st Stack, how Method) {
	t.Helper()
	if st.Stop.Reason != StopTrapFrame || st.TrapFrame != tfUser || st.UserMethod != how {
		t.Errorf("stop %+v at %#x by %v, want %#x by %v", st.Stop, st.TrapFrame, st.UserMethod, uint64(tfUser), how)
	}
	for reg, v := range map[dump.Reg]uint64{dump.RIP: userEIP, dump.RSP: userESP, dump.RBP: userEBP} {
		wantReg(t, &st.User, reg, v)
	}
}

// The chain of ebp leads into the handler's frame, whose ebp is the trap frame;
// behind that is what it interrupted, then the entry of the system call.
func TestTrapX86(t *testing.T) {
	for name, opt := range map[string]Options{
		"bounds and trap frame known": kernelBounds86(),
		"neither known":               {Kernel: true},
		"bounds alone":                {Kernel: true, StackLimit: stackLow, StackBase: stackHigh},
	} {
		s := kernel86()
		s.poke32(esp0+0x20, tf0, nt86+0x1540)
		var at dump.Registers
		st := s.walkerFor(dump.X86).WalkRegisters(regs86(nt86+0x1300, esp0, esp0+0x20), opt, func(i int, r *dump.Registers) bool {
			if i == 2 {
				at = *r
			}
			return true
		})
		wantPlaces(t, st,
			place{nt86 + 0x1300, esp0, MethodContext, TrustContext},
			place{nt86 + 0x1540, esp0 + 0x28, MethodEBP, TrustFramePointer},
			place{trapEIP, tf0 + 0x74, MethodMachineFrame, TrustFramePointer},
			place{nt86 + 0x1640, trapEBP + 8, MethodEBP, TrustFramePointer})
		wantSeam86(t, st, MethodEBP)
		if len(st.Frames) > 2 && (st.Frames[2].Lookup != trapEIP || st.Frames[2].Detail != "the trap frame at 0x101100, ebp points to it") {
			t.Errorf("%s: %+v", name, st.Frames[2])
		}
		for reg, v := range map[dump.Reg]uint64{dump.RDI: 0x11, dump.RSI: 0x12, dump.RBX: 0x13, dump.RBP: trapEBP} {
			wantReg(t, &at, reg, v)
		}
	}
}

// A user stack is no kernel one: the same bytes mean nothing there.
func TestTrapX86OfUserMode(t *testing.T) {
	s := kernel86()
	s.poke32(esp0+0x20, tf0, nt86+0x1540)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), stackBounds)
	for _, f := range st.Frames {
		if f.Method == MethodMachineFrame {
			t.Errorf("%+v", f)
		}
	}
}

// What does not prove itself is no trap frame, and the walk ends at the one of
// the entry, which is known. At 0x1300 there is no code that tells more.
func TestTrapX86Checks(t *testing.T) {
	for name, spoil := range map[string]func(s *space){
		"mark and fs":     func(s *space) { s.poke32(tf0+8, 0); s.poke32(tf0+0x50, 0) },
		"the header's ip": func(s *space) { s.poke32(tf0+4, trapEIP+4) },
		"the header's bp": func(s *space) { s.poke32(tf0, trapEBP+4) },
		"flags":           func(s *space) { s.poke32(tf0+0x70, 0) },
		"selector":        func(s *space) { s.poke32(tf0+0x6c, 0x10) },
	} {
		s := kernel86()
		s.poke32(esp0+0x20, tf0, nt86+0x1540)
		spoil(s)
		st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), kernelBounds86())
		for _, f := range st.Frames {
			if f.Method == MethodMachineFrame {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if st.Stop.Reason != StopTrapFrame {
			t.Errorf("%s: %+v", name, st.Stop)
		}
	}
}

// The trap frame of the entry needs no proof of its own: the reader has checked it.
func TestTrapX86KnownEntry(t *testing.T) {
	s := kernel86()
	s.poke32(tfUser, 1, 2, 3) // a build that writes no header for debuggers
	s.poke32(esp0+0x20, tfUser, nt86+0x1640)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), kernelBounds86())
	wantPlaces(t, st, place{nt86 + 0x1300, esp0, MethodContext, TrustContext}, place{nt86 + 0x1640, esp0 + 0x28, MethodEBP, TrustFramePointer})
	wantSeam86(t, st, MethodEBP)
}

// A chain that is broken before the entry ends there all the same; no word of
// the trap frame, nor above it, is a return address.
func TestTrapX86BrokenChain(t *testing.T) {
	s := kernel86()
	s.poke32(tfUser+0x7c, nt86+0x1540)
	s.poke32(tfUser+0x10, nt86+0x1540)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, tfUser-0x20, 3), kernelBounds86())
	wantPlaces(t, st, place{nt86 + 0x1300, tfUser - 0x20, MethodContext, TrustContext})
	wantSeam86(t, st, MethodTrapFrame)
	if !strings.Contains(st.Stop.Detail, "ebp 0x3 is not on the stack") {
		t.Errorf("detail %q", st.Stop.Detail)
	}
}

// No address of user mode is a return address of the kernel's, though no code is
// at hand that would disprove it.
func TestTrapX86UserReturn(t *testing.T) {
	s := kernel86()
	s.poke32(esp0+0x20, esp0+0x80, userEIP)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), Options{Kernel: true})
	for _, f := range st.Frames {
		if f.IP == userEIP {
			t.Errorf("%+v", f)
		}
	}
}

// In a thread that came from user mode an ebp of 0 is no end of the chain.
func TestTrapX86ZeroEBP(t *testing.T) {
	s := kernel86()
	s.poke32(tfUser-0x24, 0, nt86+0x1540) // its caller uses ebp for something else
	s.poke32(tfUser-4, nt86+0x1640)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, tfUser-0x28, tfUser-0x24), kernelBounds86())
	if len(st.Frames) != 3 || st.Frames[2].IP != nt86+0x1640 {
		t.Errorf("%+v", st.Frames)
	}
	wantSeam86(t, st, MethodTrapFrame)
}

// A scan that comes to a trap frame first goes through it, one that comes to a
// return address first takes that.
func TestTrapX86Scan(t *testing.T) {
	s := kernel86()
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, tf0-0x20, 0), kernelBounds86())
	if len(st.Frames) < 2 || st.Frames[1].IP != trapEIP || st.Frames[1].SP != tf0+0x74 || st.Frames[1].Trust != TrustScan || !strings.Contains(st.Frames[1].Detail, "found by a scan") {
		t.Errorf("%+v", st.Frames)
	}
	wantSeam86(t, st, MethodEBP)
	s.poke32(tf0-0x10, tf0, nt86+0x1540)
	st = s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, tf0-0x20, 0), kernelBounds86())
	if len(st.Frames) < 3 || st.Frames[1].IP != nt86+0x1540 || st.Frames[1].Method != MethodScan || st.Frames[2].IP != trapEIP || st.Frames[2].Trust != TrustFramePointer {
		t.Errorf("%+v", st.Frames)
	}
}

// A function without a frame leaves ebp as it is: called from the handler it
// returns there, and only then comes the trap frame.
func TestTrapX86Frameless(t *testing.T) {
	s := kernel86()
	s.put(0x1300, 0x83, 0xec, 0x08, 0x90, 0x90, 0x90, 0xc3) // sub esp, 8 ...
	s.callTo(0x1540, 0x1300)
	s.poke32(tf0-4, nt86+0x1540)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1304, tf0-12, tf0), kernelBounds86())
	if len(st.Frames) < 3 || st.Frames[1].IP != nt86+0x1540 || st.Frames[1].SP != tf0 || st.Frames[1].Method != MethodFPO || st.Frames[2].IP != trapEIP {
		t.Errorf("%+v", st.Frames)
	}
}

// Virtual-8086 code has no stack that is walked, and says where it was.
func TestTrapX86Virtual(t *testing.T) {
	s := kernel86()
	s.trap86(tf0, 0x1234, 0x10, 0xc000)
	s.poke32(tf0+0x70, 0x20202)
	st := s.walkerFor(dump.X86).Walk(regs86(nt86+0x1540, tf0-8, tf0), kernelBounds86())
	if st.Stop.Reason != StopNoUnwindData || !strings.Contains(st.Stop.Detail, "virtual-8086 mode, at c000:1234") {
		t.Errorf("%+v", st.Stop)
	}
}

// kernelRecords86 is kernel86 with a record for the handler.
func kernelRecords86(kind FrameKind) *framed {
	return &framed{space: kernel86(), records: []sized{{FrameRecord{Kind: kind, Source: "FPO_DATA", Module: "ntoskrnl.exe", RVA: 0x1500, Begin: nt86 + 0x1500, Function: nt86 + 0x1500}, nt86 + 0x1600}}}
}

// Where debug information says that the code runs on a trap frame, that needs no
// proof of its own either, but it must be one.
func TestTrapX86Record(t *testing.T) {
	s := kernelRecords86(FrameTrap)
	s.poke32(tf0, 1, 2, 3)
	s.poke32(tf0+0x50, 0)
	s.poke32(esp0+0x20, tf0, nt86+0x1540)
	st := s.walker(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), kernelBounds86())
	if len(st.Frames) < 3 || st.Frames[2].IP != trapEIP || st.Frames[2].Trust != TrustCFI || st.Frames[2].Method != MethodMachineFrame ||
		st.Frames[2].Detail != "the trap frame at 0x101100, by FPO_DATA at ntoskrnl.exe+0x1500" {
		t.Errorf("%+v", st.Frames)
	}
	wantSeam86(t, st, MethodEBP)
	s.poke32(tf0+0x70, 0)
	st = s.walker(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), kernelBounds86())
	if len(st.Frames) > 2 && st.Frames[2].IP == trapEIP {
		t.Errorf("without flags: %+v", st.Frames)
	}
}

// Another record for the same code does not come first, though its answer would
// pass: what was interrupted happens to stand behind a call.
func TestTrapX86RecordFirst(t *testing.T) {
	s := kernelRecords86(FrameTrap)
	other := s.records[0]
	other.Kind, other.Source = FrameEBP, "FrameData"
	s.records = []sized{other, s.records[0]}
	s.callAt(0x1720)
	s.poke32(esp0+0x20, tf0, nt86+0x1540)
	st := s.walker(dump.X86).Walk(regs86(nt86+0x1300, esp0, esp0+0x20), kernelBounds86())
	if len(st.Frames) < 3 || st.Frames[2].IP != trapEIP || st.Frames[2].SP != tf0+0x74 || st.Frames[2].Method != MethodMachineFrame {
		t.Errorf("%+v", st.Frames)
	}
}

// Behind a task gate are the registers of the task state segment, once, and only
// where debug information says so.
func TestTaskGateX86(t *testing.T) {
	s := kernelRecords86(FrameTaskGate)
	opt := kernelBounds86()
	opt.Task = regs86(trapEIP, tf0+0x74, trapEBP)
	const other = stackLow + 0x100 // the task's own stack lies below here
	st := s.walker(dump.X86).Walk(regs86(nt86+0x1510, other, 0), opt)
	wantPlaces(t, st,
		place{nt86 + 0x1510, other, MethodContext, TrustContext},
		place{trapEIP, tf0 + 0x74, MethodMachineFrame, TrustCFI},
		place{nt86 + 0x1640, trapEBP + 8, MethodEBP, TrustFramePointer})
	wantSeam86(t, st, MethodEBP)
	opt.Task = regs86(nt86+0x1510, other, 0) // leads to itself
	if st := s.walker(dump.X86).Walk(regs86(nt86+0x1510, other, 0), opt); len(st.Frames) > 3 {
		t.Errorf("%d frames", len(st.Frames))
	}
	s.records = nil
	if st := s.walker(dump.X86).Walk(regs86(nt86+0x1510, other, 0), opt); len(st.Frames) > 1 && st.Frames[1].Method == MethodMachineFrame {
		t.Errorf("without a record: %+v", st.Frames)
	}
}

// FuzzTrapX86 walks kernel stacks of trap frames and random words.
func FuzzTrapX86(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(0x100), uint16(0x400))
	f.Add([]byte{}, uint16(0x20), uint16(0x20))
	f.Add([]byte{0xba, 0xdb, 8}, uint16(0x3fe0), uint16(0))
	f.Fuzz(func(t *testing.T, stack []byte, trap, entry uint16) {
		s := kernel86()
		for i, b := range stack {
			if i >= 0x800 {
				break
			}
			v := []uint32{nt86 + 0x1540, esp0 + uint32(b)*16, uint32(b), mark86}[b&3]
			s.poke32(esp0+4*uint64(i), v)
		}
		at := stackLow + uint64(trap)&0x3ffc
		if at+0x74 <= stackHigh {
			s.trap86(at, trapEIP, uint32(stackLow)+uint32(entry), 8)
		}
		opt := kernelBounds86()
		opt.MaxFrames, opt.TrapFrame = 200, stackLow+uint64(entry)&0x3ffc
		checkStack(t, s.walkerFor(dump.X86).Walk(regs86(nt86+0x1300, esp0, at), opt), dump.X86)
	})
}
