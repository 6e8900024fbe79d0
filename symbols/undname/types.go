package undname

import "strings"

// typ takes a type.
func (p *parser) typ() *typeNode {
	if !p.enter() {
		p.depth--
		return nil
	}
	t := p.typeBody()
	p.depth--
	if !p.ok() {
		return nil
	}
	return t
}

func (p *parser) typeBody() *typeNode {
	c := p.next()
	switch c {
	case 'T':
		return p.tag("union ")
	case 'U':
		return p.tag("struct ")
	case 'V':
		return p.tag("class ")
	case 'W':
		p.need("4")
		return p.tag("enum ")
	case 'A':
		return p.pointer("&", 0)
	case 'P':
		return p.pointer("*", 0)
	case 'Q':
		return p.pointer("*", qConst)
	case 'R':
		return p.pointer("*", qVolatile)
	case 'S':
		return p.pointer("*", qConst|qVolatile)
	case 'Y':
		return p.array()
	case '?':
		return p.custom()
	case '_':
		return p.plain(primitives2[p.next()])
	case '$':
		return p.extendedType()
	}
	return p.plain(primitives[c])
}

func (p *parser) plain(text string) *typeNode {
	if text == "" {
		p.malformed()
		return nil
	}
	t := p.types.new()
	t.text = text
	return t
}

// extendedType takes what has a '$' in front, which has been taken.
func (p *parser) extendedType() *typeNode {
	p.need("$")
	switch p.next() {
	case 'Q':
		return p.pointer("&&", 0)
	case 'T':
		return p.plain("std::nullptr_t")
	case 'B':
		p.need("Y")
		return p.array()
	case 'C':
		q, member := p.cv()
		if member {
			p.malformed()
		}
		if t := p.typ(); t != nil {
			t.quals |= q
			return t
		}
	case 'A':
		switch p.next() {
		case '6':
			return p.function(false)
		case '8':
			p.need("@@")
			return p.function(true)
		}
		p.malformed()
	default:
		p.malformed()
	}
	return nil
}

// custom takes a type that is only a name, as deduced ones are.
func (p *parser) custom() *typeNode {
	t := p.types.new()
	t.kind = typeTag
	t.name = p.typeName()
	return t
}

func (p *parser) tag(keyword string) *typeNode {
	t := p.types.new()
	t.kind, t.text = typeTag, keyword
	t.name = p.typeName()
	return t
}

// cv takes const and volatile; Q to T are those of members.
func (p *parser) cv() (q quals, member bool) {
	switch c := p.next(); c {
	case 'A', 'B', 'C', 'D':
		return quals(c - 'A'), false // the bits have the scheme's order
	case 'Q', 'R', 'S', 'T':
		return quals(c - 'Q'), true
	}
	p.malformed()
	return 0, false
}

// extended takes __ptr64, __restrict and __unaligned, in this order.
func (p *parser) extended() quals {
	var q quals
	if p.takeByte('E') {
		q |= qPtr64
	}
	if p.takeByte('I') {
		q |= qRestrict
	}
	if p.takeByte('F') {
		q |= qUnaligned
	}
	return q
}

// pointer takes what follows the letter of a pointer or reference.
func (p *parser) pointer(text string, own quals) *typeNode {
	t := p.types.new()
	t.kind, t.text, t.quals = typePointer, text, own
	switch {
	case p.takeByte('6'):
		t.elem = p.function(false)
		return t
	case text == "*" && p.takeByte('8'):
		t.class = p.typeName()
		t.elem = p.function(true)
		return t
	}
	t.quals |= p.extended()
	if text == "*" && p.takeByte('8') {
		t.class = p.typeName()
		t.elem = p.function(true)
		return t
	}
	if p.take("$A") { // to the managed heap
		t.text = "^"
		if text != "*" {
			t.text = "%"
		}
	}
	q, member := p.cv()
	if member {
		if text != "*" {
			p.malformed()
		}
		t.class = p.typeName()
	}
	if t.elem = p.typ(); t.elem != nil {
		t.elem.quals |= q
	}
	return t
}

