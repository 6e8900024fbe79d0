package triage

import "dumptriage/dump"

// FrameRegisters returns the registers of a half's first n frames as far as
// unwinding recovered them, by walking once more. There are fewer when the half
// has fewer, and only frame 0's in a half that was made by hand.
func (h *Half) FrameRegisters(n int) []dump.Registers {
	n = min(n, len(h.Frames))
	if n <= 0 {
		return nil
	}
	if h.walkedBy.walker == nil {
		return []dump.Registers{h.Registers}
	}
	out := make([]dump.Registers, 0, n)
	h.walkedBy.walker.unwinder.WalkRegisters(h.Registers, h.walkedBy.options, func(_ int, regs *dump.Registers) bool {
		out = append(out, *regs)
		return len(out) < n
	})
	return out
}
