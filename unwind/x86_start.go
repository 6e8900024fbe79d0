package unwind

import (
	"fmt"

	"dumptriage/pdata"
)

const (
	maxStarts     = 8         // places before an address tried as its function's start
	walkEffort    = 50_000    // instructions simulated in one walk,
	walkerEffort  = 1_000_000 // and in all walks of a walker
	searchToil    = 300       // what reading and searching the code before an address costs, in instructions
	scoreToil     = 8         // and what ranking a word costs
	maxRemembered = 4096      // simulated runs kept for other stacks
	startAlign    = 16        // of functions, by all compilers that fill gaps
)

// x86State is what a walker keeps for 32-bit code.
type x86State struct {
	sims   map[uint64][]sim86 // simulated runs by the address they end at
	effort int                // instructions left to this walk
	spent  int                // by all walks
	before []byte             // scratch for code before an address
	params uint64             // bytes of arguments of the frame that is being left
	callee calleeArgs
	call   [5]byte // scratch for a call
}

// exporter is a Table that knows exported functions.
type exporter interface {
	NearestExport(rva uint32) (pdata.Symbol, bool)
}

// runs86 simulates the code before an address from each place that may be its
// function's start, the nearest first. Only a call to a start proves it.
func (w *Walker) runs86(pc uint64) []sim86 {
	if runs, ok := w.x86.sims[pc]; ok {
		return runs
	}
	if w.tired86() {
		return nil
	}
	if w.x86.sims == nil || len(w.x86.sims) >= maxRemembered {
		w.x86.sims = map[uint64][]sim86{}
	}
	w.toil86(searchToil)
	runs := w.findRuns86(pc)
	if !w.tired86() { // else another walk may get further
		w.x86.sims[pc] = runs
	}
	return runs
}

// tired86 reports whether simulation has cost what it may: code made for it
// could take seconds.
func (w *Walker) tired86() bool {
	return w.x86.effort <= 0 || w.x86.spent >= walkerEffort
}

// toil86 counts work, in simulated instructions.
func (w *Walker) toil86(n int) {
	w.x86.effort -= n
	w.x86.spent += n
}

func (w *Walker) findRuns86(pc uint64) []sim86 {
	s := w.site(pc - 1)
	if s.notCode() {
		return nil
	}
	exported, named := w.exportBefore(pc), w.functionStart86(pc)
	code := w.codeBefore86(pc)
	low := pc - uint64(len(code))
	var runs []sim86
	for tried, i := 0, len(code)-1; i >= 0 && tried < maxStarts; i-- {
		start := low + uint64(i)
		if named != 0 && named >= low && start != named {
			continue
		}
		if start != exported && start != named && !startsFunction(code, i, start) {
			continue
		}
		tried++
		if r := w.simulate(code[i:], start, pc); r.complete {
			// No other function seems to begin behind an export.
			r.certain = start == named || start == exported && tried == 1
			runs = append(runs, r)
		}
		if start == exported || start == named {
			break
		}
	}
	return runs
}

// codeBefore86 reads the code before an address: up to maxSimulated bytes, or
// what of its page is there.
func (w *Walker) codeBefore86(pc uint64) []byte {
	if w.x86.before == nil {
		w.x86.before = make([]byte, maxSimulated)
	}
	for _, size := range [...]uint64{maxSimulated, pc & 0xfff} {
		if size > pc {
			continue
		}
		code := w.x86.before[:size]
		if n := w.readCode(code, w.site(pc-1), pc-size); uint64(n) == size {
			return code
		}
	}
	return nil
}

// functionStart86 is where debug information says that the function begins which
// holds the code before an address, 0 when it does not.
func (w *Walker) functionStart86(pc uint64) uint64 {
	if w.frames == nil {
		return 0
	}
	if start, ok := w.frames.FunctionStart(pc - 1); ok {
		return start
	}
	return 0
}

// exportBefore returns the nearest exported address at or before one, 0 when
// there is none.
func (w *Walker) exportBefore(pc uint64) uint64 {
	s := w.site(pc - 1)
	x, ok := s.image.(exporter)
	if !ok || pc-1-s.base > 0xffffffff {
		return 0
	}
	if sym, ok := x.NearestExport(uint32(pc - 1 - s.base)); ok {
		return s.base + uint64(sym.RVA)
	}
	return 0
}

