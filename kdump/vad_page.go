package kdump

import (
	"dumptriage/dump"
)

// byVAD decides what a page is that the page tables leave to the descriptors of
// its process: they have no entry for it, or one that says so.
func (s *AddressSpace) byVAD(va uint64, t translation) translation {
	t.ask = false
	tree := s.vads.Load()
	if tree == nil || kernelAddress(s.form.ptr, va) {
		return t
	}
	v, known := tree.find(va >> pageShift)
	switch {
	case v == nil && known:
		t.state = PageInvalid
		return t
	case v == nil:
		if t.state == PageInvalid {
			t.state = PageUnresolved
		}
		return t
	}
	t.vad = v
	switch {
	case t.state == PageMappedFile && (v.private || v.subsection == 0): // an entry that names a prototype PTE is of no such memory
	case v.private && (v.kind == vadNormal || v.kind == vadWriteWatch):
		switch { // where all of it was committed, pages that no longer are have an entry
		case !v.committed:
			t.state = PageReserved
		case v.anyBytes:
			t.state = PageUnresolved
		default:
			t.state = PageDemandZero
		}
	case v.private || v.subsection == 0:
		t.state = PageUnresolved
	default:
		return s.bySection(va, tree, v, t)
	}
	return t
}

// bySection finds a page of a view through the prototype PTEs of its section.
func (s *AddressSpace) bySection(va uint64, tree *vadTree, v *vad, t translation) translation {
	at, state := tree.prototypePTE(v, va>>pageShift)
	if at == 0 {
		t.state = state
		return t
	}
	s.mu.Lock()
	var e *uint64
	decode := s.software64
	if tree.f.prototypeSize() == 4 {
		e, decode = s.readPrototype32(at), software32
	} else {
		e = s.readPrototype(at)
	}
	if e == nil {
		t.state = PageTableMissing
	} else {
		r := decode(*e, true)
		r.level, r.vad = t.level, v
		if t = r; t.readable() {
			t.state = PagePrototype
		}
	}
	s.mu.Unlock()
	return t
}

// prototypeSize is that of a prototype PTE: that of the machine's entries.
func (f *File) prototypeSize() uint64 {
	if x, ok := f.full.walker.(pagingX86); ok && !x.pae {
		return 4
	}
	return 8
}

// maxSubsections bounds the chain of a section: a file of 2 TB mapped in pieces of
// 512 MB.
const maxSubsections = 1 << 12

// prototypePTE returns the address of the prototype PTE of a page of a view, or
// what the page is without one.
func (t *vadTree) prototypePTE(v *vad, page uint64) (at uint64, state PageState) {
	size := t.f.prototypeSize()
	n := page - v.first
	if at := v.firstPTE + n*size; v.firstPTE != 0 && at >= v.firstPTE && at <= v.lastPTE {
		return at, PageValid
	}
	fm, sub := t.form, v.subsection
	for range maxSubsections {
		r := t.record(sub, fm.ptes+4)
		if r == nil || !t.f.spend(1) {
			return 0, PageUnresolved
		}
		base := t.f.kernelPointer(r, fm.base)
		ptes, _ := r.uint(fm.ptes, 4)
		if sub == v.subsection && base != 0 && v.firstPTE > base { // the view begins within it
			n += (v.firstPTE - base) / size
		}
		switch {
		case n < ptes && base == 0:
			return 0, PageMappedFile // nobody used this part of the file yet
		case n < ptes:
			return base + n*size, PageValid
		}
		n -= ptes
		if sub = t.f.kernelPointer(r, fm.next); sub == 0 {
			return 0, PageUnresolved
		}
	}
	return 0, PageUnresolved
}

// file returns the name of the file that a view is of, "" when it is of none.
func (t *vadTree) file(v *vad) string {
	object := t.fileObject(v)
	switch {
	case object == 0:
		return ""
	case t.f.full.listed.Load():
		return t.f.fileName(object)
	case t.f.hasType(object, fileType): // the device's name takes the processes, which are being looked for
		return t.f.unicodeAt(object, t.f.irpLayout().fileName)
	}
	return ""
}

// fileObject returns the address of its FILE_OBJECT, 0 when there is none.
func (t *vadTree) fileObject(v *vad) uint64 {
	if v.subsection == 0 {
		return 0
	}
	arch := t.f.hdr.arch
	area, err := dump.ReadPointer(t.mem, arch, v.subsection+uint64(t.form.area))
	if err != nil || !kernelAddress(t.f.hdr.ptr, area) {
		return 0
	}
	object, err := dump.ReadPointer(t.mem, arch, area+uint64(t.form.filePointer))
	if err != nil {
		return 0
	}
	return object &^ uint64(t.form.fileMask)
}
