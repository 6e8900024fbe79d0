package triage

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// View is one dump's address space, for what asks for more of it than stacks.
// Its methods work on a nil View, which knows nothing. It is used by one
// goroutine.
type View struct {
	Memory  dump.Memory // nil when there is none
	Regions []dump.Region
	Modules []*Module // ascending

	space  *space
	walker *walker
}

// NewView makes a view of memory with what is known of it, for incidents that
// come from no dump. Regions are sorted by address; any argument may be nil.
func NewView(mem dump.Memory, regions []dump.Region, modules []*Module) *View {
	regions = slices.Clone(regions)
	sortRegions(regions)
	return &View{Memory: mem, Regions: regions, Modules: modules}
}

func viewOf(w *walker) *View {
	if w == nil {
		return nil
	}
	if w.view == nil {
		w.view = &View{Memory: w.space.mem, Regions: w.space.regions, Modules: w.space.mods, space: w.space, walker: w}
	}
	return w.view
}

// View is the address space that the half was walked in: in a full kernel dump, of a
// user half that of its thread's process. Nil for a half that no walk made.
func (h *Half) View() *View { return viewOf(h.walkedBy.walker) }

// ReadAt implements dump.Memory.
func (v *View) ReadAt(p []byte, va uint64) (int, error) {
	if v == nil || v.Memory == nil {
		return 0, dump.Errorf(dump.OutOfRange, "memory", "the dump holds no memory")
	}
	return v.Memory.ReadAt(p, va)
}

// Code reads what does not change in an image, code and constants: from memory,
// else from the image file. It returns how many bytes there were.
func (v *View) Code(p []byte, va uint64) int {
	n, _ := v.ReadAt(p, va)
	if n == len(p) || v == nil || v.space == nil {
		return n
	}
	// Small dumps hold a few bytes around an instruction: the image may have more.
	im, base := v.space.Image(va)
	if im == nil {
		return n
	}
	if in, _ := im.ReadRVA(p[n:], uint32(va-base)+uint32(n)); in > 0 {
		n += in
	}
	return n
}

// FunctionStart returns where the function that holds va begins, by its
// module's unwind table; ok is false when nothing proves it.
func (v *View) FunctionStart(va uint64) (start uint64, ok bool) {
	if v == nil || v.space == nil {
		return 0, false
	}
	im, base := v.space.Image(va)
	if im == nil {
		return 0, false
	}
	rva, ok := im.FunctionStart(uint32(va - base))
	return base + uint64(rva), ok
}

// Module returns the loaded module that holds va, or nil.
func (v *View) Module(va uint64) *Module {
	switch {
	case v == nil:
		return nil
	case v.space != nil:
		return v.space.find(va)
	}
	for _, m := range v.Modules {
		if m.Contains(va) {
			return m
		}
	}
	return nil
}

// Region returns what the dump says of the memory at va, or nil.
func (v *View) Region(va uint64) *dump.Region {
	if v == nil {
		return nil
	}
	return regionAt(v.Regions, va)
}

// Executable reports whether va can hold code, and whether that is known.
func (v *View) Executable(va uint64) (executable, known bool) {
	switch {
	case v == nil:
		return false, false
	case v.space != nil:
		return v.space.Executable(va)
	}
	if r := v.Region(va); r != nil {
		return r.Executable(), true
	}
	return false, false
}

// Name names an address as that of an instruction.
func (v *View) Name(va uint64) Frame {
	f := unwind.Frame{IP: va, Lookup: va}
	if v != nil && v.walker != nil {
		return v.walker.look(f)
	}
	return Frame{Frame: f, Module: v.Module(va), Name: symbols.Name{Source: symbols.SourceNone}}
}

// ImageName names a frame by its module's image alone, as if there were no debug
// information.
func (v *View) ImageName(f *Frame) symbols.Name {
	if v == nil || v.space == nil || f.Module == nil {
		return symbols.Name{Source: symbols.SourceNone}
	}
	im, base := v.space.Image(f.Lookup)
	if im == nil || f.Lookup < base || f.Lookup-base > 0xffffffff {
		return symbols.Name{Source: symbols.SourceNone}
	}
	return symbols.NameOf(im, uint32(f.Lookup-base), uint32(f.IP-base))
}

// Glance is Name and Executable without a search for files: a register may point
// into any module, and an image or symbols that no stack needed may lie on a
// server. known is false where only a search could tell.
func (v *View) Glance(va uint64) (f Frame, executable, known bool) {
	m := v.Module(va)
	if v == nil || v.space == nil || m == nil || m.UsedInStack {
		executable, known = v.Executable(va)
		return v.Name(va), executable, known
	}
	if r := v.Region(va); r != nil {
		executable, known = r.Executable(), true
	}
	return Frame{Frame: unwind.Frame{IP: va, Lookup: va}, Module: m, Name: symbols.Name{Source: symbols.SourceNone}}, executable, known
}

func sortRegions(rs []dump.Region) {
	slices.SortStableFunc(rs, func(a, b dump.Region) int { return cmp.Compare(a.Base, b.Base) })
}

// regionAt finds the region of rs, sorted, that holds va.
func regionAt(rs []dump.Region, va uint64) *dump.Region {
	i := sort.Search(len(rs), func(i int) bool { return rs[i].Base > va })
	if i == 0 || va-rs[i-1].Base >= rs[i-1].Size {
		return nil
	}
	return &rs[i-1]
}

// MissingImages are the modules of frames whose images were not found, once each.
func MissingImages(frames []Frame) []*Module {
	var out []*Module
	for i := range frames {
		if m := frames[i].Module; m != nil && m.Image == symbols.ImageMissing && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
