package undname

import "bytes"

// literal is what a name keeps of a string literal: at most its first 32 bytes.
type literal struct {
	bytes     []byte
	width     int // bytes a character
	wide      bool
	truncated bool
}

// literalKept is how many bytes of a literal its name keeps.
const literalKept = 32

// stringLiteral takes what follows "??_C": "@_", the width, the length in bytes,
// a checksum and the bytes.
func (p *parser) stringLiteral() *symbol {
	s := p.symbols.new()
	s.kind = symString
	p.need("@_")
	switch p.next() {
	case '0':
	case '1':
		s.lit.wide = true
	default:
		p.malformed()
	}
	size := p.number()
	if size.neg {
		p.malformed()
	}
	p.until()
	var b []byte
	for p.ok() && !p.takeByte('@') {
		b = append(b, p.literalByte())
	}
	if !p.ok() {
		return s
	}
	s.lit.finish(b, size.abs)
	if s.lit.wide && len(b)%2 != 0 {
		p.malformed()
	}
	return s
}

// literalByte takes one byte of a literal.
func (p *parser) literalByte() byte {
	c := p.next()
	if c != '?' {
		return c
	}
	c = p.next()
	switch {
	case c == '$':
		hi, lo := p.next()-'A', p.next()-'A'
		if hi > 15 || lo > 15 {
			p.malformed()
		}
		return hi<<4 | lo
	case isDigit(c):
		return ",/\\:. \n\t'-"[c-'0']
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return c | 0x80
	}
	p.malformed()
	return 0
}

// finish decides how wide the characters are and drops the terminator of a
// literal that was kept whole.
func (l *literal) finish(b []byte, size uint64) {
	if l.wide {
		l.width = 2
		l.truncated = size > 2*literalKept
		if !l.truncated && uint64(len(b)) >= size && size >= 2 {
			b = b[:size-2] // some compilers write the terminator, some do not
		}
	} else {
		l.width = narrowWidth(b, size)
		l.truncated = size > uint64(len(b))
		if !l.truncated && len(b) >= l.width {
			b = b[:len(b)-l.width]
		}
	}
	l.bytes = b
}

// narrowWidth guesses the width of characters that are not wchar_t: the name
// does not tell char from char16_t and char32_t.
func narrowWidth(b []byte, size uint64) int {
	nulls := bytes.Count(b, []byte{0})
	trailing := len(b) - len(bytes.TrimRight(b, "\x00"))
	switch {
	case size%2 == 1:
		return 1
	case size < literalKept && trailing >= 4 && size%4 == 0:
		return 4
	case size < literalKept && trailing >= 2:
		return 2
	case size < literalKept:
		return 1
	case nulls >= 2*len(b)/3 && size%4 == 0:
		return 4
	case nulls >= len(b)/3:
		return 2
	}
	return 1
}