func (p *parser) array() *typeNode {
	t := p.types.new()
	t.kind = typeArray
	rank := p.number()
	if rank.neg || rank.abs == 0 || rank.abs > uint64(len(p.in)) {
		p.malformed()
		return nil
	}
	last := &t.dims
	for range rank.abs {
		n := p.unsigned()
		if !p.ok() {
			return nil
		}
		*last = p.dims.new()
		(*last).n = n.abs
		last = &(*last).next
	}
	var q quals
	if p.take("$$C") {
		q, _ = p.cv()
	}
	if t.elem = p.typ(); t.elem != nil {
		t.elem.quals |= q
	}
	return t
}

// function takes a function's type. Those of members begin with the qualifiers
// of this.
func (p *parser) function(this bool) *typeNode {
	t := p.types.new()
	t.kind = typeFunction
	if this {
		t.quals = p.extended()
		switch {
		case p.takeByte('G'):
			t.quals |= qLvalue
		case p.takeByte('H'):
			t.quals |= qRvalue
		}
		q, _ := p.cv()
		t.quals |= q
	}
	c := p.next()
	if t.conv = conventions[c]; t.conv == "" && c != noConvention {
		p.malformed()
	}
	if !p.takeByte('@') { // constructors return nothing
		var q quals
		if p.takeByte('?') {
			q, _ = p.cv()
		}
		if t.elem = p.typ(); t.elem != nil {
			t.elem.quals |= q
		}
	}
	p.params(t)
	if !p.take("_E") {
		p.need("Z")
		return t
	}
	t.noexcept = true
	return t
}

// params takes a list of parameters: X for none, else types up to '@', or to Z
// when more may follow.
func (p *parser) params(t *typeNode) {
	if p.takeByte('X') {
		return
	}
	last := &t.params
	for p.ok() && p.peek() != '@' && p.peek() != 'Z' {
		a := p.args.new()
		if c := p.peek(); isDigit(c) {
			p.next()
			if int(c-'0') >= p.refs.nTypes {
				p.malformed()
				return
			}
			a.typ = p.refs.types[c-'0']
		} else {
			before := len(p.in)
			a.typ = p.typ()
			if p.ok() && before-len(p.in) > 1 {
				p.rememberType(a.typ)
			}
		}
		*last, last = a, &a.next
	}
	if p.takeByte('@') {
		return
	}
	p.need("Z")
	t.variadic = true
}

// templateArgs takes the arguments of a template up to '@'.
func (p *parser) templateArgs() *arg {
	var first *arg
	last := &first
	for p.ok() && !p.takeByte('@') {
		if p.take("$S") || p.take("$$V") || p.take("$$$V") || p.take("$$Z") {
			continue // an empty pack, or the end of one
		}
		a := p.templateArg()
		*last, last = a, &a.next
	}
	return first
}

func (p *parser) templateArg() *arg {
	a := p.args.new()
	switch {
	case p.take("$$Y"):
		a.typ = p.types.new()
		a.typ.kind = typeTag
		a.typ.name = p.typeName()
	case p.take("$M"): // of an auto parameter: its type, then its value
		p.typ()
		p.value(a)
	case len(p.in) > 1 && p.in[0] == '$' && p.in[1] != '$':
		p.next()
		p.value(a)
	default:
		a.typ = p.typ()
	}
	return a
}

// value takes a template argument that is not a type.
func (p *parser) value(a *arg) {
	switch c := p.next(); c {
	case '0':
		a.kind, a.num = argNumber, p.number()
	case '1', 'E':
		a.kind = argAddress
		if c == 'E' {
			a.kind = argSymbol
		}
		a.sym = p.nested()
	case 'H', 'I', 'J':
		a.kind = argTuple
		if strings.HasPrefix(p.in, "?") {
			a.sym = p.nested()
		}
		p.tuple(a, int(c-'H')+1)
	case 'F', 'G':
		a.kind = argTuple
		p.tuple(a, int(c-'F')+2)
	default:
		p.malformed()
	}
}

func (p *parser) tuple(a *arg, n int) {
	for a.n < n {
		a.nums[a.n] = p.number()
		a.n++
	}
}

// nested takes a symbol within a name.
func (p *parser) nested() *symbol {
	var s *symbol
	if p.enter() {
		s = p.symbol()
	}
	p.depth--
	return s
}
