package unwind

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
)

// A kernel stack by the measured layout: the trap frame at InitialStack-0x190,
// the system service stub's frame body 0x70 below it, the return address into
// the stub 0x78 below it, rbp 0x80 above.
const (
	ntBase      = 0xfffff80000000000
	kernelLow   = 0xffffa70400000000
	kernelHigh  = kernelLow + 0x6000
	trapFrame   = kernelHigh - 0x30 - 0x190
	stubReturn  = ntBase + 0x3456
	userRIP     = 0x7ffe7350d0c4
	userRSP     = 0x7d488fe9b8
	kernelStart = trapFrame - 0x400
)

type kernelSpace struct{ *space }

func newKernelSpace() kernelSpace {
	s := &space{
		bytesAt: bytesAt{kernelLow: make([]byte, kernelHigh-kernelLow)},
		modules: []dump.Module{{Base: ntBase, Size: 0x10000, Path: `\SystemRoot\system32\ntoskrnl.exe`, Kernel: true}},
	}
	k := kernelSpace{s}
	k.poke(trapFrame-0x78, stubReturn)
	k.poke(trapFrame-8, ntBase+0x4567) // what an earlier call left: must never be a frame
	k.machine(trapFrame+0x168, userRIP, 0x33, userRSP)
	return k
}

func (k kernelSpace) poke(va uint64, words ...uint64) {
	for i, v := range words {
		binary.LittleEndian.PutUint64(k.bytesAt[kernelLow][va-kernelLow+8*uint64(i):], v)
	}
}

func (k kernelSpace) machine(va, rip, cs, rsp uint64) { k.poke(va, rip, cs, 0x246, rsp, cs-8) }

var kernelBounds = Options{Kernel: true, StackLimit: kernelLow, StackBase: kernelHigh, TrapFrame: trapFrame}

type place struct {
	ip, sp uint64
	method Method
	trust  Trust
}

func wantPlaces(t *testing.T, st Stack, want ...place) {
	t.Helper()
	if len(st.Frames) != len(want) {
		t.Errorf("%d frames, want %d", len(st.Frames), len(want))
	}
	for i, f := range st.Frames {
		if i >= len(want) || f.IP != want[i].ip || f.SP != want[i].sp || f.Method != want[i].method || f.Trust != want[i].trust {
			t.Errorf("frame %d: ip %#x sp %#x %v %v %q", i, f.IP, f.SP, f.Method, f.Trust, f.Detail)
		}
	}
}

func wantUser(t *testing.T, st Stack, how Method) {
	t.Helper()
	if st.Stop.Reason != StopTrapFrame || st.TrapFrame != trapFrame || st.UserMethod != how {
		t.Errorf("stop %+v trap frame %#x by %v", st.Stop, st.TrapFrame, st.UserMethod)
	}
	wantReg(t, &st.User, dump.RIP, userRIP)
	wantReg(t, &st.User, dump.RSP, userRSP)
	wantReg(t, &st.User, dump.RegCS, 0x33)
	wantReg(t, &st.User, dump.RegEFlags, 0x246)
}

// KeBugCheckEx at its entry, called by KiBugCheckDispatch, whose frame of
// 0x138+8 bytes ends at the stub's: no image is needed to know all three.
func TestTrapSlotByFrameSize(t *testing.T) {
	k := newKernelSpace()
	sp := uint64(trapFrame - 0x70 - 0x140 - 8)
	k.poke(sp, ntBase+0x2222)
	opt := kernelBounds
	opt.EntryProved = "KeBugCheckEx stands at its entry"
	st := k.walker().Walk(at(ntBase+0x1000, sp), opt)
	wantPlaces(t, st,
		place{ntBase + 0x1000, sp, MethodContext, TrustContext},
		place{ntBase + 0x2222, sp + 8, MethodLeaf, TrustCFI},
		place{stubReturn, trapFrame - 0x70, MethodTrapSlot, TrustCFI})
	if st.Frames[1].Detail != opt.EntryProved || st.Frames[2].FP != trapFrame+0x80 {
		t.Errorf("%+v", st.Frames)
	}
	wantUser(t, st, MethodTrapFrame)
	if st.User.Known(dump.RBX) {
		t.Error("rbx is not proved by a system service's trap frame")
	}
}

// Elsewhere the words below the stub's slot are scanned, and then comes the slot.
func TestTrapSlotAfterScan(t *testing.T) {
	k := newKernelSpace()
	k.poke(kernelStart+0x100, ntBase+0x5555)
	st := k.walker().Walk(at(ntBase+0x1000, kernelStart), kernelBounds)
	wantPlaces(t, st,
		place{ntBase + 0x1000, kernelStart, MethodContext, TrustContext},
		place{ntBase + 0x5555, kernelStart + 0x108, MethodScan, TrustScan},
		place{stubReturn, trapFrame - 0x70, MethodTrapSlot, TrustCFI})
	wantUser(t, st, MethodTrapFrame)
}

