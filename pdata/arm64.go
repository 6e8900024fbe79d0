package pdata

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	machineARM64  = 0xaa64
	arm64EntryLen = 8 // IMAGE_ARM64_RUNTIME_FUNCTION_ENTRY
	arm64WordLen  = 4 // of an instruction, the unit of lengths
)

// ARM64Function is one entry of an ARM64 exception directory.
type ARM64Function struct {
	Begin uint32 // RVA
	// Word is the entry's second word: packed unwind data or the RVA of an
	// .xdata record, by its two lowest bits.
	Word   uint32
	Length uint32 // bytes of code
}

// End returns the RVA just past the function.
func (f ARM64Function) End() uint32 { return f.Begin + f.Length }

// The two lowest bits of an entry's word.
const (
	arm64Xdata          = 0
	arm64Packed         = 1
	arm64PackedFragment = 2
	arm64FlagMask       = 3
)

// arm64Table is an ARM64 exception directory, read when first asked for: as
// many bytes as the image has of it.
type arm64Table struct {
	entries []arm64Entry // ascending
	gaps    bool         // some entries are not in the dump
	err     error
}

type arm64Entry struct{ begin, word uint32 }

// HasARM64Table reports whether the image has an ARM64 exception directory of
// which something can be read.
func (im *Image) HasARM64Table() bool {
	return len(im.arm64Table().entries) > 0
}

func (im *Image) arm64Table() *arm64Table {
	im.arm64Once.Do(im.openARM64)
	return &im.arm64
}

func (im *Image) openARM64() {
	t, d := &im.arm64, im.tableOf(machineARM64)
	if d.rva == 0 || d.size < arm64EntryLen {
		return
	}
	size := min(d.size, im.layout.backed(d.rva), maxTable) &^ (arm64EntryLen - 1)
	t.gaps = size < d.size&^(arm64EntryLen-1)
	if size == 0 {
		t.err = tableError(dump.OutOfRange, d.rva, d.size, "lies outside the image")
		return
	}
	ordered := t.read(im.layout, d.rva, size)
	if !ordered {
		slices.SortStableFunc(t.entries, func(a, b arm64Entry) int { return cmp.Compare(a.begin, b.begin) })
	}
	if len(t.entries) == 0 && t.gaps {
		t.err = tableError(dump.Truncated, d.rva, size, "none of it can be read")
	}
}

// read reads the entries in chunks, passing over pages that are missing, and
// reports whether they are in order.
func (t *arm64Table) read(l layout, rva, size uint32) (ordered bool) {
	ordered = true
	buf := make([]byte, min(size, chunkSize))
	for off := uint32(0); off < size; {
		want := min(uint32(len(buf)), size-off)
		n, _ := l.read(buf[:want], rva+off)
		c := cursor.New(buf[:n], tableStream, -1)
		for range n / arm64EntryLen {
			e := arm64Entry{c.U32(), c.U32()}
			if e == (arm64Entry{}) {
				continue // padding
			}
			if k := len(t.entries); k > 0 && e.begin < t.entries[k-1].begin {
				ordered = false
			}
			t.entries = append(t.entries, e)
		}
		if uint32(n) == want {
			off += want
			continue
		}
		t.gaps = true
		next := roundUp(uint64(rva)+uint64(off)+uint64(n)+1, pageSize) - uint64(rva)
		if next > uint64(size) {
			break
		}
		off = uint32(roundUp(next, arm64EntryLen))
	}
	return ordered
}

// LookupARM64 finds the entry that covers an RVA. ok is false when none does (a
// leaf function, or no code); the error says that the table, or the part
// needed, cannot be read. Images of other machines never have an answer.
func (im *Image) LookupARM64(rva uint32) (fn ARM64Function, ok bool, err error) {
	t := im.arm64Table()
	if t.err != nil {
		return fn, false, withFile(t.err, im.name)
	}
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].begin > rva }) - 1
	if i >= 0 {
		e := t.entries[i]
		fn = ARM64Function{Begin: e.begin, Word: e.word}
		if fn.Length, err = im.arm64Length(e.word); err != nil {
			return ARM64Function{}, false, withFile(err, im.name)
		}
		if rva-fn.Begin < fn.Length {
			return fn, true, nil
		}
	}
	if t.gaps {
		d := im.tableOf(machineARM64)
		return ARM64Function{}, false, withFile(tableError(dump.Truncated, d.rva, d.size, fmt.Sprintf("the part that may describe RVA %#x is missing", rva)), im.name)
	}
	return ARM64Function{}, false, nil
}

// arm64Length returns the bytes of code that an entry's word, or the record it
// points to, describes.
func (im *Image) arm64Length(word uint32) (uint32, error) {
	switch word & arm64FlagMask {
	case arm64Packed, arm64PackedFragment:
		return word >> 2 & 0x7ff * arm64WordLen, nil
	case arm64Xdata:
		var b [4]byte
		if _, err := im.layout.read(b[:], word); err != nil {
			return 0, err
		}
		return binary.LittleEndian.Uint32(b[:]) & 0x3ffff * arm64WordLen, nil
	}
	return 0, errReservedARM64(word)
}

func errReservedARM64(word uint32) error {
	return dump.Errorf(dump.BadRecord, ".pdata", "an entry's word %#x has the reserved flag 3", word)
}

// ARM64Info decodes the unwind data of an entry.
func (im *Image) ARM64Info(fn ARM64Function) (*ARM64Info, error) {
	if fn.Word&arm64FlagMask != arm64Xdata {
		return DecodeARM64Packed(fn.Word)
	}
	// A record is as long as its first words say: read those, then the rest.
	var head [8]byte
	n, _ := im.layout.read(head[:], fn.Word)
	size, err := arm64XdataSize(head[:n])
	if err != nil {
		return nil, withFile(err, im.name)
	}
	b := make([]byte, min(size, im.layout.backed(fn.Word)))
	n, _ = im.layout.read(b, fn.Word)
	u, err := DecodeARM64Xdata(b[:n])
	return u, withFile(err, im.name)
}
