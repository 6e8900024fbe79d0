package oracle

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

const (
	entrySPARM64  = entrySP &^ 15
	armSignature  = uint64(0x2a) << 48 // what signing adds to lr here, below the bit that tells the halves apart
	firstKeptARM  = 19
	lastKeptARM   = 28
	armTEB        = 18
	probeSize     = 15 // register in which __chkstk takes the size, and keeps it
	maxHelperSize = 16 // instructions of a helper that changes sp
)

// armRun is one execution of an ARM64 function.
type armRun struct {
	*Oracle
	regs    *[33]uint64 // x0 to x30, sp, pc
	entry   [33]uint64
	homes          // of the preserved registers and lr
	begin   uint32 // of the entry that the run is in, 0 in none
	strayed bool   // from the function that it began in
	arrival arrival
	index   struct { // of the last comparison with an immediate
		reg   int
		limit uint64
		ok    bool
	}
	scope armScope
}

// runARM64 executes the function once.
func (o *Oracle) runARM64(rf pdata.RuntimeFunction, steps int) {
	r := &armRun{Oracle: o, regs: o.m.arm64(), begin: rf.Begin}
	r.enter(rf)
	for range steps {
		if !r.boundary() || !r.advance() {
			return
		}
	}
}

// enter makes the random state that the function is called in.
func (r *armRun) enter(rf pdata.RuntimeFunction) {
	r.cleanStack()
	r.m.reset(dataBase)
	r.fillData()
	for i := range r.regs {
		// Not canonical, so that neither code nor data is ever found there.
		r.regs[i] = r.rng.Uint64()&0xffff_ffff_ffff | 0x00a0<<48
	}
	r.randomVolatile()
	r.regs[armTEB] = dataBase
	r.regs[armSP], r.regs[armPC], r.regs[armLR] = entrySPARM64, r.im.base+uint64(rf.Begin), returnTo
	r.entry = *r.regs
	r.homes = homes{returnTo: nil, returnTo | armSignature: nil, r.entry[armFP]: nil}
	for _, v := range r.entry[firstKeptARM : lastKeptARM+1] {
		r.homes[v] = nil
	}
	r.m.load()
}

// randomVolatile gives the registers that carry arguments pointers.
func (r *armRun) randomVolatile() {
	for i := range armTEB {
		r.regs[i] = r.pointer()
	}
}

// boundary checks the instruction boundary that the run is at. It returns false
// when the run has come to its end.
func (r *armRun) boundary() bool {
	pc := r.regs[armPC]
	if pc == returnTo {
		r.returned()
		return false
	}
	if pc-r.im.base >= uint64(r.im.size) || !r.onStack() {
		return false
	}
	rva := uint32(pc - r.im.base)
	fn, covered, err := r.im.pe.LookupARM64(rva)
	if err != nil || !r.im.pe.Executable(rva) || !r.follow(fn, covered) {
		return false
	}
	if covered && !r.strayed {
		r.visited[rva] = true
	}
	v := r.unwind(pc, pc)
	r.res.Checks.count(v)
	r.count(fn, covered, rva)
	if v.wrong != "" && v.lost {
		return false
	}
	r.fail(v, rva, false)
	return true
}

// onStack reports whether sp is on the stack, with room around it.
func (r *armRun) onStack() bool {
	sp := r.regs[armSP]
	return sp >= stackBase+0x10000 && sp < stackBase+stackSize-0x1000
}

// follow decides whether the run goes on where it has come to.
func (r *armRun) follow(fn pdata.ARM64Function, covered bool) bool {
	fresh := r.regs[armSP] == entrySPARM64 && r.regs[armLR] == returnTo // as at the entry: a tail call
	switch {
	case !covered && r.begin == 0:
		return fresh
	case covered && fn.Begin == r.begin:
		return r.arrival != byIndirect || r.beginsBlock()
	case covered && r.im.parts[fn.Begin]:
		r.begin = fn.Begin // a part may lie in the way
		return r.arrival != byIndirect || r.beginsBlock()
	case r.arrival != byJump && r.arrival != byIndirect, r.arrival == byIndirect && !fresh:
		return false // past a call that does not return, or a jump table read beyond its end
	case !covered:
		r.begin, r.strayed = 0, true
		return fresh
	}
	r.begin, r.strayed = fn.Begin, r.strayed || fresh
	return true
}

// beginsBlock reports whether the code at pc begins a block. An index beyond the
// end of a jump table, which a program never has, can lead anywhere.
func (r *armRun) beginsBlock() bool {
	return decodeARM64(r.code(uint32(r.regs[armPC] - 4 - r.im.base))).leaves()
}

