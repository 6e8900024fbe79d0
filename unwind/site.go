package unwind

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// A walker remembers at most 1<<siteBits sites. It begins with few: a full dump has a
// walker for each process, and most of them walk one stack or two.
const (
	firstSiteBits = 6
	siteBits      = 10
	siteGrowth    = 2 // bits
)

const (
	codeBytes = 64 // longest epilog looked at
	headers   = 0x1000
)

// siteKind says which rule serves a code address.
type siteKind uint8

const (
	siteUnresolved siteKind = iota
	siteOutside             // in no module
	siteNoImage             // in a module of which no image is at hand
	siteNoTable             // in an image whose function table is absent or unreadable
	siteNotCode             // in an image, outside its executable sections
	siteLeaf                // in code that no entry of the table covers
	sitePdata               // covered, and its unwind data compiled
	siteBad                 // covered, but its unwind data makes no sense
	siteOther               // code of the other machine in an image of two
)

// site is what is known of one code address. It is filled step by step, as
// most addresses are only ever asked whether they are code.
type site struct {
	addr      uint64
	valid     bool
	exec      bool
	arch      dump.Arch // of the code
	disputed  bool      // arch had to be chosen
	execKnown bool
	kind      siteKind
	call      proof
	method    Method // to record for what its unwind data finds
	dynamic   bool   // in a function of code made at run time
	coarse    bool   // by an entry for a whole range of functions
	entry     Dispatcher
	remark    string // what is known of code made at run time without an entry
	image     Table
	base      uint64
	module    *dump.Module // nil when in no module, or when image is set
	rf        pdata.RuntimeFunction
	err       error
	rule      rule
	arm64     []pdata.ARM64Code // what rule is on ARM64
}

// site returns what is known of a code address. The pointer is good until the
// next call.
func (w *Walker) site(addr uint64) *site {
	s := w.slot(addr)
	if s.valid && s.addr == addr {
		return s
	}
	if s.valid && len(w.sites) < 1<<siteBits {
		if w.displaced++; w.displaced > len(w.sites)/4 {
			w.growSites()
			s = w.slot(addr)
		}
	}
	w.locate(s, addr)
	return s
}

func (w *Walker) slot(addr uint64) *site {
	return &w.sites[addr*0x9e3779b97f4a7c15>>(w.siteShift&63)]
}

// growSites makes room for more sites and keeps those that there are.
func (w *Walker) growSites() {
	old := w.sites
	w.sites, w.displaced = make([]site, len(old)<<siteGrowth), 0
	w.siteShift -= siteGrowth
	for i := range old {
		if old[i].valid {
			*w.slot(old[i].addr) = old[i]
		}
	}
}

func (w *Walker) locate(s *site, addr uint64) {
	*s = site{addr: addr, valid: true, arch: w.arch, method: MethodPdata, rule: rule{ops: s.rule.ops[:0]}, arm64: s.arm64[:0]}
	if s.image, s.base = w.find(addr); s.image != nil && (addr < s.base || addr-s.base > 0xffffffff) {
		s.image = nil
	}
	if s.image != nil {
		s.exec, s.execKnown = s.image.Executable(uint32(addr-s.base)), true
		s.arch, s.disputed = w.codeArch(s.image, uint32(addr-s.base))
		return
	}
	s.module, _ = w.space.Module(addr)
	s.exec, s.execKnown = w.space.Executable(addr)
	if s.module == nil && w.dynamic != nil {
		w.locateDynamic(s)
	}
}

// maxFunction is more than any function's size: an entry that spans more stands
// for a range of functions that all begin with push rbp; mov rbp, rsp.
const maxFunction = 16 << 20

// locateDynamic looks for a function of code made at run time. Being in the
// range of a table makes an address code.
func (w *Walker) locateDynamic(s *site) {
	t, base, method := w.dynamic.DynamicTable(s.addr)
	if t == nil || s.addr < base || s.addr-base > 0xffffffff {
		return
	}
	rf, ok, err := t.Lookup(uint32(s.addr - base))
	switch {
	case ok && err == nil:
		s.image, s.base, s.method, s.dynamic = t, base, method, true
		s.exec, s.execKnown = true, true
		s.coarse = rf.End-rf.Begin > maxFunction
	case !s.execKnown && t.Executable(uint32(s.addr-base)):
		s.exec, s.execKnown = true, true
		fallthrough
	default:
		if r, ok := t.(Remarker); ok {
			s.remark = r.Remark()
		}
	}
}

