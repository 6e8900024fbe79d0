package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
)

// MaxBody is how many bytes of a function Body looks at, and what should be read
// for it.
const MaxBody = 4096

// minBody is how many instructions make a body worth a hash: of the functions of
// 24 system DLLs with at least this many, one in ten has a twin of the same code
// in its DLL; of shorter ones one in three.
const minBody = 16

// Body hashes what a function does and not where it lies: the operations and
// registers of its instructions in order, without immediates, displacements and
// the targets of branches, and without the instructions that only fill space. It
// is the same wherever the image is loaded and as long as the compiler makes the
// same code, whatever moved around the function. "" means that there is too
// little to tell one function from another.
//
// code is the function from its start on, at most MaxBody bytes. It may be
// anything: what cannot be decoded is left out, on x86 with all behind it.
func Body(arch dump.Arch, code []byte) string {
	code = code[:min(len(code), MaxBody)]
	h := sha256.New()
	var n int
	switch arch {
	case dump.AMD64:
		n = hashX86(h, code, 64)
	case dump.X86:
		n = hashX86(h, code, 32)
	case dump.ARM64:
		n = hashARM64(h, code)
	}
	if n < minBody {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// hashX86 works with the names of operations and registers: a disassembler's
// numbers for them are its own business and may change.
func hashX86(h hash.Hash, code []byte, mode int) (n int) {
	line := make([]byte, 0, 64)
	for len(code) > 0 && !vector(code[0], mode) {
		in, err := x86asm.Decode(code, mode)
		if err != nil || in.Op == 0 {
			break
		}
		code = code[in.Len:]
		if in.Op == x86asm.NOP {
			continue
		}
		n++
		line = append(line[:0], in.Op.String()...)
		for _, a := range in.Args {
			if a == nil {
				break
			}
			line = append(line, ' ')
			switch a := a.(type) {
			case x86asm.Reg:
				line = append(line, a.String()...)
			case x86asm.Mem:
				line = appendMem(line, a)
			case x86asm.Rel:
				line = append(line, 'r')
			default:
				line = append(line, 'i')
			}
		}
		h.Write(append(line, '\n'))
	}
	return n
}

// vector reports whether an instruction begins with the VEX, EVEX or REX2 prefix,
// of which the disassembler knows little: a later version that knows more must not
// change a hash.
func vector(b byte, mode int) bool {
	return b == 0xc4 || b == 0xc5 || b == 0x62 || b == 0xd5 && mode == 64
}

func appendMem(line []byte, m x86asm.Mem) []byte {
	line = append(line, '[')
	for _, r := range []x86asm.Reg{m.Segment, m.Base, m.Index} {
		if r != 0 {
			line = append(line, r.String()...)
		}
		line = append(line, ',')
	}
	if m.Index != 0 {
		line = append(line, '0'+m.Scale)
	}
	return append(line, ']')
}

// hashARM64 takes operations and the registers among their operands.
func hashARM64(h hash.Hash, code []byte) (n int) {
	line := make([]byte, 0, 64)
	for ; len(code) >= 4; code = code[4:] {
		in, err := arm64asm.Decode(code)
		if err != nil || in.Op == arm64asm.NOP {
			continue
		}
		n++
		line = append(line[:0], in.Op.String()...)
		for _, a := range in.Args {
			if a == nil {
				break
			}
			line = append(line, ' ')
			switch a := a.(type) {
			case arm64asm.Reg:
				line = append(line, a.String()...)
			case arm64asm.RegSP:
				line = append(line, a.String()...)
			case arm64asm.MemImmediate:
				line = append(append(line, '['), a.Base.String()...)
			case arm64asm.MemExtend:
				line = append(append(append(append(line, '['), a.Base.String()...), ','), a.Index.String()...)
			default:
				line = append(line, 'i')
			}
		}
		h.Write(append(line, '\n'))
	}
	return n
}
