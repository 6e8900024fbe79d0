package pdata

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	xdataStream    = ".xdata"
	arm64ScopeLen  = 4
	maxARM64Codes  = 255 * 4 // bytes, of the extended header
	arm64IndexSize = 1 << 10 // values of an epilog's start index
)

// ARM64Info is the unwind data of one ARM64 function or part of one.
type ARM64Info struct {
	Length     uint32 // bytes of code
	Packed     bool   // from the entry itself, not an .xdata record
	Fragment   bool   // packed, of a part that has neither prolog nor epilog
	Epilogs    []ARM64Epilog
	Handler    uint32 // RVA of the language handler
	HasHandler bool

	codes  []byte      // of an .xdata record
	prolog []ARM64Code // of packed data
	epilog []ARM64Code // of packed data: one, at the function's end
}

// ARM64Epilog is where an epilog begins and where its codes do.
type ARM64Epilog struct {
	Start uint32 // bytes from the function's begin
	Index uint16 // byte index of its first code
}

// arm64Header is the first one or two words of an .xdata record.
type arm64Header struct {
	length     uint32
	hasHandler bool
	single     bool // one epilog at the function's end; epilogs is its index
	epilogs    uint32
	codeWords  uint32
}

func readARM64Header(c *cursor.Cursor) arm64Header {
	w := c.U32()
	if v := w >> 18 & 3; v != 0 {
		c.Fail(dump.BadRecord, "version %d of unwind data is not known", v)
	}
	h := arm64Header{length: w & 0x3ffff * arm64WordLen, hasHandler: w>>20&1 != 0, single: w>>21&1 != 0, epilogs: w >> 22 & 0x1f, codeWords: w >> 27}
	if h.epilogs == 0 && h.codeWords == 0 {
		w = c.U32()
		h.epilogs, h.codeWords = w&0xffff, w>>16&0xff
	}
	return h
}

// arm64XdataSize returns how many bytes a record has by its first two words.
func arm64XdataSize(head []byte) (uint32, error) {
	c := cursor.New(head, xdataStream, -1)
	h := readARM64Header(c)
	size := uint32(c.Offset()) + h.codeWords*4
	if !h.single {
		size += h.epilogs * arm64ScopeLen
	}
	if h.hasHandler {
		size += 4
	}
	return size, c.Err()
}

// DecodeARM64Xdata decodes an .xdata record. The codes themselves are decoded
// when asked for.
func DecodeARM64Xdata(b []byte) (*ARM64Info, error) {
	c := cursor.New(b, xdataStream, -1)
	h := readARM64Header(c)
	u := &ARM64Info{Length: h.length, HasHandler: h.hasHandler}
	if !h.single && c.Err() == nil {
		n, err := c.Count(uint64(h.epilogs), arm64ScopeLen)
		if err != nil {
			return nil, err
		}
		u.Epilogs = make([]ARM64Epilog, n)
		for i := range u.Epilogs {
			w := c.U32()
			u.Epilogs[i] = ARM64Epilog{Start: w & 0x3ffff * arm64WordLen, Index: uint16(w >> 22)}
		}
	}
	u.codes = c.Bytes(int(h.codeWords) * 4)
	if h.hasHandler {
		u.Handler = c.U32()
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	if h.single {
		n, ok := u.scope(uint16(h.epilogs))
		if !ok || uint32(n+1)*arm64WordLen > u.Length {
			return nil, dump.Errorf(dump.BadRecord, xdataStream, "the epilog's codes at index %d do not fit the function", h.epilogs)
		}
		u.Epilogs = []ARM64Epilog{{u.Length - uint32(n+1)*arm64WordLen, uint16(h.epilogs)}}
	}
	return u, nil
}

// scope counts the instructions that the codes from a byte index up to the end
// of the prolog or epilog stand for, without the return that ends an epilog.
func (u *ARM64Info) scope(index uint16) (n int, ok bool) {
	c := cursor.New(u.codes, xdataStream, -1)
	c.Seek(int(index))
	for {
		code := decodeARM64Code(c)
		switch {
		case c.Err() != nil:
			return n, false
		case code.Op == ARM64End || code.Op == ARM64EndC:
			return n, true
		case code.instruction():
			n++
		}
	}
}

// Codes returns the codes from a byte index of an .xdata record up to the end
// code, which is left out. They are in the order in which they undo: a prolog's
// last instruction comes first, an epilog's first. Index 0 is the prolog's.
func (u *ARM64Info) Codes(dst []ARM64Code, index uint16) ([]ARM64Code, error) {
	c := cursor.New(u.codes, xdataStream, -1)
	c.Seek(int(index))
	return decodeARM64Codes(dst, c)
}

// Prolog returns the codes that undo the whole prolog.
func (u *ARM64Info) Prolog(dst []ARM64Code) ([]ARM64Code, error) {
	if u.Packed {
		return append(dst, u.prolog...), nil
	}
	return u.Codes(dst, 0)
}

// At appends the codes that remain to be undone when the instruction at an
// offset in bytes from the function's begin has not been executed yet: those of
// the instructions of the prolog before it, those of the epilog from it on, or
// the whole prolog's.
func (u *ARM64Info) At(dst []ARM64Code, offset uint32) ([]ARM64Code, error) {
	at := int(offset / arm64WordLen)
	if u.Packed {
		return append(dst, u.atPacked(at)...), nil
	}
	n, ok := u.scope(0)
	if !ok {
		return dst, dump.Errorf(dump.BadRecord, xdataStream, "the prolog's codes do not end or make no sense")
	}
	if at < n {
		return u.skip(dst, 0, n-at)
	}
	if i, in := u.epilogAt(offset); in {
		e := u.Epilogs[i]
		return u.skip(dst, e.Index, at-int(e.Start/arm64WordLen))
	}
	return u.Codes(dst, 0)
}

// epilogAt finds the epilog that an offset lies in. Many epilogs share their
// codes, so each index is measured once.
func (u *ARM64Info) epilogAt(offset uint32) (int, bool) {
	var known [arm64IndexSize]int16 // instructions and the return; 0 not measured, -1 bad
	for i, e := range u.Epilogs {
		if e.Start > offset || offset-e.Start > maxARM64Codes*arm64WordLen {
			continue
		}
		index := e.Index % arm64IndexSize
		if known[index] == 0 {
			known[index] = -1
			if n, ok := u.scope(e.Index); ok {
				known[index] = int16(n + 1)
			}
		}
		if n := known[index]; n > 0 && offset-e.Start < uint32(n)*arm64WordLen {
			return i, true
		}
	}
	return 0, false
}

// skip is Codes without those of the first n instructions.
func (u *ARM64Info) skip(dst []ARM64Code, index uint16, n int) ([]ARM64Code, error) {
	from := len(dst)
	dst, err := u.Codes(dst, index)
	return append(dst[:from], dropARM64(dst[from:], n)...), err
}

func dropARM64(codes []ARM64Code, n int) []ARM64Code {
	for n > 0 && len(codes) > 0 {
		if codes[0].instruction() {
			n--
		}
		codes = codes[1:]
	}
	return codes
}
