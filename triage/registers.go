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

// ReadCode reads instructions at an address of the half's space: from memory,
// else from the module's image. It returns how many bytes there were.
func (h *Half) ReadCode(p []byte, va uint64) int {
	if h.walkedBy.walker == nil {
		return 0
	}
	return h.walkedBy.walker.space.readCode(p, va)
}

// FunctionStart returns where the function that holds va begins, by its
// module's unwind table; ok is false when nothing proves it.
func (h *Half) FunctionStart(va uint64) (start uint64, ok bool) {
	if h.walkedBy.walker == nil {
		return 0, false
	}
	im, base := h.walkedBy.walker.space.Image(va)
	if im == nil {
		return 0, false
	}
	rva, ok := im.FunctionStart(uint32(va - base))
	return base + uint64(rva), ok
}

// readCode reads code bytes from memory, else from the image that is mapped
// there.
func (s *space) readCode(p []byte, va uint64) int {
	if n, _ := s.ReadAt(p, va); n == len(p) {
		return n
	}
	im, base := s.Image(va)
	if im == nil {
		n, _ := s.ReadAt(p, va)
		return n
	}
	n, _ := im.ReadRVA(p, uint32(va-base))
	return n
}
