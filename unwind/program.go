package unwind

import (
	"strconv"
	"strings"

	"dumptriage/dump"
)

// Programs of debug information are in postfix notation: "$T0 $ebp = $eip $T0 4
// + ^ =". Variables are put on a stack by name, ^ reads the memory that the
// topmost value points to, @ rounds down to a multiple, = gives the variable
// below a value. Microsoft documents the notation at IDiaFrameData::get_program,
// Breakpad its use in STACK WIN and STACK CFI.
const (
	maxProgramText = 4096
	maxTokens      = 512
	maxOperands    = 32
	maxVariables   = 64 // registers, inputs and the program's own
)

// variable is a slot: a register, an input, or one that the program made.
type variable uint8

// Inputs and results that are no registers.
const (
	varCFA variable = dump.NumRegs + iota
	varRA
	varParams       // .cbParams
	varLocals       // .cbLocals
	varSavedRegs    // .cbSavedRegs
	varCalleeParams // .cbCalleeParams
	varSearch       // .raSearch, .raSearchStart
	firstOwn        // the program's own
)

var inputNames = map[string]variable{
	".cfa": varCFA, ".ra": varRA, ".cbParams": varParams, ".cbLocals": varLocals, ".cbSavedRegs": varSavedRegs,
	".cbCalleeParams": varCalleeParams, ".raSearch": varSearch, ".raSearchStart": varSearch,
}

// codeViewNames are the names that PDBs have for registers as numbers.
var codeViewNames = map[string]dump.Reg{"$17": dump.RAX, "$18": dump.RCX, "$19": dump.RDX, "$20": dump.RBX,
	"$21": dump.RSP, "$22": dump.RBP, "$23": dump.RSI, "$24": dump.RDI, "$33": dump.RIP}

// undefined is the expression of STACK CFI for a register that is lost.
const undefined = ".undef"

type operator uint8

const (
	opConst operator = iota
	opVar
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opAlign
	opDeref
	opAssign
)

var operators = map[string]operator{"+": opAdd, "-": opSub, "*": opMul, "/": opDiv, "%": opMod, "@": opAlign, "^": opDeref, "=": opAssign}

type token struct {
	op  operator
	v   variable
	num uint64
}

// program is a compiled program or expression.
type program struct {
	tokens   []token
	names    []string // of the program's own variables
	stream   string
	searches bool // uses .raSearch
	aligns   bool // aligns the stack
	ebpFrame bool // begins with $T0 $ebp =: ebp points to its saved value
}

