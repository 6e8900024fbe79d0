package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/threadcontext"
)

// KSTACK_CONTROL, at KTHREAD.InitialStack: this segment's base and limit, then
// the segment that was left for it. Windows 8 and later, measured.
const (
	controlSize         = 0x30
	controlPrevious     = 0x10
	maxSegments         = 16
	expansionBit        = 1 // of ActualLimit: the stack was grown, no callback
	segmentLimit        = 8
	segmentKernelStack  = 0x10
	segmentInitialStack = 0x18
	largestSegment      = 0x100000
)

// outerSegments follows the chain of stack segments outward: a thread that the
// kernel calls back into user mode, or whose stack it grows, goes on on another
// one. AMD64 only.
func (f *File) outerSegments(kt *dump.KernelThread) []dump.StackSegment {
	const windows8 = 9200
	if f.hdr.arch != dump.AMD64 || f.hdr.build < windows8 || kt.InitialStack == 0 {
		return nil
	}
	var out []dump.StackSegment
	base, initial := kt.StackBase, kt.InitialStack
	for len(out) < maxSegments {
		c := f.recordAt(initial, controlSize)
		if c == nil {
			break
		}
		own, _ := c.raw(0, 8)
		grown, _ := c.raw(8, 8)
		s := dump.StackSegment{Grown: grown&expansionBit != 0}
		s.StackBase, _ = c.raw(controlPrevious, 8)
		s.StackLimit, _ = c.raw(controlPrevious+segmentLimit, 8)
		s.KernelStack, _ = c.raw(controlPrevious+segmentKernelStack, 8)
		s.InitialStack, _ = c.raw(controlPrevious+segmentInitialStack, 8)
		if own != base || !believableSegment(&s) || s.StackBase == kt.StackBase {
			break
		}
		if s.InitialStack > threadcontext.TrapFrameSize {
			at := s.InitialStack - threadcontext.TrapFrameSize
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

func believableSegment(s *dump.StackSegment) bool {
	const page = 0x1000
	return kernelAddress(8, s.StackLimit) && s.StackLimit < s.StackBase && s.StackBase-s.StackLimit <= largestSegment &&
		s.StackBase%page == 0 && s.InitialStack > s.StackLimit && s.InitialStack <= s.StackBase &&
		s.KernelStack >= s.StackLimit && s.KernelStack < s.InitialStack
}
