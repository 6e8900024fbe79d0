package undname

var accessText = [...]string{accessPrivate: "private: ", accessProtected: "protected: ", accessPublic: "public: "}

func (w *writer) symbol(s *symbol) {
	if !w.step() {
		return
	}
	switch s.kind {
	case symFunction:
		w.function(s)
	case symVariable:
		w.variable(s)
	case symTable:
		w.table(s)
	case symBare:
		w.name(s.name)
	case symTypeDesc:
		w.typ(s.typ)
		w.space()
		w.str(s.text)
	case symText:
		w.str(s.text)
	case symString:
		w.literal(&s.lit)
	case symVcallThunk:
		if !w.nameOnly {
			w.str("[thunk]: ")
			w.str(s.text)
			w.str(" ")
		}
		w.name(s.name)
		w.numbers("{", s.nums[:1], ", {flat}}")
	}
}

func (w *writer) function(s *symbol) {
	if !w.nameOnly {
		w.functionPrefix(s)
	}
	w.name(s.name)
	switch s.thunk {
	case thunkAdjustor:
		w.numbers("`adjustor{", s.nums[:1], "}'")
	case thunkVtordisp:
		w.numbers("`vtordisp{", s.nums[:2], "}'")
	case thunkVtordispex:
		w.numbers("`vtordispex{", s.nums[:4], "}'")
	}
	if s.typ != nil && !w.nameOnly {
		w.after(s.typ)
	}
}

func (w *writer) functionPrefix(s *symbol) {
	if s.thunk != thunkNone {
		w.str("[thunk]: ")
	}
	w.str(accessText[s.access])
	if s.static {
		w.str("static ")
	}
	if s.virtual {
		w.str("virtual ")
	}
	if s.externC {
		w.str(`extern "C" `)
	}
	if s.typ != nil {
		w.before(s.typ)
		w.space()
	}
}

func (w *writer) variable(s *symbol) {
	if w.nameOnly {
		w.name(s.name)
		return
	}
	w.str(accessText[s.access])
	if s.static {
		w.str("static ")
	}
	w.before(s.typ)
	w.space()
	w.name(s.name)
	w.after(s.typ)
}

func (w *writer) table(s *symbol) {
	if !w.nameOnly {
		n := len(w.out)
		w.quals(s.quals)
		if len(w.out) > n {
			w.str(" ")
		}
	}
	w.name(s.name)
	if s.target != nil {
		w.str("{for `")
		w.name(s.target)
		w.str("'}")
	}
}

func (w *writer) literal(l *literal) {
	switch {
	case l.wide:
		w.str("L")
	case l.width == 2:
		w.str("u")
	case l.width == 4:
		w.str("U")
	}
	w.str(`"`)
	for b := l.bytes; len(b) > 0; {
		n := min(l.width, len(b))
		var c uint32
		for i := range n {
			if l.wide { // big-endian, the others are as in memory
				c = c<<8 | uint32(b[i])
			} else {
				c |= uint32(b[i]) << (8 * i)
			}
		}
		b = b[n:]
		w.char(c)
	}
	w.str(`"`)
	if l.truncated {
		w.str("...")
	}
}

var escapes = map[uint32]string{0: `\0`, '\'': `\'`, '"': `\"`, '\\': `\\`, 7: `\a`, 8: `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`}

func (w *writer) char(c uint32) {
	if s, ok := escapes[c]; ok {
		w.str(s)
		return
	}
	if c >= 0x20 && c < 0x7f {
		w.out = append(w.out, byte(c))
		return
	}
	const hex = "0123456789ABCDEF"
	w.str(`\x`)
	size := 2
	for size < 8 && c>>(4*size) != 0 {
		size += 2
	}
	for i := size - 1; i >= 0; i-- {
		w.out = append(w.out, hex[c>>(4*i)&15])
	}
}