// compileProgram compiles a program that assigns everything it computes.
func compileProgram(text, stream string, arch dump.Arch) (*program, error) {
	p, depth, err := compileTokens(text, stream, arch)
	if err == nil && depth != 0 {
		err = dump.Errorf(dump.BadRecord, stream, "its program leaves %d values: %.80q", depth, text)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// compileExpression compiles an expression that leaves one value.
func compileExpression(text, stream string, arch dump.Arch) (*program, error) {
	p, depth, err := compileTokens(text, stream, arch)
	if err == nil && depth != 1 {
		err = dump.Errorf(dump.BadRecord, stream, "its expression leaves %d values: %.80q", depth, text)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func compileTokens(text, stream string, arch dump.Arch) (p *program, depth int, err error) {
	if len(text) > maxProgramText {
		return nil, 0, dump.Errorf(dump.Limit, stream, "its program has %d bytes, more than %d", len(text), maxProgramText)
	}
	p = &program{stream: stream}
	for word := range strings.FieldsSeq(text) {
		if len(p.tokens) == maxTokens {
			return nil, 0, dump.Errorf(dump.Limit, stream, "its program has more than %d words: %.80q", maxTokens, text)
		}
		t, ok := p.token(word, arch)
		if !ok {
			return nil, 0, dump.Errorf(dump.BadRecord, stream, "its program is not understood at %.40q: %.80q", word, text)
		}
		need, gives := t.op.effect()
		if depth < need || t.op == opAssign && !p.assignable(t) {
			return nil, 0, dump.Errorf(dump.BadRecord, stream, "its program has no operands for %.40q: %.80q", word, text)
		}
		if depth += gives - need; depth > maxOperands {
			return nil, 0, dump.Errorf(dump.Limit, stream, "its program has more than %d operands: %.80q", maxOperands, text)
		}
		p.tokens = append(p.tokens, t)
		p.searches = p.searches || t.op == opVar && t.v == varSearch
		p.aligns = p.aligns || t.op == opAlign
	}
	t := p.tokens
	p.ebpFrame = len(t) > 2 && t[0].op == opVar && t[1].op == opVar && t[1].v == variable(dump.RBP) && t[2].op == opAssign
	return p, depth, nil
}

// effect is how many operands an operator takes and leaves.
func (o operator) effect() (takes, leaves int) {
	switch o {
	case opConst, opVar:
		return 0, 1
	case opDeref:
		return 1, 1
	case opAssign:
		return 2, 0
	}
	return 2, 1
}

// assignable is a cheap check that something was named before; that it is the
// operand below is checked when the program runs.
func (p *program) assignable(token) bool { return len(p.tokens) >= 2 }

func (p *program) token(word string, arch dump.Arch) (token, bool) {
	if op, ok := operators[word]; ok {
		return token{op: op}, true
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return token{op: opConst, num: uint64(n)}, true
	}
	v, ok := p.variable(word, arch)
	return token{op: opVar, v: v}, ok
}

// variable finds a name's slot, and gives names of the program's own one.
func (p *program) variable(name string, arch dump.Arch) (variable, bool) {
	if v, ok := namedVariable(name, arch); ok {
		return v, true
	}
	if !strings.HasPrefix(name, "$") {
		return 0, false
	}
	for i, own := range p.names {
		if own == name {
			return firstOwn + variable(i), true
		}
	}
	if int(firstOwn)+len(p.names) >= maxVariables {
		return 0, false
	}
	p.names = append(p.names, name)
	return firstOwn + variable(len(p.names)-1), true
}

// namedVariable finds the slot of a register or an input.
func namedVariable(name string, arch dump.Arch) (variable, bool) {
	if v, ok := inputNames[name]; ok {
		return v, true
	}
	if arch == dump.X86 {
		if r, ok := codeViewNames[name]; ok {
			return variable(r), true
		}
	}
	bare, dollar := strings.CutPrefix(name, "$")
	if !dollar && arch != dump.ARM64 {
		return 0, false
	}
	if arch == dump.ARM64 {
		switch bare {
		case "x29":
			return variable(dump.ARM64FP), true
		case "x30":
			return variable(dump.ARM64LR), true
		}
	}
	for reg := range dump.Reg(dump.NumRegs) {
		if bare != "" && arch.RegName(reg) == bare {
			return variable(reg), true
		}
	}
	return 0, false
}

// nameOf is the name of a slot for people.
func (p *program) nameOf(v variable, arch dump.Arch) string {
	if v < dump.NumRegs {
		return arch.RegName(dump.Reg(v))
	}
	if i := int(v) - int(firstOwn); i >= 0 && i < len(p.names) {
		return p.names[i]
	}
	return [...]string{".cfa", ".ra", ".cbParams", ".cbLocals", ".cbSavedRegs", ".cbCalleeParams", ".raSearch"}[v-varCFA]
}

// machine runs programs. A variable that is not known makes what is computed of
// it unknown.
type machine struct {
	val      [maxVariables]uint64
	known    uint64 // by slot
	assigned uint64
	readAt   [maxVariables]uint64 // where an assigned value was read, 0 when it was computed
	stack    [maxOperands]operand
	depth    int
	missing  uint64 // the last memory that was not there
	lacks    bool
}

type operand struct {
	v       variable
	isVar   bool
	known   bool
	val, at uint64
}

func (m *machine) reset(regs *dump.Registers) {
	m.known, m.assigned, m.lacks, m.depth = 0, 0, false, 0
	for reg := range dump.Reg(dump.NumRegs) {
		if v, ok := regs.Get(reg); ok {
			m.set(variable(reg), v)
		}
	}
}

func (m *machine) set(v variable, val uint64) {
	m.val[v] = val
	m.known |= 1 << v
}

func (m *machine) get(v variable) (uint64, bool) { return m.val[v], m.known&(1<<v) != 0 }

// result is a variable that the program itself gave a value.
func (m *machine) result(v variable) (val uint64, known, assigned bool) {
	val, known = m.get(v)
	return val, known, m.assigned&(1<<v) != 0
}

// pop takes the topmost operand's value.
func (m *machine) pop() operand {
	m.depth--
	o := m.stack[m.depth]
	if o.isVar {
		o.val, o.known = m.get(o.v)
	}
	return o
}

// push puts a value on the stack; compiling has checked the depth.
func (m *machine) push(o operand) {
	m.stack[m.depth] = o
	m.depth++
}

// runProgram runs a program in w.machine. The error is a *dump.Error.
func (w *Walker) runProgram(p *program) error {
	m := &w.machine
	m.depth = 0
	for _, t := range p.tokens {
		switch t.op {
		case opConst:
			m.push(operand{val: w.truncate(t.num), known: true})
		case opVar:
			m.push(operand{v: t.v, isVar: true})
		case opDeref:
			m.push(w.deref(m.pop()))
		case opAssign:
			o := m.pop()
			to := m.stack[m.depth-1]
			m.depth--
			if !to.isVar {
				return dump.Errorf(dump.BadRecord, p.stream, "its program assigns to a value")
			}
			w.assign(p, to.v, o)
		default:
			b, a := m.pop(), m.pop()
			o, err := w.arithmetic(p, t.op, a, b)
			if err != nil {
				return err
			}
			m.push(o)
		}
	}
	return nil
}

func (w *Walker) assign(p *program, v variable, o operand) {
	m := &w.machine
	m.val[v], m.readAt[v] = o.val, o.at
	m.known &^= 1 << v
	if o.known {
		m.known |= 1 << v
	}
	m.assigned |= 1 << v
	if w.tracing() {
		w.note(Note{Kind: NoteAssign, Name: p.nameOf(v, w.arch), Addr: o.at, Value: o.val, Known: o.known})
	}
}

func (w *Walker) deref(o operand) operand {
	if !o.known {
		return operand{}
	}
	v, ok := w.word(o.val)
	if !ok {
		w.machine.missing, w.machine.lacks = o.val, true
	}
	return operand{val: v, known: ok, at: o.val}
}

func (w *Walker) arithmetic(p *program, op operator, a, b operand) (operand, error) {
	if (op == opDiv || op == opMod || op == opAlign) && b.known && b.val == 0 {
		return operand{}, dump.Errorf(dump.BadRecord, p.stream, "its program divides by zero")
	}
	if !a.known || !b.known {
		return operand{}, nil
	}
	var v uint64
	switch op {
	case opAdd:
		v = a.val + b.val
	case opSub:
		v = a.val - b.val
	case opMul:
		v = a.val * b.val
	case opDiv:
		v = a.val / b.val
	case opMod:
		v = a.val % b.val
	case opAlign:
		v = a.val - a.val%b.val
	}
	return operand{val: w.truncate(v), known: true}, nil
}

// truncate cuts a value to the width of a pointer.
func (w *Walker) truncate(v uint64) uint64 {
	if w.arch == dump.X86 {
		return v & highestUser32
	}
	return v
}
