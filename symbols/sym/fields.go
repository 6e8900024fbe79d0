package sym

import "bytes"

// fields is what is left of a line.
type fields []byte

// word takes the text before the next space, "" at the end.
func (f *fields) word() []byte {
	b := *f
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	i := bytes.IndexByte(b, ' ')
	if i < 0 {
		*f = nil
		return b
	}
	*f = b[i+1:]
	return b[:i]
}

// rest takes the rest of the line.
func (f *fields) rest() []byte {
	b := bytes.TrimLeft(*f, " ")
	*f = nil
	return b
}

// take takes a word when it is the next one.
func (f *fields) take(word string) bool {
	save := *f
	if string(f.word()) == word {
		return true
	}
	*f = save
	return false
}

// hex takes a hexadecimal number of up to 32 bits.
func (f *fields) hex() (uint32, bool) {
	w := f.word()
	var v uint64
	for _, c := range w {
		d := hexDigit[c]
		if d == 0 {
			return 0, false
		}
		if v = v<<4 | uint64(d-1); v > 1<<32-1 {
			return 0, false
		}
	}
	return uint32(v), len(w) > 0
}

// decimal takes a decimal number of up to 32 bits. Some writers put -1 or 0
// where they know no line; both give 0.
func (f *fields) decimal() (uint32, bool) {
	w := f.word()
	if string(w) == "-1" {
		return 0, true
	}
	var v uint64
	for _, c := range w {
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + uint64(c-'0'); v > 1<<32-1 {
			return 0, false
		}
	}
	return uint32(v), len(w) > 0
}

// hexDigit is the value of a digit plus one, 0 of what is none.
var hexDigit = func() (t [256]uint8) {
	for c := range byte(10) {
		t['0'+c] = c + 1
	}
	for c := range byte(6) {
		t['a'+c], t['A'+c] = c+11, c+11
	}
	return t
}()
