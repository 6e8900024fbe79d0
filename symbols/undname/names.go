package undname

import "strings"

// symbolName takes the qualified name of a symbol, whose innermost part may be
// special.
func (p *parser) symbolName() *qname {
	return p.scoped(p.symbolPart(true))
}

// typeName takes the qualified name of a type.
func (p *parser) typeName() *qname {
	switch {
	case isDigit(p.peek()):
		return p.scoped(p.backReference())
	case strings.HasPrefix(p.in, "?$"):
		return p.scoped(p.template(true))
	}
	return p.scoped(p.simple(true))
}

// scoped takes the scopes around an innermost part, from the inside out, up to
// the '@' that ends the name.
func (p *parser) scoped(leaf *part) *qname {
	q := p.names.new()
	q.leaf = leaf
	q.first = p.links.new()
	q.first.part = leaf
	for n := 0; p.ok() && !p.takeByte('@'); n++ {
		l := p.links.new()
		l.part, l.next = p.scope(), q.first
		q.first = l
		if n == 0 && leaf != nil && leaf.kind == partCtor {
			leaf.class = l.part
		}
	}
	if p.ok() && leaf.kind == partCtor && leaf.class == nil {
		p.malformed()
	}
	return q
}

// scope takes one scope: a class, a namespace or a place in a function.
func (p *parser) scope() *part {
	switch {
	case isDigit(p.peek()):
		return p.backReference()
	case strings.HasPrefix(p.in, "?$"):
		return p.template(true)
	case strings.HasPrefix(p.in, "?A"):
		return p.anonymous()
	case p.atLocalScope():
		return p.local()
	}
	return p.simple(true)
}

func (p *parser) backReference() *part {
	i := int(p.next() - '0')
	if i >= p.refs.nNames {
		p.malformed()
		return nil
	}
	return p.refs.names[i]
}

func (p *parser) simple(remember bool) *part {
	text := p.until()
	if text == "" {
		p.malformed()
		return nil
	}
	pt := p.parts.new()
	pt.text = text
	if remember {
		p.remember(text, pt)
	}
	return pt
}

// anonymous takes "?A", a hash and '@'.
func (p *parser) anonymous() *part {
	p.next()
	p.next()
	key := p.until()
	pt := p.parts.new()
	pt.kind = partAnonymous
	p.remember(key, pt)
	return pt
}

// atLocalScope reports whether "?number?" is next.
func (p *parser) atLocalScope() bool {
	s, ok := strings.CutPrefix(p.in, "?")
	if !ok || s == "" {
		return false
	}
	if s[0] == '@' || isDigit(s[0]) {
		return len(s) > 1 && s[1] == '?'
	}
	i := 0
	for i < len(s) && s[i] >= 'A' && s[i] <= 'P' {
		i++
	}
	return i > 0 && s[0] != 'A' && strings.HasPrefix(s[i:], "@?")
}

// local takes "?number?" and the symbol of the function.
func (p *parser) local() *part {
	pt := p.parts.new()
	pt.kind = partLocal
	p.next()
	if !p.takeByte('@') { // which is zero
		pt.nums[0] = p.number()
	}
	p.need("?")
	if p.enter() {
		pt.sym = p.symbol()
	}
	p.depth--
	return pt
}

// template takes "?$name", arguments and '@'. Within it back-references begin
// anew.
func (p *parser) template(remember bool) *part {
	begin := p.in
	p.next()
	p.next()
	outer := p.refs
	p.refs = refs{}
	var pt *part
	if p.enter() {
		pt = p.symbolPart(false)
	}
	if p.ok() {
		if remember && (pt.kind == partCtor || pt.kind == partConversion) {
			p.malformed()
		}
		copied := p.parts.new() // a back-reference to the bare name has no arguments
		*copied = *pt
		pt = copied
		pt.template, pt.args = true, p.templateArgs()
	}
	p.depth--
	p.refs = outer
	if p.ok() && remember {
		p.remember(begin[:len(begin)-len(p.in)], pt)
	}
	return pt
}

// symbolPart takes the innermost part of a symbol's name.
func (p *parser) symbolPart(templates bool) *part {
	switch {
	case isDigit(p.peek()):
		return p.backReference()
	case templates && strings.HasPrefix(p.in, "?$"):
		return p.template(false)
	case p.takeByte('?'):
		return p.special()
	}
	return p.simple(true)
}

// special takes the code of an operator or another special function.
func (p *parser) special() *part {
	pt := p.parts.new()
	switch {
	case p.take("__"):
		c := p.next()
		if c == 'K' {
			pt.kind, pt.text = partLiteral, p.until()
			return pt
		}
		pt.text = operators3[c]
	case p.takeByte('_'):
		pt.text = operators2[p.next()]
	default:
		switch c := p.next(); c {
		case '0':
			pt.kind = partCtor
			return pt
		case '1':
			pt.kind, pt.text = partCtor, "~"
			return pt
		case 'B':
			pt.kind = partConversion
			return pt
		default:
			pt.text = operators[c]
		}
	}
	if pt.text == "" {
		p.malformed()
	}
	return pt
}
