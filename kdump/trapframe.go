package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// setTrapFrame finds the KTRAP_FRAME of the thread's entry from user mode. On
// AMD64 it is the first thing on the kernel stack, which needs no symbols; then
// KTHREAD.TrapFrame, which a call from within the kernel can have made point at a
// kernel-mode frame. On x86 it is the other way round: what lies between
// InitialStack and the frame depends on the version. Only a frame that can come
// from user mode counts.
func (f *File) setTrapFrame(kt *dump.KernelThread, r *record, teb uint64) {
	if f.hdr.arch == dump.AMD64 && kt.InitialStack > threadcontext.TrapFrameSize {
		if f.tryTrapFrame(kt, kt.InitialStack-threadcontext.TrapFrameSize, "initial_stack", teb) {
			return
		}
	}
	if va := f.kernelPointer(r, f.offsets().trapFrame); va != 0 && f.tryTrapFrame(kt, va, "kthread_trap_frame", teb) {
		return
	}
	if below := f.belowInitialStack(); f.hdr.arch == dump.X86 && kt.InitialStack > below {
		f.tryTrapFrame(kt, kt.InitialStack-below, "initial_stack", teb)
	}
}

// belowInitialStack is how far below KTHREAD.InitialStack an x86 thread's first
// trap frame begins. Before Windows 8 the floating point area is in between, as
// the addresses in many published stacks agree; since then it lies above, which is
// believed.
func (f *File) belowInitialStack() uint64 {
	const windows8 = 9200
	if f.hdr.build < windows8 {
		return threadcontext.FloatSaveX86 + threadcontext.TrapFrameSizeX86
	}
	return threadcontext.TrapFrameSizeX86
}

func (f *File) tryTrapFrame(kt *dump.KernelThread, va uint64, rule string, teb uint64) bool {
	regs, ok := f.userFrame(va)
	if !ok || teb == 0 && f.kd.thread.teb != 0 { // a system thread has no user half
		return false
	}
	kt.TrapFrame, kt.TrapFrameRule, kt.User = va, rule, regs
	kt.Interrupted = f.interrupted(va)
	return true
}

// interrupted reports whether the trap frame at va is that of an interrupt or
// exception. What they push below it is not what a system service does.
func (f *File) interrupted(va uint64) bool {
	const active, service = 0x2b, 2 // KTRAP_FRAME.ExceptionActive
	var b [1]byte
	if f.hdr.arch != dump.AMD64 || f.full == nil {
		return false
	}
	n, _ := f.mem.ReadAt(b[:], va+active)
	return n == 1 && b[0] < service
}

// userFrame decodes the trap frame at va when it is one from user mode.
func (f *File) userFrame(va uint64) (dump.Registers, bool) {
	var buf [threadcontext.TrapFrameSize]byte
	b := buf[:trapFrameSize(f.hdr.arch)]
	var err error
	f.ahead(func() { _, err = f.mem.ReadAt(b, va) })
	if err != nil {
		return dump.Registers{}, false
	}
	regs, ok := f.parseUserFrame(b, va)
	f.usedUserFrame(va, len(b), ok)
	return regs, ok
}

func (f *File) parseUserFrame(b []byte, va uint64) (dump.Registers, bool) {
	switch f.hdr.arch {
	case dump.AMD64:
		tf, err := threadcontext.ParseTrapFrame(b)
		if err != nil || !tf.FromUser() {
			return dump.Registers{}, false
		}
		return tf.Registers(), true
	case dump.ARM64:
		return userFrameARM64(cursor.New(b, trapStream, -1))
	}
	tf, err := threadcontext.ParseTrapFrameX86(b)
	if err != nil || tf.Mode() != threadcontext.TrapUser {
		return dump.Registers{}, false
	}
	return tf.Registers(va), true
}

const trapStream = "KTRAP_FRAME"

func trapFrameSize(a dump.Arch) int {
	switch a {
	case dump.AMD64:
		return threadcontext.TrapFrameSize
	case dump.ARM64:
		return 0x150
	}
	return threadcontext.TrapFrameSizeX86
}

// userFrameARM64 reads the public layout: Spsr 0x90, Sp 0x98, Lr 0x138, Fp
// 0x140, Pc 0x148. User mode is Spsr.M[3:0] == 0. Not verified on a dump.
func userFrameARM64(c *cursor.Cursor) (dump.Registers, bool) {
	const userTop = 0x00007fffffffffff
	regs := dump.Registers{Arch: dump.ARM64}
	c.Seek(0x90)
	spsr := c.U32()
	c.Seek(0x98)
	sp := c.U64()
	c.Seek(0x138)
	lr, fp, pc := c.U64(), c.U64(), c.U64()
	if c.Err() != nil || spsr&0xf != 0 || pc < 0x10000 || pc > userTop || sp < 0x10000 || sp > userTop || sp&15 != 0 || pc&3 != 0 {
		return regs, false
	}
	regs.Set(dump.ARM64LR, lr)
	regs.Set(dump.ARM64FP, fp)
	regs.SetPC(pc)
	regs.SetSP(sp)
	regs.Set(dump.ARM64CPSR, uint64(spsr))
	return regs, true
}
