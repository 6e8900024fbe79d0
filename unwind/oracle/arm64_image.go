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
			im.entries = append(im.entries, pdata.RuntimeFunction{Begin: begin, End: begin + length*4, UnwindInfo: word})
		}
	}
}

func (im *image) word(rva uint32) uint32 {
	var b [4]byte
	_, _ = im.pe.ReadRVA(b[:], rva)
	return binary.LittleEndian.Uint32(b[:])
}

// enterableARM64 reports whether a function can be entered where an entry
// begins: not in a part of one, which packed data and the code end_c at the
// very beginning of the codes tell of.
func (im *image) enterableARM64(rf pdata.RuntimeFunction) bool {
	if rf.UnwindInfo&3 != 0 {
		return rf.UnwindInfo&3 == 1
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
	const endC = 0xe5
	return byte(im.word(codes)) != endC
}