// resolve finds out which rule serves the site.
func (w *Walker) resolve(s *site) {
	switch {
	case s.kind != siteUnresolved:
	case s.image == nil && s.module == nil:
		s.kind = siteOutside
	case s.image == nil:
		s.kind = siteNoImage
	case !s.exec:
		s.kind = siteNotCode
	case !s.image.HasFunctionTable():
		s.kind = siteNoTable
		if w.otherCode(s) {
			s.kind = siteOther
		}
	default:
		w.resolveTable(s)
	}
}

func (w *Walker) resolveTable(s *site) {
	rf, ok, err := s.image.Lookup(uint32(s.addr - s.base))
	switch {
	case err != nil:
		s.kind, s.err = siteNoTable, err
	case !ok && w.otherCode(s):
		s.kind = siteOther
	case !ok:
		s.kind = siteLeaf
	default:
		s.rf = rf
		s.err = s.rule.compile(s.image, rf, uint32(s.addr-s.base))
		switch {
		case s.err == nil:
			s.kind = sitePdata
			if w.dispatchers != nil {
				s.entry = w.dispatchers.Dispatcher(s.addr)
			}
		case s.coarse && notInDump(s.err):
			s.presume()
		default:
			s.kind = siteBad
		}
	}
}

// notCode reports that an address is known not to hold code.
func (s *site) notCode() bool { return s.execKnown && !s.exec }

// inModule reports whether the site lies in a loaded module.
func (s *site) inModule() bool { return s.image != nil || s.module != nil }

// inHeaders reports whether the site lies in the headers of a module of which
// no image says what is code.
func (s *site) inHeaders() bool {
	return s.module != nil && s.addr-s.module.Base < headers
}

// beginsFunction reports whether va, the address after the site, is known to be
// a function's first instruction. On a stack that is a pointer to the function
// far more often than the return address of a call that never returns.
func (s *site) beginsFunction(va uint64) bool {
	if s.image == nil || !s.image.HasFunctionTable() {
		return false
	}
	rf, ok, err := s.image.Lookup(uint32(va - s.base))
	return ok && err == nil && uint64(rf.Begin) == va-s.base && s.image.Primary(rf).Begin == rf.Begin
}

// partial is a Table of an image that may not be there whole.
type partial interface {
	LacksFunctionTable() bool
}

// lack says why no unwind data serves the site.
func (w *Walker) lack(s *site) Stop {
	switch s.kind {
	case siteNoImage:
		return Stop{StopNoUnwindData, s.module.Name() + ": no image at hand"}
	case siteNoTable:
		if s.err != nil {
			return Stop{StopNoUnwindData, fmt.Sprintf("%s: function table cannot be read: %v", w.name(s), s.err)}
		}
		if p, ok := s.image.(partial); ok && p.LacksFunctionTable() {
			return Stop{StopNoUnwindData, w.name(s) + ": no image at hand but parts without the function table"}
		}
		return Stop{StopNoUnwindData, w.name(s) + ": the image has no function table"}
	case siteNotCode:
		return Stop{StopNoUnwindData, fmt.Sprintf("%s: %#x is not in an executable section", w.name(s), s.addr)}
	case siteBad:
		return Stop{StopBadUnwindInfo, fmt.Sprintf("%s: function at RVA %#x: %v", w.name(s), s.rf.Begin, s.err)}
	}
	if s.remark != "" {
		return Stop{StopNoUnwindData, fmt.Sprintf("%#x lies in %s", s.addr, s.remark)}
	}
	return Stop{StopNoUnwindData, fmt.Sprintf("%#x lies in no module", s.addr)}
}

func (w *Walker) name(s *site) string {
	if m, ok := w.space.Module(s.addr); ok {
		return m.Name()
	}
	if s.dynamic {
		return fmt.Sprintf("the function table at %#x", s.base)
	}
	return fmt.Sprintf("image at %#x", s.base)
}

// readCode reads up to len(p) instruction bytes at va and returns how many
// there were: from the dump, else from the image.
func (w *Walker) readCode(p []byte, s *site, va uint64) int {
	n, _ := w.space.ReadAt(p, va)
	if n < len(p) && s.image != nil && va >= s.base {
		if m := readImage(p[n:], s, va+uint64(n)); m > 0 {
			n += m
		}
	}
	return n
}

func readImage(p []byte, s *site, va uint64) int {
	if s.image == nil || va < s.base || va-s.base > 0xffffffff {
		return 0
	}
	n, _ := s.image.ReadRVA(p, uint32(va-s.base))
	return n
}
