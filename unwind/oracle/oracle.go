package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// Oracle executes the functions of one image.
type Oracle struct {
	im      *image
	m       *machine
	p       *process
	w       *unwind.Walker
	filler  []byte // what the stack holds below and above
	rng     *rand.Rand
	visited map[uint32]bool // boundaries of the function under way
	wrong   map[uint32]bool
	res     *Function
}

// maxFailures caps the failures that one function describes.
const maxFailures = 4

// Open returns an Oracle for an image file, or ErrNotBuilt.
func Open(path string) (*Oracle, error) {
	im, err := openImage(path)
	if err != nil {
		return nil, err
	}
	m, err := newMachine(im.arch)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(m, im)
	if err != nil {
		return nil, err
	}
	o := &Oracle{im: im, m: m, p: p, w: unwind.New(p, im.arch), filler: make([]byte, stackSize)}
	fill := rand.NewChaCha8([32]byte{1})
	_, _ = fill.Read(o.filler)
	copy(p.stack, o.filler)
	return o, nil
}

// Entries is the number of entries of the image's function table.
func (o *Oracle) Entries() int { return len(o.im.entries) }

// Check executes the function of the i-th entry. It returns nil for entries
// that are no function's beginning. The same entry always gives the same
// answer.
func (o *Oracle) Check(i int, limits Limits) *Function {
	rf := o.im.entries[i]
	execute, undescribed := o.runner(rf)
	if execute == nil {
		return nil
	}
	o.rng = rand.New(rand.NewPCG(uint64(rf.Begin), 1))
	o.visited, o.wrong = map[uint32]bool{}, map[uint32]bool{}
	o.res = &Function{Begin: rf.Begin, Undescribed: undescribed}
	for idle := 0; o.res.Runs < limits.Runs && idle < 2; o.res.Runs++ {
		before := len(o.visited)
		execute(limits.Steps)
		if len(o.visited) == before {
			idle++
		}
	}
	o.res.Boundaries = len(o.visited)
	for rva := range o.wrong {
		o.res.Wrong = append(o.res.Wrong, rva)
	}
	slices.Sort(o.res.Wrong)
	return o.res
}

// runner returns what executes the function of an entry once, nil when a
// function cannot be entered there.
func (o *Oracle) runner(rf pdata.RuntimeFunction) (execute func(steps int), undescribed bool) {
	if o.im.arch == dump.ARM64 {
		if o.im.parts[rf.Begin] || o.changesSP(o.im.base+uint64(rf.Begin)) {
			return nil, false
		}
		return func(steps int) { o.runARM64(rf, steps) }, false
	}
	info, ok := o.im.enterable(rf)
	if !ok {
		return nil, false
	}
	return func(steps int) { o.run(rf, info, steps) }, info.Handler != 0 && !describes(info)
}

// arrival says how the run came to an instruction.
type arrival uint8

const (
	byEntry arrival = iota
	byFall
	byJump
	byIndirect
	byTail
	byCall // past a call that was stepped over
)

// run is one execution of a function.
type run struct {
	*Oracle
	t        truth
	regs     *[17]uint64
	xmm      *[16][2]uint64
	primary  uint32 // Begin of the function that the run is in
	first    uint32 // and of the one it began in
	arrival  arrival
	previous instruction // for bounds checks of jump tables
	// frameless are the targets of branches taken before there was a frame. What
	// falls into them with one is past a call that does not return: Go puts its
	// calls of morestack behind those of panic.
	frameless map[uint64]bool
}

// run executes the function once.
func (o *Oracle) run(rf pdata.RuntimeFunction, info *pdata.UnwindInfo, steps int) {
	r := &run{Oracle: o, regs: o.m.gprs(), xmm: o.m.xmms(), primary: rf.Begin, first: rf.Begin, frameless: map[uint64]bool{}}
	r.enter(rf, info)
	for range steps {
		if !r.boundary() || !r.advance() {
			return
		}
	}
}

