package triage

import (
	"encoding/binary"

	"dumptriage/dump"
)

// The branches that a call's target is found by, of the Intel and Arm manuals.
const (
	callRel32 = 0xe8
	jumpRel32 = 0xe9
	group5    = 0xff
	slotCall  = 0x15 // ModRM of call [disp32], behind group5
	slotJump  = 0x25 // ModRM of jmp [disp32]

	armBranch = 0b000101 // B imm26, in the top six bits
	armLink   = 0b100101 // BL imm26
)

// target is where the direct call before a return address leads, through the jump
// that incremental linking puts between; 0 for other calls. imported is set when
// the call is through a slot for a function of another image.
func (p *prover) target(ret uint64) (target uint64, imported bool) {
	switch p.arch {
	case dump.ARM64:
		return p.targetARM64(ret), false
	case dump.AMD64, dump.X86:
	default:
		return 0, false
	}
	if p.throughSlot(ret-6, slotCall) {
		return 0, true
	}
	target, ok := p.relative(ret-5, callRel32)
	if !ok {
		return 0, false
	}
	if p.throughSlot(target, slotJump) {
		return 0, true
	}
	if through, jump := p.relative(target, jumpRel32); jump {
		target = through
	}
	return target, false
}

// relative is where a branch of five bytes leads.
func (p *prover) relative(at uint64, opcode byte) (uint64, bool) {
	var b [5]byte
	if !p.read(b[:], at) || b[0] != opcode {
		return 0, false
	}
	return p.arch.Narrow(at + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))), true
}

// throughSlot reports whether a branch goes through a slot of the image's table of
// imported functions.
func (p *prover) throughSlot(at uint64, modRM byte) bool {
	var b [6]byte
	if !p.read(b[:], at) || b[0] != group5 || b[1] != modRM {
		return false
	}
	slot := uint64(binary.LittleEndian.Uint32(b[2:]))
	if p.arch == dump.AMD64 {
		slot = at + 6 + uint64(int64(int32(slot)))
	}
	im, base := p.code.Image(at)
	return im != nil && slot >= base && slot-base <= 0xffffffff && im.Imported(uint32(slot-base))
}

func (p *prover) targetARM64(ret uint64) uint64 {
	target, ok := p.branchARM64(ret-4, armLink)
	if !ok {
		return 0
	}
	if through, jump := p.branchARM64(target, armBranch); jump {
		target = through
	}
	return target
}

// branchARM64 is where a branch with a 26-bit offset, counted in words, leads.
func (p *prover) branchARM64(at uint64, opcode uint32) (uint64, bool) {
	var b [4]byte
	if !p.read(b[:], at) {
		return 0, false
	}
	in := binary.LittleEndian.Uint32(b[:])
	return at + uint64(int64(int32(in<<6))>>4), in>>26 == opcode
}
