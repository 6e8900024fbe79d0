package triage

import (
	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// walker walks and names the stacks of one space.
type walker struct {
	space    *space
	unwinder *unwind.Walker
	unloaded []dump.Module
	frames   int // cap per half
	names    map[nameKey]symbols.Name
	wow64    *walker      // of the same memory's 32-bit stacks, nil until one is met
	budget   *frameBudget // of the whole analysis
	view     *View        // of the same memory, nil until one is asked for
	start    uint64       // of the thread whose user half is walked, 0 unknown
}

type nameKey struct{ lookup, ip uint64 }

func newWalker(sp *space, unloaded []dump.Module, maxFrames int, budget *frameBudget) *walker {
	sp.gone.modules = unloaded
	return &walker{space: sp, unwinder: unwind.New(sp, sp.arch), unloaded: unloaded, frames: maxFrames, names: map[nameKey]symbols.Name{}, budget: budget}
}

// walk walks one half from its registers and names its frames.
func (w *walker) walk(regs dump.Registers, opt unwind.Options) (*Half, unwind.Stack) {
	opt.MaxFrames = w.frames
	st := w.budget.walk(w.unwinder, regs, opt)
	h := &Half{Frames: make([]Frame, len(st.Frames)), Stop: st.Stop, Truncated: st.Truncated, Registers: regs, walkedBy: walkedBy{w, opt}}
	for i, f := range st.Frames {
		h.Frames[i] = w.name(f)
	}
	p := prover{frames: h.Frames, arch: w.space.arch, code: w.space, opt: opt, stop: st.Stop, start: w.start}
	p.prove()
	return h, st
}

func (w *walker) name(f unwind.Frame) Frame {
	out := w.look(f)
	if m := out.Module; m != nil {
		m.UsedInStack = true
		m.Named = m.Named || out.Name.Function != ""
	}
	return out
}

// look names an address that need not be on a stack.
func (w *walker) look(f unwind.Frame) Frame {
	out := Frame{Frame: f, Name: symbols.Name{Source: symbols.SourceNone}}
	m := w.space.find(f.Lookup)
	if m == nil {
		if w.space.managedName(&out); out.Managed != nil {
			return out
		}
		if out.Unloaded = w.unloadedAt(f.Lookup); len(out.Unloaded) > 0 {
			if name, ok := w.space.gone.name(w.space, f.Lookup, f.IP); ok {
				out.Name = name
			}
		}
		return out
	}
	out.Module = m
	key := nameKey{f.Lookup, f.IP}
	name, ok := w.names[key]
	if !ok {
		name = w.nameIn(m, uint32(f.Lookup-m.Base), uint32(f.IP-m.Base))
		w.names[key] = name
	}
	out.Name = name
	if w.space.mayBeManaged(m) {
		w.space.managedName(&out)
	}
	return out
}

// nameIn names an address of a module by the best source there is.
func (w *walker) nameIn(m *Module, lookup, ip uint32) symbols.Name {
	return symbols.NameIn(w.space.debugOf(m), w.space.imageOf(m), lookup, ip)
}

// Windows remembers the last 64 unloaded modules of a process and 50 of the
// kernel. Longer lists are not searched to their end for every frame, nor is a
// frame given more names than a reader could use.
const (
	unloadedSearched = 1024
	unloadedHits     = 16
)

// unloadedAt lists the unloaded modules that had been at an address, which
// tells a call into a freed DLL from a wild jump.
func (w *walker) unloadedAt(va uint64) []UnloadedHit {
	var hits []UnloadedHit
	for i := range min(len(w.unloaded), unloadedSearched) {
		if m := &w.unloaded[i]; m.Contains(va) {
			if hits = append(hits, UnloadedHit{m, va - m.Base}); len(hits) == unloadedHits {
				break
			}
		}
	}
	return hits
}
