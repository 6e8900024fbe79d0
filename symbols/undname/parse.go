package undname

import "strings"

// refs are the back-references that are in force: the first ten names and the
// first ten types of parameters. Template arguments have their own.
type refs struct {
	names  [10]*part
	texts  [10]string // what was written for them, to tell them apart
	nNames int
	types  [10]*typeNode
	nTypes int
}

// parser reads one name into a tree. After the first failure it is at the end
// of its input, so that every loop ends.
type parser struct {
	in     string // what is left
	base   string
	reason string
	failed int
	depth  int
	refs   refs
	out    []byte

	types   slab[typeNode]
	parts   slab[part]
	links   slab[link]
	names   slab[qname]
	args    slab[arg]
	symbols slab[symbol]
	dims    slab[dim]
}

func (p *parser) release() {
	p.in, p.base, p.reason, p.failed, p.depth = "", "", "", 0, 0
	p.refs = refs{}
	p.types.reset()
	p.parts.reset()
	p.links.reset()
	p.names.reset()
	p.args.reset()
	p.symbols.reset()
	p.dims.reset()
	parsers.Put(p)
}

func (p *parser) offset() int { return len(p.base) - len(p.in) }

func (p *parser) fail(reason string) {
	if p.reason == "" {
		p.reason, p.failed, p.in = reason, p.offset(), ""
	}
}

func (p *parser) malformed() { p.fail(reasonMalformed) }

func (p *parser) ok() bool { return p.reason == "" }

// enter counts a level of nesting; the caller leaves it by p.depth--.
func (p *parser) enter() bool {
	if p.depth++; p.depth > maxDepth {
		p.fail(reasonTooDeep)
	}
	return p.ok()
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.in == "" {
		return 0
	}
	return p.in[0]
}

// next takes a byte; at the end it fails and returns 0.
func (p *parser) next() byte {
	if p.in == "" {
		p.malformed()
		return 0
	}
	c := p.in[0]
	p.in = p.in[1:]
	return c
}

func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.in, prefix) {
		return false
	}
	p.in = p.in[len(prefix):]
	return true
}

func (p *parser) takeByte(c byte) bool {
	if p.in == "" || p.in[0] != c {
		return false
	}
	p.in = p.in[1:]
	return true
}

func (p *parser) need(prefix string) {
	if !p.take(prefix) {
		p.malformed()
	}
}

// until takes the text before an '@', and the '@'.
func (p *parser) until() string {
	i := strings.IndexByte(p.in, '@')
	if i < 0 {
		p.malformed()
		return ""
	}
	s := p.in[:i]
	p.in = p.in[i+1:]
	return s
}

// number takes a number: one digit for 1 to 10, else hexadecimal digits A to P
// ended by '@'; '?' in front makes it negative.
func (p *parser) number() number {
	n := number{neg: p.takeByte('?')}
	if c := p.peek(); c >= '0' && c <= '9' {
		p.next()
		n.abs = uint64(c-'0') + 1
		return n
	}
	for digits := 0; ; digits++ {
		c := p.next()
		switch {
		case c == '@' && digits > 0:
			return n
		case c < 'A' || c > 'P' || digits >= 16:
			p.malformed()
			return number{}
		}
		n.abs = n.abs<<4 | uint64(c-'A')
	}
}

// unsigned is number where a sign makes no sense.
func (p *parser) unsigned() number {
	n := p.number()
	if n.neg {
		p.malformed()
	}
	return n
}

// offset32 takes a number that the compiler writes as the bits of an int.
func (p *parser) offset32() number {
	n := p.number()
	v := int64(int32(n.bits()))
	return number{abs: uint64(max(v, -v)), neg: v < 0}
}

// size32 takes a number that the compiler writes as the bits of an unsigned.
func (p *parser) size32() number { return number{abs: uint64(p.number().bits())} }

// bits returns the low 32 bits in two's complement.
func (n number) bits() uint32 {
	if n.neg {
		return -uint32(n.abs)
	}
	return uint32(n.abs)
}

// remember makes a name available to back-references. The same text is counted
// once.
func (p *parser) remember(text string, pt *part) {
	r := &p.refs
	if r.nNames == len(r.names) {
		return
	}
	for _, t := range r.texts[:r.nNames] {
		if t == text {
			return
		}
	}
	r.names[r.nNames], r.texts[r.nNames] = pt, text
	r.nNames++
}

func (p *parser) rememberType(t *typeNode) {
	if r := &p.refs; r.nTypes < len(r.types) {
		r.types[r.nTypes] = t
		r.nTypes++
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
