package unwind

import (
	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

// proof is the answer to "does a CALL end at this return address?".
type proof uint8

const (
	proofNone    proof = iota // not looked at yet
	proofUnknown              // no code bytes at hand
	proofYes
	proofNo
)

const (
	shortestCall = 2 // FF /2, register
	longestCall  = 8 // prefix or REX, FF /2, ModRM, SIB, 32-bit displacement
)

// callBefore looks for a CALL that ends at ret; s is the site of ret-1.
func (w *Walker) callBefore(s *site, ret uint64) proof {
	if s.call == proofNone {
		s.call = w.findCall(s, ret)
	}
	return s.call
}

func (w *Walker) findCall(s *site, ret uint64) proof {
	if s.arch == dump.ARM64 {
		return w.findCallARM64(s, ret)
	}
	for n := longestCall; n >= shortestCall; n-- {
		b := w.code[:n]
		if w.readCode(b, s, ret-uint64(n)) < n {
			continue
		}
		if endsInCall(b, s.arch) {
			return proofYes
		}
		if n >= 5 { // the forms up to five bytes are nearly all there are
			return proofNo
		}
		return proofUnknown
	}
	return proofUnknown
}

// endsInCall reports whether some suffix of b is exactly one CALL instruction.
func endsInCall(b []byte, arch dump.Arch) bool {
	mode := 64
	if arch == dump.X86 {
		mode = 32
	}
	for n := shortestCall; n <= len(b); n++ {
		c := b[len(b)-n:]
		if n == 5 && c[0] == 0xe8 {
			return true
		}
		if !mayBeginCall(c, mode) {
			continue
		}
		in, err := x86asm.Decode(c, mode)
		if err == nil && in.Len == n && (in.Op == x86asm.CALL || in.Op == x86asm.LCALL) {
			return true
		}
	}
	return false
}

// mayBeginCall keeps from the decoder what cannot be a CALL, and with it the
// VEX, EVEX and REX2 encodings that it misreads.
func mayBeginCall(c []byte, mode int) bool {
	i := 0
	for i < len(c)-2 && isPrefix(c[i]) {
		i++
	}
	if mode == 64 && c[i]&0xf0 == 0x40 {
		i++
	}
	if i+1 >= len(c) {
		return false
	}
	switch c[i] {
	case 0xff:
		return c[i+1]>>3&7 == 2 || c[i+1]>>3&7 == 3
	case 0xe8:
		return true
	case 0x9a:
		return mode == 32
	}
	return false
}

// isPrefix lists the prefixes that compilers put before a CALL: segment
// overrides (one doubles as NOTRACK), operand and address size, BND.
func isPrefix(b byte) bool {
	switch b {
	case 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x66, 0x67, 0xf2:
		return true
	}
	return false
}