// startsFunction reports whether code[i] looks like a function's first byte:
// behind filling or a return and either the customary frame or, on the
// customary boundary, something else that functions begin with.
func startsFunction(code []byte, i int, at uint64) bool {
	if i == 0 || !endsBefore86(code[:i]) {
		return false
	}
	c := code[i:]
	if begins86(c) {
		return true
	}
	if at%startAlign != 0 || len(c) < 2 {
		return false
	}
	switch c[0] {
	case 0x51, 0x53, 0x55, 0x56, 0x57, 0x6a, 0x68: // push
		return true
	case 0x83, 0x81: // sub esp
		return c[1] == 0xec
	case 0x8b: // mov edi, edi or an argument
		return c[1] == 0xff || c[1]&0xc7 == 0x44
	case 0xa1, 0xb8: // mov eax
		return true
	}
	return code[i-1] == 0xcc
}

// endsBefore86 reports whether code that ends here does not run on: filling
// (int3, nop) or a return.
func endsBefore86(code []byte) bool {
	n := len(code)
	switch code[n-1] {
	case 0xcc, 0x90, 0xc3:
		return true
	}
	return n >= 3 && code[n-3] == 0xc2 && code[n-1] == 0
}

// called86 says how a return address fits the function that it was called from
// there: whether the call before it is to that function.
type called86 uint8

const (
	calledUnknown called86 = iota // an indirect call, or the function is not known
	calledThis                    // a call to this function
	calledOther                   // a call to another one
)

// callTarget86 returns the function that the call before a return address is
// to, 0 when that call is indirect.
func (w *Walker) callTarget86(ret uint64) uint64 {
	b := w.x86.call[:]
	if ret < 5 || w.readCode(b, w.site(ret-1), ret-5) < 5 || b[0] != 0xe8 {
		return 0
	}
	return (ret + uint64(int64(int32(le32(b[1:]))))) & highestUser32
}

// called86 compares the target of a call, as callTarget86 returns it, with a
// function's start.
func (w *Walker) called86(target, start uint64) called86 {
	switch {
	case target == 0:
		return calledUnknown
	case target == start || w.thunk86(target) == start:
		return calledThis
	}
	return calledOther
}

// stepSimulated unwinds a function that keeps no frame in ebp where it stands.
// The return address must be behind a call to the start that the code was run
// from; behind an indirect call, the start must be an export.
func (w *Walker) stepSimulated(f *Frame, opt *Options) (guess, bool) {
	for _, r := range w.runs86(f.IP) {
		states := []stack86{r.at}
		if !f.exact() && r.hasCall {
			states = append(states, r.call)
		}
		for _, st := range states {
			entry, ok := w.entry86(st, f)
			if !ok || st.ebp == ebpFrame && st.frame == 4 && st.saved == 4 {
				continue // what the chain follows
			}
			if g, ok := w.returnFrom86(r, st, entry, f, opt); ok {
				return g, true
			}
		}
	}
	return guess{}, false
}

// entry86 is where the return address lies.
func (w *Walker) entry86(st stack86, f *Frame) (uint64, bool) {
	switch {
	case st.ebp == ebpFrame && f.HasFP:
		return f.FP + uint64(st.frame), true
	case !st.unknown:
		return f.SP + uint64(st.depth), true
	}
	return 0, false
}

func (w *Walker) returnFrom86(r sim86, st stack86, entry uint64, f *Frame, opt *Options) (guess, bool) {
	ip, ok := w.word(entry)
	if !ok || entry < f.SP || !opt.holds(entry, 4) || w.returnAddress86(ip, opt) != proofYes {
		return guess{}, false
	}
	called := w.called86(w.callTarget86(ip), r.start)
	if called != calledThis && !(called == calledUnknown && r.certain) {
		return guess{}, false
	}
	g := guess{ip: ip, at: entry, sp: entry + 4, trust: TrustFramePointer, method: MethodFPO}
	g.detail = fmt.Sprintf("by running the function's code from %#x to here", r.start)
	if called == calledThis {
		g.detail += "; the return address is behind a call to it"
	} else {
		g.detail += "; the return address is behind an indirect call"
	}
	switch {
	case st.saved != 0:
		g.fpAt = entry - uint64(st.saved)
		g.fp, g.hasFP = w.word(g.fpAt)
	case st.ebp == ebpCaller:
		g.fp, g.hasFP = f.FP, f.HasFP
	}
	return g, true
}
