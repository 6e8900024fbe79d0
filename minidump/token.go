package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Token is an access token of the Token stream.
type Token struct {
	ID     uint32 // process id of a process token, thread id of a thread's
	Handle uint64
	Data   []byte // the token's serialised information, a format of the writer's own
}

const (
	tokenListHeader = 16
	tokenHeader     = 16
)

// Tokens returns the Token stream.
func (f *File) Tokens() ([]Token, error) { return f.tokens.get(f, (*File).decodeTokens) }

func (f *File) decodeTokens() ([]Token, *dump.Error) {
	c, fs := f.open(StreamToken, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	listSize, count, header, element := c.U32(), c.U32(), c.U32(), c.U32()
	n := fs.table(c, header, element, tokenListHeader, tokenHeader, uint64(count), noLimit)
	if c.Err() != nil || n == 0 {
		return nil, fs.done()
	}
	// The documentation does not say whether TokenSize counts the element's
	// header. Whichever reading ends at the list's own size is right.
	body := c.Bytes(c.Left())
	at := c.FileOffset() - int64(len(body))
	want := int64(listSize) - int64(header)
	whole, end := readTokens(cursor.New(body, fs.stream, at), n, int(element), false)
	if end != want {
		if apart, end := readTokens(cursor.New(body, fs.stream, at), n, int(element), true); end == want {
			return apart, fs.done()
		}
	}
	if len(whole) < n {
		fs.errorf(dump.BadRecord, at, "%d of %d tokens could be read", len(whole), n)
	}
	return whole, fs.done()
}

// readTokens reads up to n tokens and returns where they end, or -1 when they
// do not fit.
func readTokens(c *cursor.Cursor, n, header int, sizeIsApart bool) ([]Token, int64) {
	var out []Token
	for range n {
		h := c.Sub(header)
		size := int64(h.U32())
		t := Token{ID: h.U32(), Handle: h.U64()}
		if !sizeIsApart {
			size -= int64(header)
		}
		if c.Err() != nil || size < 0 || size > int64(c.Left()) {
			return out, -1
		}
		t.Data = c.Bytes(int(size))
		out = append(out, t)
	}
	return out, int64(c.Offset())
}