// returned checks the emulation itself, as run.returned does.
func (r *armRun) returned() {
	if r.regs[armSP] != entrySPARM64 || r.regs[armFP] != r.entry[armFP] {
		return
	}
	for i := firstKeptARM; i <= lastKeptARM; i++ {
		if r.regs[i] != r.entry[i] {
			return
		}
	}
	r.res.Returned++
}

// unwind unwinds one frame from the state the processor is in.
func (r *armRun) unwind(pc, lookup uint64) verdict {
	regs := dump.Registers{Arch: dump.ARM64}
	for i, v := range r.regs {
		regs.Set(dump.Reg(i), v)
	}
	regs.SetPC(pc)
	f := unwind.Frame{IP: pc, Lookup: lookup, SP: r.regs[armSP], FP: r.regs[armFP], HasFP: true, Trust: unwind.TrustContext, Method: unwind.MethodContext}
	if pc != lookup {
		regs.ForgetVolatile()
		f.Trust, f.Method = unwind.TrustCFI, unwind.MethodPdata
	}
	r.w.DiscardMemory()
	stop, ok := r.w.Step(&regs, &f, &unwind.Options{StackLimit: stackBase, StackBase: stackBase + stackSize})
	return r.compare(&regs, &f, stop, ok)
}

// compare judges the caller that one step gave.
func (r *armRun) compare(regs *dump.Registers, f *unwind.Frame, stop unwind.Stop, ok bool) verdict {
	v := verdict{method: f.Method, detail: f.Detail}
	if !ok {
		v.wrong, v.marked = fmt.Sprintf("no caller: %s: %s", stop.Reason, stop.Detail), true
	} else {
		v.marked = f.Trust != unwind.TrustCFI
		v.wrong, v.lost = r.diff(regs, f)
		if v.wrong == "" && v.marked {
			v.right, v.wrong = true, "right, but by a guess: "+f.Detail
		}
	}
	if v.wrong != "" && (r.overwritten(returnTo) || r.overwritten(returnTo|armSignature)) {
		v.lost = true
	}
	return v
}

// overwritten reports whether the return address was saved and is neither in lr
// nor in any place that it was saved to any more.
func (r *armRun) overwritten(v uint64) bool { return r.regs[armLR] != v && r.destroyed(r.p, v) }

func (r *armRun) diff(regs *dump.Registers, f *unwind.Frame) (wrong string, lost bool) {
	switch {
	case f.IP != returnTo:
		return fmt.Sprintf("pc %#x", f.IP), false
	case f.SP != entrySPARM64:
		return fmt.Sprintf("sp off by %d", int64(f.SP-entrySPARM64)), false
	}
	for reg := dump.Reg(firstKeptARM); reg <= armFP; reg++ {
		want := r.entry[reg]
		if v, known := regs.Get(reg); !known || v != want {
			return fmt.Sprintf("%s %#x (known %t)", dump.ARM64.RegName(reg), v, known), r.destroyed(r.p, want)
		}
	}
	if v, known := regs.Get(armLR); known { // the call that entered the function overwrote the caller's
		return fmt.Sprintf("lr %#x, which nobody can know", v), false
	}
	return "", false
}

// armScope is where one function's prolog and epilogs are, for the statistics.
type armScope struct {
	begin   uint32
	ok      bool
	prolog  uint32 // bytes
	epilogs [][2]uint32
}

// count counts what kind of place was checked.
func (r *armRun) count(fn pdata.ARM64Function, covered bool, rva uint32) {
	if !covered {
		r.res.Leaves++
		return
	}
	if !r.scope.ok || r.scope.begin != fn.Begin {
		r.scope = r.im.scopeARM64(fn)
	}
	at := rva - fn.Begin
	if at < r.scope.prolog {
		r.res.Prologs++
		return
	}
	for _, e := range r.scope.epilogs {
		if at >= e[0] && at < e[1] {
			r.res.Epilogs++
			return
		}
	}
}

func (im *image) scopeARM64(fn pdata.ARM64Function) armScope {
	s := armScope{begin: fn.Begin, ok: true}
	info, err := im.pe.ARM64Info(fn)
	if err != nil {
		return s
	}
	codes, _ := info.Prolog(nil)
	s.prolog = 4 * uint32(len(codes))
	if info.Packed && !info.Fragment {
		s.epilogs = [][2]uint32{{fn.Length - min(s.prolog+4, fn.Length), fn.Length}}
	}
	for _, e := range info.Epilogs {
		codes, _ = info.Codes(codes[:0], e.Index)
		s.epilogs = append(s.epilogs, [2]uint32{e.Start, e.Start + 4*uint32(len(codes)+1)})
	}
	return s
}
