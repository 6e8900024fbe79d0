// Package textfile reads the text files that people hand to the program: lists of
// dumps, rules. They are written by every editor and shell there is.
package textfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF8 takes a byte order mark off a text, and makes UTF-8 of UTF-16, which
// PowerShell writes.
func UTF8(r io.Reader) io.Reader {
	br := bufio.NewReader(r)
	mark, _ := br.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte("\xef\xbb\xbf")):
		_, _ = br.Discard(3)
	case bytes.HasPrefix(mark, []byte("\xff\xfe")):
		return &utf16Reader{r: br, order: binary.LittleEndian}
	case bytes.HasPrefix(mark, []byte("\xfe\xff")):
		return &utf16Reader{r: br, order: binary.BigEndian}
	}
	return br
}

// utf16Reader makes UTF-8 of UTF-16. An odd byte at the end is dropped.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	begun bool
	ready []byte
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.r, b[:]); err != nil {
		return 0, io.EOF
	}
	return rune(u.order.Uint16(b[:])), nil
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.ready) == 0 {
		c, err := u.unit()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(c) {
			low, err := u.unit()
			if err != nil {
				low = 0
			}
			c = utf16.DecodeRune(c, low)
		}
		if u.begun || c != '\ufeff' { // the mark itself is not part of the text
			u.ready = utf8.AppendRune(nil, c)
		}
		u.begun = true
	}
	n := copy(p, u.ready)
	u.ready = u.ready[n:]
	return n, nil
}
