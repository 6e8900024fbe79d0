package undname

import "strings"

// top takes a whole decorated name.
func (p *parser) top() *symbol {
	if p.takeByte('.') {
		s := p.symbols.new()
		s.kind, s.text, s.typ = symTypeDesc, "`RTTI Type Descriptor Name'", p.descriptor()
		return s
	}
	return p.symbol()
}

// symbol takes a decorated name that begins with '?'.
func (p *parser) symbol() *symbol {
	if strings.HasPrefix(p.in, "??@") {
		return p.hashed()
	}
	p.need("?")
	if s := p.specialData(); s != nil || !p.ok() {
		return s
	}
	s := p.symbols.new()
	s.name = p.symbolName()
	p.encoding(s)
	return s
}

// hashed takes a name that was too long and became an MD5 sum.
func (p *parser) hashed() *symbol {
	begin := p.in
	p.take("??@")
	p.until()
	p.take("??_R4@")
	s := p.symbols.new()
	s.kind, s.text = symText, begin[:len(begin)-len(p.in)]
	return s
}

// encoding takes what follows a name: a variable's storage and type, or a
// function's.
func (p *parser) encoding(s *symbol) {
	if c := p.peek(); c >= '0' && c <= '4' {
		p.variable(s)
	} else {
		p.functionEncoding(s)
	}
	if p.ok() && s.name.leaf.kind == partConversion {
		if s.kind != symFunction || s.typ == nil || s.typ.elem == nil {
			p.malformed()
			return
		}
		s.name.leaf.typ = s.typ.elem
	}
}

func (p *parser) variable(s *symbol) {
	s.kind = symVariable
	switch p.next() {
	case '0':
		s.access, s.static = accessPrivate, true
	case '1':
		s.access, s.static = accessProtected, true
	case '2':
		s.access, s.static = accessPublic, true
	}
	if s.typ = p.typ(); s.typ == nil {
		return
	}
	if s.typ.kind != typePointer {
		q, _ := p.cv()
		s.typ.quals |= q
		return
	}
	s.typ.quals |= p.extended()
	q, _ := p.cv()
	if s.typ.class != nil {
		p.typeName() // that of the member's class once more
	}
	if s.typ.elem != nil {
		s.typ.elem.quals |= q
	}
}

func (p *parser) functionEncoding(s *symbol) {
	s.kind = symFunction
	if p.take("$$J0") {
		s.externC = true
	}
	member := p.functionClass(s)
	if s.noArgs || !p.ok() {
		return
	}
	s.typ = p.function(member)
}

// functionClass takes access, kind and adjustments of a function, and reports
// whether it has a this.
func (p *parser) functionClass(s *symbol) (member bool) {
	c := p.next()
	switch {
	case c == '9':
		s.externC, s.noArgs = true, true
		return false
	case c == 'Y' || c == 'Z':
		return false
	case c == '$':
		return p.displaced(s)
	case c < 'A' || c > 'X':
		p.malformed()
		return false
	}
	// Three groups of four pairs (near and far): plain, static, virtual,
	// adjusting.
	s.access = accessPrivate + access((c-'A')/8)
	switch (c - 'A') % 8 / 2 {
	case 1:
		s.static = true
		return false
	case 2:
		s.virtual = true
	case 3:
		s.virtual, s.thunk = true, thunkAdjustor
		s.nums[0] = p.size32()
	}
	return true
}

// displaced takes the adjustments of a thunk for a virtual base.
func (p *parser) displaced(s *symbol) bool {
	s.virtual, s.thunk = true, thunkVtordisp
	n := 2
	if p.takeByte('R') {
		s.thunk, n = thunkVtordispex, 4
	}
	c := p.next()
	if c < '0' || c > '5' {
		p.malformed()
		return false
	}
	s.access = accessPrivate + access((c-'0')/2)
	for i := range n - 1 {
		s.nums[i] = p.offset32()
	}
	s.nums[n-1] = p.size32()
	return true
}

