package cab

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// An LZX encoder for tests, written from the format's description and sharing
// no table or function with the decoder. What it makes was checked with
// cabextract; TestAgainstCabextract does so again wherever that is installed.

// testBlock is one block of an encoder's plan.
type testBlock struct {
	kind uint // 1 verbatim, 2 aligned, 3 uncompressed
	size int
}

// testToken is a literal (length 0) or a match.
type testToken struct {
	literal byte
	length  int
	slot    int
	footer  uint32 // the slot's extra bits
}

type testEncoder struct {
	out    [][]byte // finished frames
	cur    []byte
	acc    uint32
	n      uint
	r      [3]int
	window int
	slots  int
	main   []uint8 // lengths of the block before
	length []uint8
}

func (e *testEncoder) put(v uint32, bits uint) {
	for i := int(bits) - 1; i >= 0; i-- {
		e.acc = e.acc<<1 | v>>i&1
		if e.n++; e.n == 16 {
			e.cur = binary.LittleEndian.AppendUint16(e.cur, uint16(e.acc))
			e.acc, e.n = 0, 0
		}
	}
}

func (e *testEncoder) align() {
	for e.n != 0 {
		e.put(0, 1)
	}
}

func (e *testEncoder) cut() {
	e.align()
	e.out = append(e.out, e.cur)
	e.cur = nil
}

// encodeLZX packs data by a plan of blocks whose sizes add up to len(data), and
// returns one packed byte sequence for each 32 KB.
func encodeLZX(data []byte, windowBits int, plan []testBlock, e8 int32) [][]byte {
	data = slices.Clone(data)
	e := &testEncoder{r: [3]int{1, 1, 1}, window: 1 << windowBits}
	e.slots = map[int]int{15: 30, 16: 32, 17: 34, 18: 36, 19: 38, 20: 42, 21: 50}[windowBits]
	e.main, e.length = make([]uint8, 256+8*e.slots), make([]uint8, 249)
	if e8 == 0 {
		e.put(0, 1)
	} else {
		e.put(1, 1)
		e.put(uint32(e8)>>16, 16)
		e.put(uint32(e8)&0xffff, 16)
		for at := 0; at < len(data); at += 32768 {
			applyE8(data[at:min(len(data), at+32768)], int32(at), e8)
		}
	}
	finder := map[[3]byte]int{}
	pos := 0
	for _, b := range plan {
		e.put(uint32(b.kind), 3)
		e.put(uint32(b.size), 24)
		if b.kind == 3 {
			e.raw(data, pos, b.size)
		} else {
			e.packed(data, pos, b, finder)
		}
		pos += b.size
	}
	if len(data)%32768 != 0 {
		e.cut()
	}
	return e.out
}

// applyE8 makes call targets absolute.
func applyE8(frame []byte, at, size int32) {
	if len(frame) <= 10 {
		return
	}
	for i := 0; i < len(frame)-10; i++ {
		if frame[i] != 0xe8 {
			continue
		}
		relative := int64(int32(binary.LittleEndian.Uint32(frame[i+1:])))
		pos := int64(at) + int64(i)
		absolute := relative
		if relative+pos >= 0 && relative+pos < int64(size) {
			absolute = relative + pos
		} else if relative-int64(size) < 0 && relative-int64(size) >= -pos {
			absolute = relative - int64(size)
		}
		binary.LittleEndian.PutUint32(frame[i+1:], uint32(absolute))
		i += 4
	}
}

func (e *testEncoder) raw(data []byte, pos, size int) {
	e.put(0, 16-e.n) // 1 to 16 bits
	for _, r := range e.r {
		e.cur = binary.LittleEndian.AppendUint32(e.cur, uint32(r))
	}
	for i := range size {
		e.cur = append(e.cur, data[pos+i])
		if i == size-1 && size%2 != 0 {
			e.cur = append(e.cur, 0)
		}
		if (pos+i+1)%32768 == 0 {
			e.cut()
		}
	}
}

func (e *testEncoder) packed(data []byte, pos int, b testBlock, finder map[[3]byte]int) {
	tokens := e.tokens(data, pos, pos+b.size, finder)
	mainFreq, lengthFreq, alignedFreq := make([]int, len(e.main)), make([]int, 249), make([]int, 8)
	for _, t := range tokens {
		mainFreq[t.symbol()]++
		if t.length >= 9 {
			lengthFreq[t.length-9]++
		}
		if t.length > 0 && t.slot >= 8 {
			alignedFreq[t.footer&7]++
		}
	}
	if slices.Max(alignedFreq) == 0 { // cabextract refuses an empty aligned code, though it is not used
		alignedFreq[0] = 1
	}
	aligned := codeLengths(alignedFreq, 7)
	if b.kind == 2 {
		for _, n := range aligned {
			e.put(uint32(n), 3)
		}
	}
	main, length := codeLengths(mainFreq, 16), codeLengths(lengthFreq, 16)
	e.lengths(e.main[:256], main[:256])
	e.lengths(e.main[256:], main[256:])
	e.lengths(e.length, length)
	e.main, e.length = main, length
	mainCode, lengthCode, alignedCode := codes(main), codes(length), codes(aligned)
	for _, t := range tokens {
		s := t.symbol()
		e.put(mainCode[s], uint(main[s]))
		if t.length >= 9 {
			e.put(lengthCode[t.length-9], uint(length[t.length-9]))
		}
		if t.length > 0 {
			n := footerBits(t.slot)
			if b.kind == 2 && n >= 3 {
				e.put(t.footer>>3, n-3)
				e.put(alignedCode[t.footer&7], uint(aligned[t.footer&7]))
			} else {
				e.put(t.footer, n)
			}
		}
		if pos += max(1, t.length); pos%32768 == 0 {
			e.cut()
		}
	}
}