// enter makes the random state that the function is called in.
func (r *run) enter(rf pdata.RuntimeFunction, info *pdata.UnwindInfo) {
	r.cleanStack()
	r.m.reset(dataBase)
	for i := range r.regs {
		// Not canonical, so that neither code nor data is ever found there.
		r.regs[i] = r.rng.Uint64()&0xffff_ffff_ffff | 0x00a0<<48
	}
	for i := range r.xmm {
		r.xmm[i] = [2]uint64{r.rng.Uint64(), r.rng.Uint64()}
	}
	r.randomVolatile()
	r.regs[dump.RAX] = r.pointer()
	r.fillData()
	if r.im.goCode {
		r.goRegisters()
	}
	r.regs[dump.RSP], r.regs[dump.RIP] = entrySP, r.im.base+uint64(rf.Begin)
	r.t = truth{ip: returnTo, sp: entrySP + 8, slot: entrySP, goCode: r.im.goCode}
	r.poke(entrySP, returnTo)
	if r.im.goCode { // every Go function has a frame pointer
		r.regs[dump.RBP] = entrySP + 0x200
		r.poke(entrySP+0x200, entrySP+0x400)
		r.poke(entrySP+0x208, outerReturn)
	}
	if errorCode, ok := machineFrame(info); ok {
		r.interrupted(errorCode)
	}
	r.t.gpr, r.t.xmm = *r.regs, *r.xmm
	r.t.watch()
	r.m.load()
}

// fillData makes what pointers point to mostly pointers again.
func (o *Oracle) fillData() {
	for i := 0; i < dataSize; i += 8 {
		word := uint64(dataBase + dataSize/2)
		if i%64 == 56 {
			word = 1
		}
		putWord(o.p.data[i:], word)
	}
}

// interrupted makes the caller one that an interrupt stopped, with the frame
// that the processor pushes then.
func (r *run) interrupted(errorCode bool) {
	sp := uint64(entrySP)
	if errorCode {
		r.poke(sp, 0x1234)
		sp += 8
	}
	r.t.machine, r.t.slot, r.t.sp = true, sp, entrySP+0x400
	for i, v := range []uint64{returnTo, 0x33, 0x246, r.t.sp, 0x2b} {
		r.poke(sp+8*uint64(i), v)
	}
}

// cleanStack makes the stack what it was before the last run.
func (o *Oracle) cleanStack() {
	low, high := o.m.dirty()
	low, high = max(low, stackBase), min(high, stackBase+stackSize)
	if low < high {
		copy(o.p.stack[low-stackBase:high-stackBase], o.filler[low-stackBase:])
	}
	copy(o.p.stack[entrySP-stackBase:], o.filler[entrySP-stackBase:])
}

func putWord(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}

func (r *run) poke(va, v uint64) { putWord(r.p.stack[va-stackBase:], v) }

func (o *Oracle) pointer() uint64 { return dataBase + dataSize/2 + 8*o.rng.Uint64N(64) }

// randomVolatile gives the registers that carry arguments pointers.
func (r *run) randomVolatile() {
	for _, reg := range []dump.Reg{dump.RCX, dump.RDX, dump.R8, dump.R9, dump.R10, dump.R11} {
		r.regs[reg] = r.pointer()
	}
}

// goRegisters sets up what Go code expects: the goroutine in r14 with a stack
// limit that is sometimes reached, and pointers everywhere.
func (r *run) goRegisters() {
	for _, reg := range []dump.Reg{dump.RBX, dump.RSI, dump.RDI, dump.R12, dump.R13, dump.R15} {
		r.regs[reg] = r.pointer()
	}
	r.regs[dump.R14] = dataBase + dataSize/2
	putWord(r.p.data[dataSize/2+0x10:], stackBase)
}

// boundary checks the instruction boundary that the run is at. It returns false
// when the run has come to its end.
func (r *run) boundary() bool {
	ip := r.regs[dump.RIP]
	if ip == returnTo {
		r.returned()
		return false
	}
	if ip-r.im.base >= uint64(r.im.size) || !r.onStack() {
		return false
	}
	rva := uint32(ip - r.im.base)
	rf, covered, err := r.im.pe.Lookup(rva)
	if err != nil || !r.im.pe.Executable(rva) || !r.follow(rf, covered) {
		return false
	}
	if r.primary == r.first && covered {
		r.visited[rva] = true
	}
	v := r.unwind(ip, ip)
	r.res.Checks.count(v)
	r.classify(v, rva, rf, covered)
	if v.wrong != "" && v.lost {
		return false
	}
	r.fail(v, rva, false)
	return true
}

