package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// stackControl is KSTACK_CONTROL, at KTHREAD.InitialStack: this segment's base and
// limit, then the segment that was left for it. Windows 8 and later, measured on x64,
// of x86 the public type.
type stackControl struct {
	size, previous int
	trapFrame      int // PreviousTrapFrame, 0 where it lies at a fixed place
}

var (
	stackControl64 = stackControl{0x30, 0x10, 0}
	stackControl32 = stackControl{0x20, 0x10, 8}
)

const (
	maxSegments    = 16
	expansionBit   = 1 // of ActualLimit: the stack was grown, no callback
	largestSegment = 0x100000
)

// outerSegments follows the chain of stack segments outward: a thread that the
// kernel calls back into user mode, or whose stack it grows, goes on on another
// one. What ARM64 keeps of it is not known.
func (f *File) outerSegments(kt *dump.KernelThread) []dump.StackSegment {
	const windows8 = 9200
	if f.hdr.arch == dump.ARM64 || f.hdr.build < windows8 || kt.InitialStack == 0 {
		return nil
	}
	l, ptr := &stackControl64, f.hdr.ptr
	if ptr == 4 {
		l = &stackControl32
	}
	var out []dump.StackSegment
	base, initial := kt.StackBase, kt.InitialStack
	for len(out) < maxSegments {
		c := f.recordAt(initial, l.size)
		if c == nil {
			break
		}
		own, _ := c.raw(0, ptr)
		grown, _ := c.raw(ptr, ptr)
		s := dump.StackSegment{Grown: grown&expansionBit != 0}
		for i, field := range []*uint64{&s.StackBase, &s.StackLimit, &s.KernelStack, &s.InitialStack} {
			*field, _ = c.raw(l.previous+i*ptr, ptr)
		}
		if own != base || !believableSegment(ptr, &s) || s.StackBase == kt.StackBase {
			break
		}
		at := s.InitialStack - threadcontext.TrapFrameSize
		if l.trapFrame != 0 {
			at, _ = c.raw(l.trapFrame, ptr)
		}
		if at >= s.StackLimit && at < s.StackBase {
			if regs, ok := f.userFrame(at); ok {
				s.TrapFrame, s.User = at, regs
			}
		}
		s.Entry = f.kd.callUserMode
		out = append(out, s)
		base, initial = s.StackBase, s.InitialStack
	}
	return out
}

func believableSegment(ptr int, s *dump.StackSegment) bool {
	const page = 0x1000
	return kernelAddress(ptr, s.StackLimit) && s.StackLimit < s.StackBase && s.StackBase-s.StackLimit <= largestSegment &&
		s.StackBase%page == 0 && s.InitialStack > s.StackLimit && s.InitialStack <= s.StackBase &&
		s.KernelStack >= s.StackLimit && s.KernelStack < s.InitialStack
}
