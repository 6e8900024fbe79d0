package cab

import (
	"errors"
	"math/bits"
)

const (
	lzxWindowMin = 15 // log2 of the smallest and largest window in cabinets
	lzxWindowMax = 21

	literals      = 256
	lengthHeaders = 8   // lengths that a main symbol tells by itself, and "more"
	lengthSymbols = 249 // of the length tree
	alignedCount  = 8
	pretreeCount  = 20
	matchMin      = 2
	slotsMost     = 50
)

// The types of blocks.
const (
	blockVerbatim     = 1
	blockAligned      = 2
	blockUncompressed = 3
)

// slotCount holds the number of position slots of windows of 2^15 bytes on.
var slotCount = [lzxWindowMax - lzxWindowMin + 1]int{30, 32, 34, 36, 38, 42, slotsMost}

// slotBits and slotBase hold each position slot's number of footer bits and
// smallest formatted offset: two slots a bit width, 17 bits at most.
var slotBits, slotBase = func() (n [slotsMost]uint8, base [slotsMost]uint32) {
	next := uint32(0)
	for s := range slotsMost {
		n[s] = uint8(min(17, max(0, s/2-1)))
		base[s] = next
		next += 1 << n[s]
	}
	return
}()

var errMatch = errors.New("a match refers to data that are not there")

// lzxDecoder unpacks LZX. Each CFDATA is one 32 KB frame, whose bit stream
// begins at a word boundary; blocks, with their trees, run on across frames.
type lzxDecoder struct {
	window []byte // the last output, before E8 translation; a power of two long
	size   uint32 // the window size that the folder declares: the farthest match
	total  int64  // bytes unpacked in the frames before this one
	at     int    // where in the window this frame begins
	repeat [3]uint32

	kind       uint32 // of the current block
	block      int    // its size
	left       int    // what is left of it
	mainLen    [symbolsMost]uint8
	lengthLen  [lengthSymbols]uint8
	main       huffman
	length     huffman
	aligned    huffman
	pre        huffman
	symbols    int  // of the main tree
	paddingDue bool // an odd uncompressed block's padding byte lies ahead

	started bool
	e8Size  int32 // size for E8 translation, 0 when there is none
}

// newLZX makes a decoder for a folder of so many blocks. The window is no
// larger than what the blocks can fill.
func newLZX(window, blocks int) *lzxDecoder {
	fill := bits.Len(uint(max(1, blocks)*blockSize - 1))
	return &lzxDecoder{
		window:  make([]byte, 1<<min(window, fill)),
		size:    1 << window,
		repeat:  [3]uint32{1, 1, 1},
		symbols: literals + lengthHeaders*slotCount[window-lzxWindowMin],
	}
}

func (d *lzxDecoder) decode(dst, src []byte) error {
	if d.total%blockSize != 0 {
		return errors.New("it follows a frame of less than 32 KB, which must be the last")
	}
	b := newBitReader(src)
	if d.paddingDue {
		b.in.Skip(1)
		d.paddingDue = false
	}
	if !d.started {
		d.started = true
		if b.take(1) != 0 {
			high := b.take(16)
			d.e8Size = int32(high<<16 | b.take(16))
		}
	}
	d.at = int(d.total) & (len(d.window) - 1) // a frame never wraps: both are multiples of 32 KB
	frame := d.window[d.at : d.at+len(dst)]
	if err := d.frame(&b, frame); err != nil {
		return err
	}
	copy(dst, frame)
	if d.e8Size != 0 && d.total < e8Most {
		undoE8(dst, int32(d.total), d.e8Size)
	}
	d.total += int64(len(dst))
	return nil
}

// frame unpacks one frame into its place in the window.
func (d *lzxDecoder) frame(b *bitReader, frame []byte) error {
	for done := 0; done < len(frame); {
		if d.left == 0 {
			if err := d.blockHeader(b); err != nil {
				return err
			}
		}
		run := min(d.left, len(frame)-done)
		var err error
		switch d.kind {
		case blockUncompressed:
			err = d.uncompressed(b, frame[done:done+run])
		default:
			err = d.matches(b, d.at+done, d.at+done+run)
		}
		if err != nil {
			return err
		}
		done += run
		d.left -= run
		if d.left == 0 && d.kind == blockUncompressed && d.block%2 != 0 {
			if d.paddingDue = b.in.Left() == 0; !d.paddingDue {
				b.in.Skip(1)
			}
		}
	}
	if b.overrun() {
		return errOverrun
	}
	return nil
}

func (d *lzxDecoder) uncompressed(b *bitReader, dst []byte) error {
	p := b.in.Bytes(len(dst))
	copy(dst, p)
	return b.in.Err()
}

// matches unpacks window[pos:end] of a verbatim or aligned block.
func (d *lzxDecoder) matches(b *bitReader, pos, end int) error {
	for pos < end {
		b.need()
		symbol, err := d.main.decode(b)
		if err != nil {
			return err
		}
		if symbol < literals {
			d.window[pos] = byte(symbol)
			pos++
			continue
		}
		length := matchMin + int(symbol%lengthHeaders)
		if symbol%lengthHeaders == lengthHeaders-1 {
			more, err := d.length.decode(b)
			if err != nil {
				return err
			}
			length += int(more)
		}
		offset, err := d.offset(b, (symbol-literals)/lengthHeaders)
		if err != nil {
			return err
		}
		if length > end-pos {
			return errors.New("a match runs past the end of its block or frame")
		}
		if offset == 0 || offset > d.size || int64(offset) > d.total+int64(pos-d.at) {
			return errMatch
		}
		d.copyMatch(pos, int(offset), length)
		pos += length
	}
	return nil
}

// offset reads what follows a match's main symbol and returns how far back the
// match lies, keeping the three last distances.
func (d *lzxDecoder) offset(b *bitReader, slot uint) (uint32, error) {
	r := &d.repeat
	if slot < 3 { // a repeated distance changes places with the latest
		r[0], r[slot] = r[slot], r[0]
		return r[0], nil
	}
	n := uint(slotBits[slot])
	formatted := slotBase[slot]
	if d.kind == blockAligned && n >= 3 { // the aligned tree codes the lowest three bits
		formatted += b.take(n-3) << 3
		b.need()
		low, err := d.aligned.decode(b)
		if err != nil {
			return 0, err
		}
		formatted += uint32(low)
	} else {
		formatted += b.take(n)
	}
	r[2], r[1], r[0] = r[1], r[0], formatted-2
	return r[0], nil
}

// copyMatch copies within the window; source and destination may overlap, and
// the source may wrap.
func (d *lzxDecoder) copyMatch(pos, offset, length int) {
	from := (pos - offset) & (len(d.window) - 1)
	if from+length <= len(d.window) && (offset >= length || from > pos) {
		copy(d.window[pos:pos+length], d.window[from:from+length])
		return
	}
	for range length {
		d.window[pos] = d.window[from]
		pos++
		from = (from + 1) & (len(d.window) - 1)
	}
}