// onStack reports whether rsp is on the stack, with room around it.
func (r *run) onStack() bool {
	sp := r.regs[dump.RSP]
	return sp >= stackBase+0x10000 && sp < stackBase+stackSize-0x1000
}

// follow decides whether the run goes on where it has come to.
func (r *run) follow(rf pdata.RuntimeFunction, covered bool) bool {
	fresh := r.regs[dump.RSP] == entrySP // as at the entry: a tail call
	if r.im.goCode && (r.arrival == byCall || r.arrival == byFall) && !fresh && r.frameless[r.regs[dump.RIP]] {
		return false
	}
	if !covered {
		return fresh && (r.arrival == byJump || r.arrival == byTail || r.arrival == byFall && r.primary == 0) && r.leave()
	}
	primary := r.im.pe.Primary(rf).Begin
	if primary == r.primary {
		return true
	}
	switch r.arrival {
	case byFall, byCall:
		return false // past a call that does not return
	case byIndirect:
		return false // a jump table read beyond its end
	case byTail:
		if !fresh {
			return false
		}
	}
	r.primary = primary
	return true
}

// leave notes that the run is in code that no entry covers.
func (r *run) leave() bool {
	r.primary = 0
	return true
}

// returned checks the emulation itself: a function that has returned must have
// kept its promises, or the truth compared with was none.
func (r *run) returned() {
	if r.regs[dump.RSP] < r.t.sp {
		return
	}
	for _, reg := range preserved {
		if r.regs[reg] != r.t.gpr[reg] {
			return
		}
	}
	r.res.Returned++
}

// unwind unwinds one frame from the state the processor is in.
func (r *run) unwind(ip, lookup uint64) verdict {
	regs := dump.Registers{Arch: dump.AMD64}
	for i, v := range r.regs[:16] {
		regs.Set(dump.Reg(i), v)
	}
	regs.SetPC(ip)
	for i, v := range r.xmm {
		regs.SetXMM(i, dump.XMM(v))
	}
	f := unwind.Frame{IP: ip, Lookup: lookup, SP: r.regs[dump.RSP], FP: r.regs[dump.RBP], HasFP: true, Trust: unwind.TrustContext, Method: unwind.MethodContext}
	if ip != lookup {
		regs.ForgetVolatile()
		f.Trust, f.Method = unwind.TrustCFI, unwind.MethodPdata
	}
	r.w.DiscardMemory()
	stop, ok := r.w.Step(&regs, &f, &unwind.Options{StackLimit: stackBase, StackBase: stackBase + stackSize})
	return r.t.compare(r.p, &regs, &f, stop, ok)
}

// classify counts what kind of place was checked.
func (r *run) classify(v verdict, rva uint32, rf pdata.RuntimeFunction, covered bool) {
	switch {
	case !covered:
		r.res.Leaves++
	case v.method == unwind.MethodEpilog:
		r.res.Epilogs++
	default:
		if info, err := r.im.pe.UnwindInfo(rf.UnwindInfo); err == nil && rva-rf.Begin < uint32(info.SizeOfProlog) {
			r.res.Prologs++
		}
	}
}

func (o *Oracle) fail(v verdict, rva uint32, atCall bool) {
	if v.wrong == "" || v.lost {
		return
	}
	seen := o.wrong[rva]
	o.wrong[rva] = true
	if seen || len(o.res.Failures) == maxFailures {
		return
	}
	code := o.code(rva)
	f := Failure{RVA: rva, Call: atCall, Wrong: v.wrong, Method: v.method.String(), Detail: v.detail, Code: fmt.Sprintf("% x", code[:min(len(code), 12)])}
	f.Text = o.disassemble(rva)
	o.res.Failures = append(o.res.Failures, f)
}

func (o *Oracle) disassemble(rva uint32) string {
	code := o.code(rva)
	if o.im.arch == dump.ARM64 {
		return textARM64(code)
	}
	if d := decode(code); d.op != 0 {
		return x86asm.IntelSyntax(d.inst, uint64(rva), nil)
	}
	return ""
}

// code returns the bytes at an RVA, as many as an instruction can have.
func (o *Oracle) code(rva uint32) []byte {
	return o.p.code[rva:min(uint64(rva)+16, uint64(len(o.p.code)))]
}
