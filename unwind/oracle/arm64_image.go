package oracle

import (
	"encoding/binary"
	"slices"

	"dumptriage/pdata"
)

// readARM64Entries reads an ARM64 exception directory, with each function's
// length from the entry or the first word of its .xdata record.
func (im *image) readARM64Entries(table []byte) {
	const entrySize = 8
	im.parts = map[uint32]bool{}
	for b := range slices.Chunk(table, entrySize) {
		if len(b) < entrySize {
			return
		}
		begin, word := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		length := word >> 2 & 0x7ff
		if word&3 == 0 {
			length = im.word(word) & 0x3ffff
		}
		if length > 0 {
			rf := pdata.RuntimeFunction{Begin: begin, End: begin + length*4, UnwindInfo: word}
			im.entries = append(im.entries, rf)
			if im.isPart(rf) {
				im.parts[begin] = true
			}
		}
	}
}

func (im *image) word(rva uint32) uint32 {
	var b [4]byte
	_, _ = im.pe.ReadRVA(b[:], rva)
	return binary.LittleEndian.Uint32(b[:])
}

// isPart reports whether an entry describes a part of a function, as packed data
// and the code end_c tell. Whoever comes there has a frame already.
func (im *image) isPart(rf pdata.RuntimeFunction) bool {
	if rf.UnwindInfo&3 != 0 {
		return rf.UnwindInfo&3 != 1
	}
	head := im.word(rf.UnwindInfo)
	codes := rf.UnwindInfo + 4
	epilogs := head >> 22 & 0x1f
	if head>>22 == 0 {
		epilogs = im.word(codes) & 0xffff
		codes += 4
	}
	if head>>21&1 == 0 {
		codes += 4 * epilogs
	}
	const end, endC = 0xe4, 0xe5
	for {
		switch c := byte(im.word(codes)); {
		case c == endC:
			return true
		case c == end, int64(codes) > int64(im.size):
			return false
		case c >= 0xc0:
			codes += uint32(codeLengths[c-0xc0])
		default:
			codes++
		}
	}
}

// codeLengths are the bytes that unwind codes from 0xc0 on have.
var codeLengths = [64]byte{
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	4, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 1, 1, 1, 1,
}
