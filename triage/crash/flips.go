package crash

import (
	"cmp"
	"slices"

	"dumptriage/dump"
)

// BitFlip is an address that differs from the one that faulted in a single bit
// and at which the access would have been allowed.
type BitFlip struct {
	Address    uint64
	Confidence float64  // 0 to 1
	Source     dump.Reg // the register that would hold the wrong bit
	HasSource  bool
	// What speaks for and against it.
	WasNonCanonical bool
	WasLow          bool // the address that faulted was near 0
	Poison          bool // registers hold patterns of bad memory
	Nearby          int  // other registers that point to near the right address
}

const (
	maxFlips  = 4
	nearFlip  = 4096    // a register this close to the right address supports it
	lowFlip   = 1 << 20 // addresses below are rarely pointers with one wrong bit
	userTop64 = 0x7fff_ffff_ffff
)

// bitFlips looks for memory faults: a pointer with one wrong bit. It needs the
// dump's list of memory, since nearly every address is some flip away from what
// could be a pointer.
func (j *judge) bitFlips() {
	v := j.v
	if j.arch.PointerSize() != 8 || !v.HasAddress || len(j.mem.Regions) == 0 {
		return
	}
	switch v.Class {
	case NonCanonical, WildPointer, KernelAddress:
	default:
		return
	}
	poison := false
	for i := range v.Registers {
		poison = poison || v.Registers[i].Pattern != nil
	}
	for bit := range 64 {
		a := v.Address ^ 1<<bit
		if a < nullPage || a > userTop64 || !j.allows(a) {
			continue
		}
		f := BitFlip{Address: a, WasNonCanonical: v.Class == NonCanonical, WasLow: v.Address < lowFlip, Poison: poison}
		f.Source, f.HasSource = j.flippedRegister(bit)
		f.Nearby = j.nearby(a, f)
		f.Confidence = f.weigh()
		v.BitFlips = append(v.BitFlips, f)
	}
	// Of an address with many neighbours none is the one.
	if n := len(v.BitFlips); n > 1 {
		for i := range v.BitFlips {
			v.BitFlips[i].Confidence /= float64(n)
		}
	}
	slices.SortStableFunc(v.BitFlips, func(a, b BitFlip) int { return cmp.Compare(b.Confidence, a.Confidence) })
	v.BitFlips = v.BitFlips[:min(len(v.BitFlips), maxFlips)]
}

// allows reports whether the dump's list of memory allows the access at a.
func (j *judge) allows(a uint64) bool {
	r := j.mem.Region(a)
	return r != nil && permits(r, j.v.Access)
}

func permits(r *dump.Region, access Access) bool {
	if r.State != memCommit || r.Protect&(pageGuard|pageNoAccess) != 0 {
		return false
	}
	switch access {
	case Write:
		return r.Protect&pageWritable != 0
	case Execute:
		return r.Executable()
	}
	return r.Protect&pageReadable != 0
}

// flippedRegister finds the register of the operand that holds the wrong bit:
// the one that is near the address that faulted.
func (j *judge) flippedRegister(bit int) (dump.Reg, bool) {
	for _, r := range generalRegisters(j.arch) {
		val, ok := j.crash.Context.Get(r)
		if !ok || r == j.arch.SPReg() || !near64(val, j.v.Address, patternReach) {
			continue
		}
		if j.mem.Region(val^1<<bit) != nil {
			return r, true
		}
	}
	return 0, false
}

// nearby counts the other registers that point to near an address.
func (j *judge) nearby(a uint64, f BitFlip) int {
	n := 0
	for _, r := range generalRegisters(j.arch) {
		if f.HasSource && r == f.Source {
			continue
		}
		if val, ok := j.crash.Context.Get(r); ok && near64(val, a, nearFlip) {
			n++
		}
	}
	return n
}

// weigh makes one number of what speaks for and against a flip. A non-canonical
// address with one wrong bit is hard to come by otherwise; a wild one is not.
func (f *BitFlip) weigh() float64 {
	c := 0.25
	if f.WasNonCanonical {
		c = 0.5
	}
	if f.Nearby > 0 {
		c += 0.2 + 0.05*float64(min(f.Nearby, 4)-1)
	}
	if !f.HasSource {
		c *= 0.7
	}
	if f.WasLow {
		c *= 0.5
	}
	if f.Poison {
		c *= 0.25
	}
	return min(c, 0.95)
}