// specialData takes the special names that are not functions with a signature.
// It returns nil when the name is another.
func (p *parser) specialData() *symbol {
	rest, ok := strings.CutPrefix(p.in, "?_")
	if !ok || rest == "" {
		return nil
	}
	size := 3
	if (rest[0] == '_' || rest[0] == 'R') && len(rest) > 1 {
		size = 4
	}
	code := p.in[1:size]
	switch code {
	case "_7", "_8", "_S", "_R4":
		p.in = p.in[size:]
		return p.table(tables[code])
	case "_9":
		p.in = p.in[size:]
		return p.vcallThunk()
	case "_B":
		p.in = p.in[size:]
		return p.guard("`local static guard'")
	case "__J":
		p.in = p.in[size:]
		return p.guard("`local static thread guard'")
	case "_C":
		p.in = p.in[size:]
		return p.stringLiteral()
	case "_R0":
		p.in = p.in[size:]
		s := p.symbols.new()
		s.kind, s.text, s.typ = symTypeDesc, "`RTTI Type Descriptor'", p.descriptor()
		p.need("@8")
		return s
	case "_R1":
		p.in = p.in[size:]
		return p.rttiBase()
	case "_R2", "_R3":
		p.in = p.in[size:]
		pt := p.parts.new()
		pt.text = "`RTTI Base Class Array'"
		if code == "_R3" {
			pt.text = "`RTTI Class Hierarchy Descriptor'"
		}
		return p.bare(pt, "8")
	case "__E":
		p.in = p.in[size:]
		return p.dynamic("`dynamic initializer for ")
	case "__F":
		p.in = p.in[size:]
		return p.dynamic("`dynamic atexit destructor for ")
	case "_A", "_P":
		p.malformed()
	}
	return nil
}

// descriptor takes the type of a type descriptor.
func (p *parser) descriptor() *typeNode {
	var q quals
	if p.takeByte('?') {
		q, _ = p.cv()
	}
	t := p.typ()
	if t != nil {
		t.quals |= q
	}
	return t
}

func (p *parser) bare(leaf *part, end string) *symbol {
	s := p.symbols.new()
	s.kind, s.name = symBare, p.scoped(leaf)
	p.need(end)
	return s
}

// table takes a virtual table: the class, its kind, and the base it is for.
func (p *parser) table(text string) *symbol {
	s := p.symbols.new()
	s.kind = symTable
	pt := p.parts.new()
	pt.text = text
	s.name = p.scoped(pt)
	if c := p.next(); c != '6' && c != '7' {
		p.malformed()
	}
	s.quals, _ = p.cv()
	if p.ok() && !p.takeByte('@') {
		s.target = p.typeName()
	}
	return s
}

func (p *parser) vcallThunk() *symbol {
	s := p.symbols.new()
	s.kind = symVcallThunk
	pt := p.parts.new()
	pt.text = "`vcall'"
	s.name = p.scoped(pt)
	p.need("$B")
	s.nums[0] = p.unsigned()
	p.need("A")
	c := p.next()
	if s.text = conventions[c]; s.text == "" && c != noConvention {
		p.malformed()
	}
	return s
}

// guard takes the flag that says whether a local static was initialized.
func (p *parser) guard(text string) *symbol {
	s := p.symbols.new()
	pt := p.parts.new()
	pt.kind, pt.text = partGuard, text
	s.kind, s.name = symBare, p.scoped(pt)
	if !p.take("4IA") {
		p.need("5")
	}
	if p.ok() && p.in != "" {
		pt.has, pt.nums[0] = true, p.unsigned()
	}
	return s
}

func (p *parser) rttiBase() *symbol {
	pt := p.parts.new()
	pt.kind = partRTTIBase
	pt.nums = [4]number{p.unsigned(), p.offset32(), p.unsigned(), p.unsigned()}
	return p.bare(pt, "8")
}

// dynamic takes the function that initializes a variable, or destroys it at
// exit. The variable is a name, or a symbol when it is a member.
func (p *parser) dynamic(text string) *symbol {
	pt := p.parts.new()
	pt.kind, pt.text = partDynamic, text
	s := p.symbols.new()
	s.name = p.names.new()
	s.name.leaf, s.name.first = pt, p.links.new()
	s.name.first.part = pt
	if strings.HasPrefix(p.in, "?") {
		pt.sym = p.nested()
		if p.ok() && pt.sym.kind == symVariable {
			p.need("@")
			p.takeByte('@')
		}
	} else {
		pt.qual = p.symbolName()
	}
	p.functionEncoding(s)
	return s
}
