package cab

import "errors"

const (
	codeMost    = 16 // bits of LZX's longest code
	tableBits   = 11 // codes up to this long are looked up at once
	symbolsMost = literals + lengthHeaders*slotsMost
)

var (
	errOversubscribed = errors.New("a Huffman code has more symbols than its lengths allow")
	errNoSymbol       = errors.New("a bit sequence that is no code")
)

// huffman is a canonical code: symbols in order of length, then value. A code
// that leaves bit sequences unused is accepted; meeting one is an error.
type huffman struct {
	table  [1 << tableBits]uint16 // symbol<<5 | length, or 0
	limit  [codeMost + 1]uint32   // first code beyond those of a length, 16 bits wide
	base   [codeMost + 1]int32    // index in sorted of a length's first symbol, less its code
	sorted [symbolsMost]uint16
}

// build makes the code from its lengths, 0 for symbols that do not occur.
func (h *huffman) build(lengths []uint8) error {
	var count [codeMost + 1]int
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	code, index := uint32(0), int32(0) // code is as wide as the length at hand
	var next [codeMost + 1]int32
	for n := 1; n <= codeMost; n++ {
		code <<= 1
		h.base[n] = index - int32(code)
		next[n] = index
		code += uint32(count[n])
		index += int32(count[n])
		if code > 1<<n {
			return errOversubscribed
		}
		h.limit[n] = code << (codeMost - n)
	}
	for symbol, n := range lengths {
		if n != 0 {
			h.sorted[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	h.fillTable(count)
	return nil
}

func (h *huffman) fillTable(count [codeMost + 1]int) {
	clear(h.table[:])
	at, index := 0, 0
	for n := 1; n <= tableBits; n++ {
		for range count[n] {
			entry := h.sorted[index]<<5 | uint16(n)
			index++
			for range 1 << (tableBits - n) {
				h.table[at] = entry
				at++
			}
		}
	}
}

// decode reads one symbol. At least 16 bits must be available.
func (h *huffman) decode(b *bitReader) (uint, error) {
	bits := b.peek()
	if e := h.table[bits>>(codeMost-tableBits)]; e != 0 {
		b.drop(uint(e & 31))
		return uint(e >> 5), nil
	}
	for n := tableBits + 1; n <= codeMost; n++ {
		if uint32(bits) < h.limit[n] {
			b.drop(uint(n))
			return uint(h.sorted[int32(bits>>(codeMost-n))+h.base[n]]), nil
		}
	}
	return 0, errNoSymbol
}
