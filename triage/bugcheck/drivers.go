package bugcheck

import (
	"dumptriage/internal/cursor"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// DriverOnStack is a driver whose addresses are on the stack of the bugcheck.
type DriverOnStack struct {
	Module  *triage.Module
	Address uint64 // the innermost
	Frames  int    // that the walk found, 0 when only the search of the stack did
	First   int    // index of the first of them in the thread's kernel half, -1
	Scanned bool   // none of its frames was found by unwinding
	// AfterCall, where only the search found it, tells whether a call stands before
	// the address.
	AfterCall CallState
	Framework bool // it carries other drivers' work
}

// CallState tells whether a call stands before an address.
type CallState uint8

// The states, the most convincing last.
const (
	NoCall    CallState = iota // the bytes are none
	NotKnown                   // there are no bytes
	CallFound                  // the address is one to return to
)

// maxDrivers bounds the list; a stack has rarely more than ten.
const maxDrivers = 32

// drivers lists the drivers on the stack: those of frames, then those whose
// addresses merely lie on it.
func (j *judge) drivers() {
	frames, first := j.faultFrames()
	for i := range frames {
		f := &frames[i]
		if j.roleOf(f) == roleKernel {
			continue
		}
		d := j.driver(f.Module)
		if d == nil {
			continue
		}
		if d.Frames == 0 {
			d.Address, d.First, d.Scanned = f.IP, first+i, true
		}
		d.Frames++
		d.Scanned = d.Scanned && scanned(f)
	}
	j.searchStack()
}

// driver returns the entry of a module, made when it is not there; nil when the
// list is full.
func (j *judge) driver(m *triage.Module) *DriverOnStack {
	for i := range j.v.Drivers {
		if j.v.Drivers[i].Module == m {
			return &j.v.Drivers[i]
		}
	}
	if len(j.v.Drivers) == maxDrivers {
		return nil
	}
	j.v.Drivers = append(j.v.Drivers, DriverOnStack{Module: m, First: -1, Framework: j.rules.role(rules.Module(m.Name()), "") == roleFramework})
	return &j.v.Drivers[len(j.v.Drivers)-1]
}

// maxStack bounds the search: kernel stacks have 12 to 24 KB, expanded ones more.
const maxStack = 0x20000

// searchStack looks at every word of the thread's stack above the first frame.
func (j *judge) searchStack() {
	if len(j.frames) == 0 || j.inc.Crashing < 0 {
		return
	}
	k := j.inc.Threads[j.inc.Crashing].KernelInfo
	sp := j.frames[0].SP
	if k == nil || sp < k.StackLimit || sp >= k.StackBase {
		return
	}
	ptr := j.inc.System.Arch.PointerSize()
	sp = (sp + uint64(ptr) - 1) &^ uint64(ptr-1)
	b := j.read(sp, int(min(k.StackBase-sp, maxStack)))
	c := cursor.New(b, "stack", -1)
	for range len(b) / ptr {
		va := c.Pointer(ptr)
		m := j.view.Module(va)
		if m == nil || j.rules.role(rules.Module(m.Name()), "") == roleKernel {
			continue
		}
		if _, executable, known := j.view.Glance(va); known && !executable {
			continue
		}
		if d := j.driver(m); d != nil && d.Frames == 0 {
			if call := j.afterCall(m, va); d.Address == 0 || call > d.AfterCall {
				d.Address, d.Scanned, d.AfterCall = va, true, call
			}
		}
	}
}

// afterCall tells whether the bytes before va are a call. No image is looked for
// that no stack needed.
func (j *judge) afterCall(m *triage.Module, va uint64) CallState {
	const most = 7 // of a call through memory: FF /2 with a SIB byte and a 32-bit displacement
	b := j.read(va-most, most)
	if len(b) < most && m.UsedInStack {
		b = make([]byte, most)
		b = b[:j.view.Code(b, va-most)]
	}
	if len(b) < most {
		return NotKnown
	}
	if b[most-5] == 0xe8 {
		return CallFound
	}
	for n := 2; n <= most; n++ {
		if b[most-n] == 0xff && b[most-n+1]>>3&7 == 2 {
			return CallFound
		}
	}
	return NoCall
}