func (t testToken) symbol() int {
	if t.length == 0 {
		return int(t.literal)
	}
	return 256 + t.slot*8 + min(t.length-2, 7)
}

// footerBits: none for slots 0-3, then one more every two slots up to 17.
func footerBits(slot int) uint {
	switch {
	case slot < 4:
		return 0
	case slot >= 36:
		return 17
	}
	return uint(slot/2 - 1)
}

// tokens parses greedily: repeated distances first, then the latest place where
// the same three bytes stood.
func (e *testEncoder) tokens(data []byte, pos, end int, finder map[[3]byte]int) (out []testToken) {
	for pos < end {
		limit := min(end, (pos/32768+1)*32768, pos+257)
		best, slot, offset := 0, 0, 0
		for i, r := range e.r {
			if n := matchLength(data, pos-r, pos, limit); n > best {
				best, slot, offset = n, i, r
			}
		}
		if pos+3 <= len(data) {
			if at, ok := finder[[3]byte(data[pos:])]; ok && pos-at <= e.window-3 {
				if n := matchLength(data, at, pos, limit); n > best+1 {
					best, slot, offset = n, -1, pos-at
				}
			}
		}
		step := 1
		if best < 2 {
			out = append(out, testToken{literal: data[pos]})
		} else {
			step = best
			t := testToken{length: best, slot: slot}
			if slot >= 0 {
				e.r[0], e.r[slot] = e.r[slot], e.r[0]
			} else {
				e.r = [3]int{offset, e.r[0], e.r[1]}
				t.slot, t.footer = slotOf(offset + 2)
			}
			out = append(out, t)
		}
		for range step {
			if pos+3 <= len(data) {
				finder[[3]byte(data[pos:])] = pos
			}
			pos++
		}
	}
	return out
}

func slotOf(formatted int) (slot int, footer uint32) {
	base := 0
	for slot = 0; ; slot++ {
		if size := 1 << footerBits(slot); formatted < base+size {
			return slot, uint32(formatted - base)
		} else {
			base += size
		}
	}
}

func matchLength(data []byte, from, pos, limit int) int {
	if from < 0 {
		return 0
	}
	n := 0
	for pos+n < limit && data[from+n] == data[pos+n] {
		n++
	}
	return n
}

// lengths writes code lengths as differences, with the run symbols where they fit.
func (e *testEncoder) lengths(old, now []uint8) {
	type item struct {
		symbol, extra int
		bits          uint
		then          int // symbol after a 19, or -1
	}
	var items []item
	freq := make([]int, 20)
	for i := 0; i < len(now); {
		run := 1
		for i+run < len(now) && now[i+run] == now[i] {
			run++
		}
		delta := (int(old[i]) - int(now[i]) + 17) % 17
		it := item{symbol: delta, then: -1}
		step := 1
		switch {
		case now[i] == 0 && run >= 20:
			step = min(run, 51)
			it = item{18, step - 20, 5, -1}
		case now[i] == 0 && run >= 4:
			step = min(run, 19)
			it = item{17, step - 4, 4, -1}
		case run >= 4:
			step = min(run, 5)
			it = item{19, step - 4, 1, delta}
			freq[delta]++
		}
		freq[it.symbol]++
		items = append(items, it)
		i += step
	}
	pre := codeLengths(freq, 15)
	for _, n := range pre {
		e.put(uint32(n), 4)
	}
	code := codes(pre)
	for _, it := range items {
		e.put(code[it.symbol], uint(pre[it.symbol]))
		e.put(uint32(it.extra), it.bits)
		if it.then >= 0 {
			e.put(code[it.then], uint(pre[it.then]))
		}
	}
}

// codeLengths makes a Huffman code of at most most bits: too long a code is
// made again from flatter frequencies. A lone symbol gets a neighbour, because
// other decoders refuse incomplete codes.
func codeLengths(freq []int, most int) []uint8 {
	freq = slices.Clone(freq)
	lengths := make([]uint8, len(freq))
	used := 0
	for _, f := range freq {
		used += min(f, 1)
	}
	for i := 0; used == 1 && i < len(freq); i++ {
		if freq[i] == 0 {
			freq[i], used = 1, 2
		}
	}
	for used > 0 {
		if longest := huffmanLengths(freq, lengths); longest <= most {
			break
		}
		for i, f := range freq {
			if f > 0 {
				freq[i] = f/2 + 1
			}
		}
	}
	return lengths
}

func huffmanLengths(freq []int, lengths []uint8) (longest int) {
	type node struct {
		weight  int
		symbols []int
	}
	var nodes []node
	clear(lengths)
	for i, f := range freq {
		if f > 0 {
			nodes = append(nodes, node{f, []int{i}})
		}
	}
	for len(nodes) > 1 {
		slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.weight, b.weight) })
		both := node{nodes[0].weight + nodes[1].weight, slices.Concat(nodes[0].symbols, nodes[1].symbols)}
		for _, s := range both.symbols {
			lengths[s]++
			longest = max(longest, int(lengths[s]))
		}
		nodes = append(nodes[2:], both)
	}
	return longest
}

// codes assigns canonical codes: by length, then by symbol.
func codes(lengths []uint8) []uint32 {
	out := make([]uint32, len(lengths))
	code := uint32(0)
	for n := 1; n <= 16; n++ {
		for s, l := range lengths {
			if int(l) == n {
				out[s] = code
				code++
			}
		}
		code <<= 1
	}
	return out
}
