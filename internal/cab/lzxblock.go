package cab

import (
	"errors"
	"fmt"
)

// blockHeader reads a block's type, size and trees.
func (d *lzxDecoder) blockHeader(b *bitReader) error {
	d.kind = b.take(3)
	d.block = int(b.take(24))
	d.left = d.block
	if b.overrun() {
		return errOverrun
	}
	switch d.kind {
	case blockVerbatim:
		return d.trees(b)
	case blockAligned:
		var lengths [alignedCount]uint8
		for i := range lengths {
			lengths[i] = uint8(b.take(3))
		}
		if err := d.aligned.build(lengths[:]); err != nil {
			return err
		}
		return d.trees(b)
	case blockUncompressed:
		b.toBytes()
		for i := range d.repeat {
			d.repeat[i] = b.in.U32()
		}
		if b.overrun() || b.in.Err() != nil {
			return errOverrun
		}
		return nil
	}
	return fmt.Errorf("a block of undefined type %d", d.kind)
}

// trees reads the code lengths of the main and length trees, which are given
// as differences from those of the block before.
func (d *lzxDecoder) trees(b *bitReader) error {
	for _, part := range [][]uint8{d.mainLen[:literals], d.mainLen[literals:d.symbols], d.lengthLen[:]} {
		if err := d.lengths(b, part); err != nil {
			return err
		}
	}
	if err := d.main.build(d.mainLen[:d.symbols]); err != nil {
		return err
	}
	return d.length.build(d.lengthLen[:])
}

// The symbols of the pretree beyond the differences 0 to 16.
const (
	preZeros     = 17 // 4 to 19 zeros
	preManyZeros = 18 // 20 to 51 zeros
	preSame      = 19 // 4 or 5 times the length that the symbol after it gives
)

// lengths reads one run of code lengths with the pretree before it.
func (d *lzxDecoder) lengths(b *bitReader, lengths []uint8) error {
	var pre [pretreeCount]uint8
	for i := range pre {
		pre[i] = uint8(b.take(4))
	}
	if err := d.pre.build(pre[:]); err != nil {
		return err
	}
	for i := 0; i < len(lengths); {
		b.need()
		symbol, err := d.pre.decode(b)
		if err != nil {
			return err
		}
		run, value := 1, uint8(0)
		switch symbol {
		case preZeros:
			run = 4 + int(b.take(4))
		case preManyZeros:
			run = 20 + int(b.take(5))
		case preSame:
			run = 4 + int(b.take(1))
			b.need()
			if symbol, err = d.pre.decode(b); err != nil {
				return err
			}
			if symbol > codeMost {
				return errors.New("a run of code lengths within a run")
			}
			value = difference(lengths[i], symbol)
		default:
			value = difference(lengths[i], symbol)
		}
		if run > len(lengths)-i {
			return errors.New("a run of code lengths past the end of its tree")
		}
		for range run {
			lengths[i] = value
			i++
		}
	}
	if b.overrun() {
		return errOverrun
	}
	return nil
}

// difference applies a pretree symbol to the length of the block before.
func difference(old uint8, symbol uint) uint8 {
	return uint8((uint(old) + codeMost + 1 - symbol) % (codeMost + 1))
}