// The slot is reached even when the scan gave up: its place is proved.
func TestTrapSlotAfterLimit(t *testing.T) {
	k := newKernelSpace()
	for va := uint64(kernelStart); va < trapFrame-0x78; va += 8 {
		k.poke(va, ntBase+0x5000+va&0xfff)
	}
	st := k.walker().Walk(at(ntBase+0x1000, kernelStart), kernelBounds)
	if n := len(st.Frames); n != 2+maxUnproven || st.Frames[n-1].Method != MethodTrapSlot {
		t.Errorf("%d frames, last %+v", n, st.Frames[n-1])
	}
	wantUser(t, st, MethodTrapFrame)
}

// A slot that holds no kernel code is passed over, but the user half is known.
func TestTrapSlotImplausible(t *testing.T) {
	for _, v := range []uint64{0, userRIP, kernelLow + 0x100, ntBase + 0x20000} {
		k := newKernelSpace()
		k.poke(trapFrame-0x78, v)
		st := k.walker().Walk(at(ntBase+0x1000, kernelStart), kernelBounds)
		wantPlaces(t, st, place{ntBase + 0x1000, kernelStart, MethodContext, TrustContext})
		wantUser(t, st, MethodTrapFrame)
	}
}

// Where code bytes are at hand a CALL must precede what the slot holds.
func TestTrapSlotWithoutCall(t *testing.T) {
	for _, call := range []bool{true, false} {
		k := newKernelSpace()
		k.bytesAt[stubReturn-8] = []byte{0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc}
		if call {
			k.bytesAt[stubReturn-8] = []byte{0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xff, 0x55, 0x10} // call [rbp+0x10]
		}
		st := k.walker().Walk(at(ntBase+0x1000, kernelStart), kernelBounds)
		if got := st.Frames[len(st.Frames)-1].Method == MethodTrapSlot; got != call {
			t.Errorf("CALL %v: %+v", call, st.Frames)
		}
		wantUser(t, st, MethodTrapFrame)
	}
}

// Unwind data that leads past the stub's slot has gone wrong.
func TestUnwindDataPastTrapSlot(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	k.poke(trapFrame-8, ntBase+0x1580)
	sp := uint64(trapFrame - 8 - 0x30) // the frame of 0x30 bytes would return by [trapFrame-8]
	st := k.walker().Walk(at(ntBase+0x1580, sp), kernelBounds)
	wantPlaces(t, st, place{ntBase + 0x1580, sp, MethodContext, TrustContext})
	wantUser(t, st, MethodTrapFrame)
}

// Where unwind data arrives at the stub's frame, rbp is known from its place.
func TestStubFramePointer(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	k.poke(trapFrame-0x78, ntBase+0x1180)
	k.poke(trapFrame+0x140, 0xb, 0xd, 0x5, 0xbb)
	st := k.walker().Walk(at(ntBase+0x1580, trapFrame-0x78-0x30), kernelBounds)
	if len(st.Frames) != 2 || st.Frames[1].FP != trapFrame+0x80 {
		t.Errorf("%+v", st.Frames)
	}
	wantUser(t, st, MethodMachineFrame)
	wantReg(t, &st.User, dump.RBX, 0xb)
}

// A trap frame that is none gives no user half.
func TestTrapFrameOfKernelMode(t *testing.T) {
	k := newKernelSpace()
	k.machine(trapFrame+0x168, userRIP, 0x10, userRSP)
	st := k.walker().Walk(at(ntBase+0x1000, kernelStart), kernelBounds)
	if st.Stop.Reason != StopBadUnwindInfo || !st.User.Empty() {
		t.Errorf("%+v", st.Stop)
	}
}

// ntImage gives the kernel an image: KiSystemCall64 as its prolog is described
// at 0x1100 (machine frame, 8 bytes, push rbp, 0x158 bytes, rbp = rsp+0x80,
// rbx, rdi and rsi saved at 0x140, 0x148 and 0x150), and a function of 0x28
// bytes at 0x1500 that pushes r12.
func ntImage(k kernelSpace) {
	k.image, k.base = &fakeImage{code: make([]byte, 0x1000), infos: map[uint32][]byte{}}, ntBase
	k.function(0x1100, 0x1200, []byte{1, 0x20, 12, 0x85,
		0x20, 0x64, 0x2a, 0, 0x1c, 0x74, 0x29, 0, 0x18, 0x34, 0x28, 0,
		0x10, 0x03, 0x0c, 0x01, 0x2b, 0, 0x08, 0x50, 0x04, 0x02, 0, 0x0a}, nil)
	k.function(0x1500, 0x1600, []byte{1, 6, 2, 0, 6, 0x42, 2, 0xc0}, nil)
	k.put(0x1580-5, 0xe8)
	k.put(0x1180-5, 0xe8)
}

