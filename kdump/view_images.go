package kdump

import (
	"cmp"
	"slices"

	"dumptriage/dump"
)

// Modules implements dump.Source: the process's own modules, those of its 64-bit
// and its 32-bit half, as its loader lists them, then images that it mapped and the
// lists lack. The lists lie in the process's memory, which dumps of kernel memory
// leave out and which may be paged out; what it mapped stands in the kernel's. The
// kernel's own modules are those of the File.
func (v *View) Modules() []dump.Module {
	v.modulesOnce.Do(func() {
		if v.full == nil {
			return
		}
		v.modules = v.userModules(&v.process)
		v.addMapped()
	})
	return v.modules
}

// addMapped adds the images among the process's VADs that are in no list.
func (v *View) addMapped() {
	t := v.vadTree()
	if t == nil || t.form == nil || v.process.PEB == 0 {
		return
	}
	listed := map[uint64]bool{}
	for i := range v.modules {
		listed[v.modules[i].Base] = true
	}
	before := len(v.modules)
	t.walk(func(d *vad) bool { // what is wrong with the tree is said where it is listed
		base := d.first << pageShift
		if d.kind == vadImage && !listed[base] && v.holdsImage(d) && v.spend(moduleSteps) {
			t.finish(d)
			m := dump.Module{Base: base, Size: (d.last - d.first + 1) << pageShift, Path: t.file(d), Mapped: true}
			if !d.private && m.Path != "" {
				v.keepFileName(t.fileObject(d))
				v.identify(v.space, &m)
				v.modules = append(v.modules, m)
			}
		}
		return len(v.modules)-before < maxLoaded
	})
	slices.SortStableFunc(v.modules, func(a, b dump.Module) int { return cmp.Compare(a.Base, b.Base) })
}

// holdsImage reports whether a descriptor's pages are user memory, and no more than an
// image has: a damaged one must not take in what lies in others.
func (v *View) holdsImage(d *vad) bool {
	const mostPages = 1 << (32 - pageShift) // SizeOfImage has 32 bits
	top := uint64(0xff00_0000_0000_0000)
	if v.hdr.ptr == 4 {
		top = 0xc000_0000 // with /3GB
	}
	return d.last < top>>pageShift && d.last-d.first < mostPages
}

// vadTree returns the tree of the process's VADs, nil when the dump holds none.
func (v *View) vadTree() *vadTree {
	if v.space == nil {
		return nil
	}
	v.File.Processes() // names of devices take them
	return v.space.vads.Load()
}

// keepFileName tells that the name of a FILE_OBJECT was used.
func (v *View) keepFileName(object uint64) {
	if v.watched != nil {
		at := v.irpLayout().fileName
		v.keepPath(v.mem, v.hdr.ptr, object+uint64(at), v.unicodeAt(object, at))
	}
}
