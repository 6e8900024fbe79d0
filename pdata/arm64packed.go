package pdata

import "dumptriage/dump"

// arm64Layout is the fields of packed unwind data and the sizes that follow
// from them, by the formulas of the public documentation.
type arm64Layout struct {
	regF, regI, cr uint32
	homes          bool   // the parameter registers are stored too
	savSize        uint32 // of all saves below the locals
	locSize        uint32
}

// Values of the CR field.
const (
	crUnchained = 0
	crLR        = 1 // lr saved, no frame chain
	crChainPAC  = 2 // frame chain, lr signed
	crChain     = 3
)

// DecodeARM64Packed expands packed unwind data to the codes that an .xdata
// record of the same function would hold.
func DecodeARM64Packed(word uint32) (*ARM64Info, error) {
	flag := word & arm64FlagMask
	if flag != arm64Packed && flag != arm64PackedFragment {
		return nil, errReservedARM64(word)
	}
	p := arm64Layout{regF: word >> 13 & 7, regI: word >> 16 & 0xf, homes: word>>20&1 != 0, cr: word >> 21 & 3}
	frame := word >> 23 * 16
	ints, floats := p.regI*8, p.regF*8
	if p.cr == crLR {
		ints += 8
	}
	if p.regF != 0 {
		floats += 8
	}
	p.savSize = ints + floats
	if p.homes {
		p.savSize += 8 * 8
	}
	p.savSize = (p.savSize + 15) &^ 15
	chained := p.cr == crChain || p.cr == crChainPAC
	if p.savSize > frame || p.regI > 10 || chained && frame-p.savSize < 16 {
		return nil, dump.Errorf(dump.BadRecord, ".pdata", "packed unwind data %#x describe a frame that cannot be", word)
	}
	p.locSize = frame - p.savSize
	u := &ARM64Info{Length: word >> 2 & 0x7ff * arm64WordLen, Packed: true, Fragment: flag == arm64PackedFragment}
	u.prolog, u.epilog = p.codes(true), p.codes(false)
	return u, nil
}

// codes lists the codes in undoing order. A prolog has instructions that an
// epilog lacks: the stores of the parameters, and the setting of fp.
func (p *arm64Layout) codes(prolog bool) []ARM64Code {
	var c []ARM64Code
	chained := p.cr == crChain || p.cr == crChainPAC
	if chained && prolog {
		c = append(c, ARM64Code{Op: ARM64SetFP})
	}
	const (
		maxPre   = 512  // that one stp with pre-decrement takes
		maxAlloc = 4080 // that one sub takes
	)
	if chained && p.locSize <= maxPre {
		c = append(c, pair(ARM64SavePre, 29, p.locSize))
	} else {
		if chained {
			c = append(c, pair(ARM64Save, 29, 0))
		}
		if p.locSize > maxAlloc {
			c = append(c, ARM64Code{Op: ARM64Alloc, Value: p.locSize - maxAlloc})
		}
		if p.locSize > 0 {
			c = append(c, ARM64Code{Op: ARM64Alloc, Value: min(p.locSize, maxAlloc)})
		}
	}
	c = append(c, p.saves(prolog)...)
	if p.cr == crChainPAC {
		c = append(c, ARM64Code{Op: ARM64PACSignLR})
	}
	return c
}

// saves lists the register saves in undoing order: they are laid out upwards,
// and the first of them makes the room for all.
func (p *arm64Layout) saves(prolog bool) []ARM64Code {
	var c []ARM64Code // as executed
	at := uint32(0)
	add := func(op ARM64Op, reg, count uint32) {
		c = append(c, ARM64Code{Op: op, Reg: uint8(reg), Count: uint8(count), Value: at})
		at += 8 * count
	}
	for i := uint32(0); i+1 < p.regI; i += 2 {
		add(ARM64Save, 19+i, 2)
	}
	switch odd := p.regI%2 != 0; {
	case odd && p.cr == crLR:
		add(ARM64SaveLRPair, 19+p.regI-1, 1)
		at += 8
	case odd:
		add(ARM64Save, 19+p.regI-1, 1)
	case p.cr == crLR:
		add(ARM64Save, arm64LR, 1)
	}
	if p.regF != 0 {
		for i := uint32(0); i <= p.regF; i += 2 {
			add(ARM64SaveD, 8+i, min(2, p.regF+1-i))
		}
	}
	homes := 0
	if p.homes && prolog {
		homes = 4
	}
	for range homes {
		c = append(c, ARM64Code{Op: ARM64Nop})
	}
	p.makeRoom(&c)
	for i, j := 0, len(c)-1; i < j; i, j = i+1, j-1 {
		c[i], c[j] = c[j], c[i]
	}
	return c
}

// makeRoom gives the first save the pre-decrement. A pair with lr has no form
// with one, so the room is then made by an instruction of its own.
func (p *arm64Layout) makeRoom(c *[]ARM64Code) {
	if p.savSize == 0 {
		return
	}
	room := ARM64Code{Op: ARM64Alloc, Value: p.savSize}
	switch {
	case len(*c) == 0, (*c)[0].Op == ARM64SaveLRPair:
		*c = append([]ARM64Code{room}, *c...)
	case (*c)[0].Op == ARM64Nop: // the first store of the parameters makes it
		(*c)[0] = room
	default:
		(*c)[0].Op++
		(*c)[0].Value = p.savSize
	}
}

// atPacked is At for packed data, whose one epilog ends the function.
func (u *ARM64Info) atPacked(at int) []ARM64Code {
	n := len(u.prolog)
	if u.Fragment {
		return u.prolog
	}
	if at < n {
		return dropARM64(u.prolog, n-at)
	}
	if start := int(u.Length/arm64WordLen) - len(u.epilog) - 1; at >= start && start >= 0 {
		return dropARM64(u.epilog, at-start)
	}
	return u.prolog
}