// By unwind data the machine frame of ring 3 ends the half; the saved registers
// are the user's, and those that inner frames saved too.
func TestMachineFrameToUser(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	k.poke(trapFrame-0x78, ntBase+0x1180)
	k.poke(trapFrame+0x140, 0xb, 0xd, 0x5, 0xbb) // rbx, rdi, rsi, rbp
	sp := uint64(trapFrame - 0x78 - 0x30)
	k.poke(sp+0x28, 0x304a2)
	st := k.walker().Walk(at(ntBase+0x1580, sp), Options{Kernel: true, StackLimit: kernelLow, StackBase: kernelHigh})
	// Without the trap frame's place rbp is not known, and nothing is guessed.
	if st.Stop.Reason == StopTrapFrame {
		t.Errorf("rbp came from nowhere: %+v", st.Stop)
	}
	r := at(ntBase+0x1580, sp)
	r.Set(dump.RBP, trapFrame+0x80)
	r.Set(dump.RAX, 1)
	st = k.walker().Walk(r, Options{Kernel: true, StackLimit: kernelLow, StackBase: kernelHigh})
	wantPlaces(t, st,
		place{ntBase + 0x1580, sp, MethodContext, TrustContext},
		place{ntBase + 0x1180, trapFrame - 0x70, MethodPdata, TrustCFI})
	wantUser(t, st, MethodMachineFrame)
	for reg, v := range map[dump.Reg]uint64{dump.RBX: 0xb, dump.RDI: 0xd, dump.RSI: 0x5, dump.RBP: 0xbb, dump.R12: 0x304a2} {
		wantReg(t, &st.User, reg, v)
	}
	if st.User.Known(dump.RAX) {
		t.Error("rax is the kernel's, not the user's")
	}
}

// A machine frame of ring 0 is a trap in the kernel: the walk goes on there.
func TestMachineFrameInKernel(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	k.poke(trapFrame+0x140, 0xb, 0xd, 0x5, 0xbb)
	k.machine(trapFrame+0x168, ntBase+0x1503, 0x10, kernelHigh-0x30)
	r := at(ntBase+0x1180, trapFrame-0x70)
	r.Set(dump.RBP, trapFrame+0x80)
	st := k.walker().Walk(r, Options{Kernel: true, StackLimit: kernelLow, StackBase: kernelHigh})
	wantPlaces(t, st,
		place{ntBase + 0x1180, trapFrame - 0x70, MethodContext, TrustContext},
		place{ntBase + 0x1503, kernelHigh - 0x30, MethodMachineFrame, TrustCFI})
	if f := st.Frames[1]; f.Lookup != f.IP || f.FP != 0xbb {
		t.Errorf("%+v", f)
	}
}

// A user address is no kernel return address, whatever unwind data says.
func TestUserAddressInKernelHalf(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	k.poke(kernelStart+0x30, userRIP)
	st := k.walker().Walk(at(ntBase+0x1580, kernelStart), Options{Kernel: true, StackLimit: kernelLow, StackBase: kernelHigh})
	for _, f := range st.Frames {
		if f.IP == userRIP {
			t.Errorf("%+v", f)
		}
	}
}

// On a processor's DPC stack the thread's trap frame says nothing of where the
// frames lead, whether that stack lies below the thread's or above.
func TestTrapFrameOfAnotherStack(t *testing.T) {
	for _, at0 := range []uint64{kernelLow - 0x8000, kernelHigh + 0x8000} {
		for _, opt := range []Options{kernelBounds, {Kernel: true, TrapFrame: at0 + 0x400000}} {
			k := newKernelSpace()
			k.bytesAt[at0] = make([]byte, 0x1000)
			st := k.walker().Walk(at(ntBase+0x1000, at0+0x100), opt)
			if len(st.Frames) != 1 || st.Stop.Reason != StopNoUnwindData {
				t.Errorf("%#x: %+v", at0, st)
			}
		}
	}
}

// A trap in the kernel leads from there back to the thread's stack, and so to
// its system service.
func TestMachineFrameBackToThreadStack(t *testing.T) {
	k := newKernelSpace()
	ntImage(k)
	const dpc = kernelLow - 0x8000
	stack := make([]byte, 0x1000)
	for i, v := range []uint64{ntBase + 0x1541, 0x10, 0x246, trapFrame - 0x78 - 0x30, 0x18} {
		binary.LittleEndian.PutUint64(stack[0x800+8*i:], v)
	}
	k.bytesAt[dpc] = stack
	k.poke(trapFrame-0x78, ntBase+0x1180)
	r := at(ntBase+0x1180, dpc+0x800-0x168-0x70)
	r.Set(dump.RBP, dpc+0x800-0x168+0x80)
	st := k.walker().Walk(r, kernelBounds)
	wantPlaces(t, st,
		place{ntBase + 0x1180, dpc + 0x800 - 0x168 - 0x70, MethodContext, TrustContext},
		place{ntBase + 0x1541, trapFrame - 0x78 - 0x30, MethodMachineFrame, TrustCFI},
		place{ntBase + 0x1180, trapFrame - 0x70, MethodPdata, TrustCFI})
	wantUser(t, st, MethodMachineFrame)
}
