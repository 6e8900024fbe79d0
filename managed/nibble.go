package managed

// nibbleMap finds the start of the method that an address is in. It has four bits for
// each 32 bytes of code: where in them a method starts, in units of four bytes from
// 1, or 0. Since .NET 10 ("constant") a word that lies in one method as a whole holds
// its start instead, and no more than one word before must be looked at.
type nibbleMap struct {
	base, words uint64
	constant    bool
}

const (
	codePerNibble = 32
	codePerWord   = 8 * codePerNibble
	maxMethod     = 16 << 20 // bytes of a method's code that are walked back over
)

// nibbleStart returns the start that bits 0 to 3 of a nibble say for bucket i.
func nibbleStart(i uint64, nibble uint32) (uint64, bool) {
	if nibble == 0 || nibble > codePerNibble/4 {
		return 0, false
	}
	return i*codePerNibble + uint64(nibble-1)*4, true
}

// wordStart returns the start that a word which is no group of nibbles holds. The
// start of a method is a multiple of four: bits 0 to 3 are that of it plus 9.
func wordStart(w uint32) (uint64, bool) {
	if low := w & 15; low >= 9 && low <= 12 {
		return uint64(w&^15) + uint64(low-9)*4, true
	}
	return 0, false
}

// lastStart returns the last start that word i of the map tells of, up to bucket top of
// it, in which no nibble greater than most counts.
func lastStart(w uint32, i, top uint64, most uint32) (uint64, bool) {
	for b := int(top); b >= 0; b-- {
		nibble := w >> (28 - 4*b) & 15
		if b == int(top) && nibble > most {
			continue
		}
		if s, ok := nibbleStart(8*i+uint64(b), nibble); ok {
			return s, true
		}
	}
	return 0, false
}

func (m *nibbleMap) start(a *access, ip uint64) (uint64, bool) {
	if ip < m.base {
		return 0, false
	}
	rel := ip - m.base
	i := rel / codePerWord
	w := uint32(a.number(m.words+4*i, 4, "nibble map"))
	if a.err != nil {
		return 0, false
	}
	start, ok := wordStart(w)
	if !ok {
		start, ok = lastStart(w, i, rel%codePerWord/codePerNibble, uint32(rel%codePerNibble/4+1))
	}
	for ; !ok && i > 0 && rel-i*codePerWord < maxMethod; i-- {
		w = uint32(a.number(m.words+4*(i-1), 4, "nibble map"))
		if a.err != nil {
			return 0, false
		}
		if start, ok = wordStart(w); !ok {
			start, ok = lastStart(w, i-1, 7, 8)
		}
		if m.constant {
			break
		}
	}
	return m.base + start, ok && start <= rel
}
