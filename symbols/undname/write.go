package undname

import "strconv"

// writer writes a tree. Types surround what they declare, so that each is
// written in two halves: before and after it.
type writer struct {
	out      []byte
	steps    int
	nameOnly bool
}

func (w *writer) over() bool { return w.steps > maxSteps || len(w.out) > maxOutput }

// step counts a node and reports whether it may be written.
func (w *writer) step() bool {
	w.steps++
	return !w.over()
}

func (w *writer) str(s string) { w.out = append(w.out, s...) }

// space separates what follows from a word or a template before it.
func (w *writer) space() {
	if n := len(w.out); n > 0 {
		if c := w.out[n-1]; c == '>' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			w.out = append(w.out, ' ')
		}
	}
}

func (w *writer) number(n number) {
	if n.neg {
		w.out = append(w.out, '-')
	}
	w.out = strconv.AppendUint(w.out, n.abs, 10)
}

// numbers writes a list of numbers.
func (w *writer) numbers(open string, ns []number, end string) {
	w.str(open)
	for i, n := range ns {
		if i > 0 {
			w.str(", ")
		}
		w.number(n)
	}
	w.str(end)
}

func (w *writer) quals(q quals) {
	if q&qConst != 0 {
		w.space()
		w.str("const")
	}
	if q&qVolatile != 0 {
		w.space()
		w.str("volatile")
	}
	if q&qRestrict != 0 {
		w.space()
		w.str("__restrict")
	}
}

func (w *writer) name(q *qname) {
	for l := q.first; l != nil; l = l.next {
		if l != q.first {
			w.str("::")
		}
		w.part(l.part)
	}
}

func (w *writer) part(p *part) {
	if !w.step() {
		return
	}
	switch p.kind {
	case partPlain:
		w.str(p.text)
	case partAnonymous:
		w.str("`anonymous namespace'")
	case partLocal:
		w.str("`")
		w.symbol(p.sym)
		w.str("'::`")
		w.number(p.nums[0])
		w.str("'")
	case partCtor:
		w.str(p.text)
		if p.class != nil {
			w.part(p.class)
		}
	case partConversion:
		w.str("operator")
	case partLiteral:
		w.str(`operator ""`)
		w.str(p.text)
	case partDynamic:
		w.dynamic(p)
	case partRTTIBase:
		w.numbers("`RTTI Base Class Descriptor at (", p.nums[:], ")'")
	case partGuard:
		w.str(p.text)
		if p.has {
			w.numbers("{", p.nums[:1], "}")
		}
	}
	if p.template {
		w.templateArgs(p.args)
	}
	if p.kind == partConversion && p.typ != nil {
		w.str(" ")
		w.typ(p.typ)
	}
}

func (w *writer) dynamic(p *part) {
	w.str(p.text)
	if p.sym != nil {
		w.str("`")
		w.symbol(p.sym)
	} else {
		w.str("'")
		w.name(p.qual)
	}
	w.str("''")
}

func (w *writer) templateArgs(a *arg) {
	w.str("<")
	for first := true; a != nil && w.step(); a, first = a.next, false {
		if !first {
			w.str(", ")
		}
		switch a.kind {
		case argType:
			w.typ(a.typ)
		case argNumber:
			w.number(a.num)
		case argAddress:
			w.str("&")
			w.symbol(a.sym)
		case argSymbol:
			w.symbol(a.sym)
		case argTuple:
			w.str("{")
			if a.sym != nil {
				w.symbol(a.sym)
				w.str(", ")
			}
			w.numbers("", a.nums[:a.n], "}")
		}
	}
	w.str(">")
}

func (w *writer) typ(t *typeNode) {
	w.before(t)
	w.after(t)
}

// before writes the half of a type that stands before what it declares.
func (w *writer) before(t *typeNode) {
	if !w.step() {
		return
	}
	switch t.kind {
	case typePlain:
		w.str(t.text)
		w.quals(t.quals)
	case typeTag:
		w.str(t.text)
		w.name(t.name)
		w.quals(t.quals)
	case typePointer:
		w.pointer(t)
	case typeArray:
		w.before(t.elem)
		w.quals(t.quals)
	case typeFunction:
		w.returned(t)
		w.str(t.conv)
	}
}

// returned writes the first half of a function's result.
func (w *writer) returned(t *typeNode) {
	if t.elem != nil {
		w.before(t.elem)
		w.str(" ")
	}
}

func (w *writer) pointer(t *typeNode) {
	to := t.elem
	switch to.kind {
	case typeFunction:
		w.returned(to)
	default:
		w.before(to)
	}
	w.space()
	if t.quals&qUnaligned != 0 {
		w.str("__unaligned ")
	}
	switch to.kind {
	case typeArray:
		w.str("(")
	case typeFunction:
		w.str("(")
		w.str(to.conv)
		w.str(" ")
	}
	if t.class != nil {
		w.name(t.class)
		w.str("::")
	}
	w.str(t.text)
	w.quals(t.quals)
}

// after writes the half of a type that stands after what it declares.
func (w *writer) after(t *typeNode) {
	if !w.step() {
		return
	}
	switch t.kind {
	case typePointer:
		if k := t.elem.kind; k == typeArray || k == typeFunction {
			w.str(")")
		}
		w.after(t.elem)
	case typeArray:
		for d := t.dims; d != nil; d = d.next {
			w.str("[")
			if d.n != 0 {
				w.out = strconv.AppendUint(w.out, d.n, 10)
			}
			w.str("]")
		}
		w.after(t.elem)
	case typeFunction:
		w.params(t)
		w.thisQuals(t)
		if t.elem != nil {
			w.after(t.elem)
		}
	}
}

func (w *writer) params(t *typeNode) {
	w.str("(")
	for a := t.params; a != nil && w.step(); a = a.next {
		if a != t.params {
			w.str(", ")
		}
		w.typ(a.typ)
	}
	switch {
	case t.variadic && t.params != nil:
		w.str(", ...")
	case t.variadic:
		w.str("...")
	case t.params == nil:
		w.str("void")
	}
	w.str(")")
}

func (w *writer) thisQuals(t *typeNode) {
	for _, q := range [...]struct {
		bit  quals
		text string
	}{{qConst, " const"}, {qVolatile, " volatile"}, {qRestrict, " __restrict"}, {qUnaligned, " __unaligned"}} {
		if t.quals&q.bit != 0 {
			w.str(q.text)
		}
	}
	if t.noexcept {
		w.str(" noexcept")
	}
	switch {
	case t.quals&qLvalue != 0:
		w.str(" &")
	case t.quals&qRvalue != 0:
		w.str(" &&")
	}
}
