package triage

import (
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// A scan finds return addresses of calls that are over as well as of those that
// are not, and unwinding goes on from either. What is over meets what is not at
// a return address that a later call has written: there the code called something
// else than the frame above. So frames behind a scan are held against the calls
// that must have been made, from the stack's begin, where nothing is ever over.

// Proof says what speaks for a frame that has a scan on the way to it. Its text
// is part of the JSON contract.
type Proof uint8

// The proofs.
const (
	ProofNotNeeded Proof = iota // no scan on the way: Trust says it all
	Proven                      // unwinding leads on to the thread's begin, and every direct call on the way went where it had to
	Unproven                    // nothing shows that it is on the stack
	Refuted                     // it is not: what follows called something else
)

// String returns the contract's name, "" for a frame that needs no proof.
func (p Proof) String() string {
	return [...]string{"", "proven", "unproven", "refuted"}[min(p, Refuted)]
}

// Certain reports whether a frame was found by more than a guess, and everything
// on the way to it too, or is proven.
func (f *Frame) Certain() bool {
	switch f.Trust {
	case unwind.TrustContext, unwind.TrustCFI, unwind.TrustInline, unwind.TrustFramePointer:
		return f.Proof == ProofNotNeeded || f.Proof == Proven
	}
	return false
}

// called says where the call before a frame's return address went.
type called uint8

const (
	calledUnknown called = iota // through a pointer, or its code is not at hand
	calledAbove                 // to the function of the frame above
	calledOther                 // elsewhere
)

// code is what proving asks of a space.
type code interface {
	ReadAt(p []byte, va uint64) (int, error)
	Image(va uint64) (*pdata.Image, uint64)
}

// prover judges the frames of one half.
type prover struct {
	frames []Frame
	arch   dump.Arch
	code   code
	opt    unwind.Options
	stop   unwind.Stop
	start  uint64 // of the thread's function, 0 unknown
	calls  []called
}

// prove marks the frames that have a scan on the way to them.
func (p *prover) prove() {
	first := slices.IndexFunc(p.frames, func(f Frame) bool { return scanned(&f) })
	if first < 0 {
		return
	}
	p.calls = make([]called, len(p.frames))
	for i := max(first, 1); i < len(p.frames); i++ {
		p.calls[i] = p.call(i)
	}
	for from := first; from < len(p.frames); {
		end := from + 1
		for end < len(p.frames) && (!scanned(&p.frames[end]) || p.calls[end] == calledAbove) {
			end++
		}
		p.judge(from, end)
		from = end
	}
}

// scanned reports whether a frame was found by a search alone.
func scanned(f *Frame) bool { return f.Trust == unwind.TrustScan || f.Trust == unwind.TrustNone }

// judge judges frames from to end, each of which follows from the one before.
func (p *prover) judge(from, end int) {
	if from > 0 && p.calls[from] == calledAbove && p.frames[from-1].Certain() {
		p.mark(from, end, Proven) // the scan found the call of a function that is on the stack
		return
	}
	live, last := end, end-1
	if i := p.settled(from, end); i < end {
		live = i
	}
	anchor := p.anchor(from, end)
	if anchor >= 0 {
		live, last = from, anchor
	}
	cut := from // frames before it are over
	for i := from + 1; i <= last; i++ {
		if p.calls[i] == calledOther {
			cut = i
		}
	}
	live = max(live, cut)
	p.mark(from, cut, Refuted)
	p.mark(cut, live, Unproven)
	p.mark(live, end, Proven)
	if live == from && from+1 == end {
		p.frames[from].Proof = Unproven // nothing follows from a word on the stack alone
	}
}

func (p *prover) mark(from, end int, as Proof) {
	for i := from; i < end; i++ {
		p.frames[i].Proof = as
	}
}

// settled is the first frame of code made at run time that follows from a frame
// register that was searched for and is beyond doubt, end when there is none.
func (p *prover) settled(from, end int) int {
	for i := from + 1; i < end; i++ {
		if f := &p.frames[i-1]; p.frames[i].Trust == unwind.TrustCFI && f.Trust == unwind.TrustCFIScan && f.Method != unwind.MethodPdata {
			return i
		}
	}
	return end
}

// beginReach is how far from a stack's base its first frame lies at most.
const beginReach = 0x1000

// anchor is the outermost frame of a run that is on the stack for certain, since
// it is where the thread began; -1 when none is.
func (p *prover) anchor(from, end int) int {
	last := end - 1
	if end == len(p.frames) && p.ends() {
		return last
	}
	for i := last; i >= from; i-- {
		if !p.opt.Kernel && (p.begins(&p.frames[i]) || p.threadBegin(i)) {
			return i
		}
	}
	return -1
}

// ends reports whether the walk came to the stack's begin.
func (p *prover) ends() bool {
	switch p.stop.Reason {
	case unwind.StopTrapFrame:
		return true
	case unwind.StopEndOfStack:
		return p.opt.StackBase == 0 || p.opt.StackBase-p.frames[len(p.frames)-1].SP <= beginReach
	}
	return false
}

// begins reports whether a frame is of the function that the program or the
// thread begins with.
func (p *prover) begins(f *Frame) bool {
	im, base := p.code.Image(f.Lookup)
	if im == nil || f.Module == nil || f.Module.Module == nil {
		return false
	}
	starts := p.starts(f)
	entry, ok := im.ProgramEntry()
	return ok && slices.Contains(starts, base+uint64(entry)) || p.start != 0 && slices.Contains(starts, p.start)
}

// threadBegin reports whether frame i is kernel32's that every thread begins in:
// what the outermost function outside ntdll returns to, when that is kernel32.
func (p *prover) threadBegin(i int) bool {
	if i == 0 || scanned(&p.frames[i]) || !inModule(&p.frames[i], "kernel32") || inModule(&p.frames[i-1], "kernel32") {
		return false
	}
	for k := i + 1; k < len(p.frames); k++ {
		if !inModule(&p.frames[k], "ntdll") {
			return false
		}
	}
	return true
}

func inModule(f *Frame, name string) bool {
	return f.Module != nil && f.Module.Module != nil && strings.EqualFold(f.Module.Name(), name+".dll")
}

// call finds out where the call before frame i's return address went.
func (p *prover) call(i int) called {
	f, above := &p.frames[i], &p.frames[i-1]
	if f.Lookup == f.IP {
		return calledUnknown // stopped at any instruction
	}
	target, imported := p.target(f.IP)
	sure := above.Module != nil && f.Module != nil
	switch {
	case imported && sure && above.Module == f.Module:
		return calledOther // the loader binds no slot to its own image
	case imported || target == 0:
		return calledUnknown
	}
	starts := p.starts(above)
	switch {
	case slices.Contains(starts, target):
		return calledAbove
	case len(starts) == 0 || !sure || !p.startKnown(above):
		return calledUnknown
	}
	return calledOther
}

// starts are where a frame's function may begin: by its name, by the unwind table.
func (p *prover) starts(f *Frame) []uint64 {
	var out []uint64
	if f.Name.Function != "" && f.Name.Offset <= f.IP {
		out = append(out, f.IP-f.Name.Offset)
	}
	if im, base := p.code.Image(f.Lookup); im != nil {
		if rva, ok := im.FunctionStart(uint32(f.Lookup - base)); ok {
			out = append(out, base+uint64(rva))
		}
	}
	return out
}

// startKnown reports whether a function is sure to have no other begin than starts:
// not where the name is the nearest export's or of another build, nor in a part
// that a compiler put elsewhere. Nothing leads from a part to its function on ARM64.
func (p *prover) startKnown(f *Frame) bool {
	if f.Module.Symbols == symbols.DebugMismatch || strings.HasSuffix(f.Name.Function, ".cold") {
		return false
	}
	switch f.Name.Source {
	case symbols.SourcePDB, symbols.SourceSym, symbols.SourceDWARF:
		if !f.Name.Public {
			return true
		}
	}
	im, base := p.code.Image(f.Lookup)
	if im == nil || p.arch != dump.AMD64 {
		return false
	}
	_, ok := im.FunctionStart(uint32(f.Lookup - base))
	return ok
}

// read reads code: from the dump, else from the image.
func (p *prover) read(b []byte, va uint64) bool {
	if n, _ := p.code.ReadAt(b, va); n == len(b) {
		return true
	}
	im, base := p.code.Image(va)
	if im == nil || va < base || va-base > 0xffffffff {
		return false
	}
	n, _ := im.ReadRVA(b, uint32(va-base))
	return n == len(b)
}
