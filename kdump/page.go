package kdump

import (
	"fmt"
)

// Page is what a full dump knows of one page of virtual memory.
type Page struct {
	State    PageState
	Physical uint64 // address of the byte asked for, 0 when there is none
	Entry    uint64 // the page table entry that decided, 0 when none was read
	Level    int    // of its table: 1 the last one, 0 when none was read
	// PageFile is where a paged-out page lies, nil when it does not.
	PageFile *PageFilePlace

	vad  *vad
	tree *vadTree
}

// PageFilePlace is a place in a paging file.
type PageFilePlace struct {
	Number int    // of the file, from 0 on; -1 when this kernel's entries leave it open
	Offset uint64 // in bytes
}

// Describe is the state in words, with the place in the paging file and the entry.
func (p *Page) Describe() string {
	text := p.State.String()
	if f := p.PageFile; f != nil {
		if f.Number >= 0 {
			text += fmt.Sprintf(" to page file %d at %#x", f.Number, f.Offset)
		} else {
			text += fmt.Sprintf(" to a page file at %#x", f.Offset)
		}
	}
	if p.Level != 0 && p.Entry != 0 {
		text += fmt.Sprintf(" (level %d entry %#x)", p.Level, p.Entry)
	}
	return text
}

// File is the name of the file whose bytes the page has or would have, "" when it
// is of none or the process's descriptors do not tell.
func (p *Page) File() string {
	if p.State != PageMappedFile || p.vad == nil {
		return ""
	}
	return p.tree.file(p.vad)
}

// Page tells what is known of the page that holds va.
func (s *AddressSpace) Page(va uint64) Page {
	s.mu.Lock()
	t := s.walker.walk(s, va)
	s.mu.Unlock()
	if t.ask {
		t = s.byVAD(va, t)
	}
	if t.readable() {
		if _, ok := s.phys.pages.locate(t.page >> pageShift); !ok {
			t.state = PageNotInDump
		}
	}
	return s.describe(va, &t)
}

// describe makes a Page of a translation.
func (s *AddressSpace) describe(va uint64, t *translation) Page {
	p := Page{State: t.state, Entry: t.entry, Level: int(t.level), vad: t.vad, tree: s.vads.Load()}
	if t.readable() || t.state == PageNotInDump {
		p.Physical = t.page | va&(pageSize-1)
	}
	if t.state == PagePagedOut && t.soft {
		p.PageFile = s.pageFile(t.entry)
	}
	if t.state == PageMappedFile && p.vad == nil && p.tree != nil && !kernelAddress(s.form.ptr, va) {
		p.vad, _ = p.tree.find(va >> pageShift)
	}
	return p
}

// pageFile reads the place in a paging file from an entry.
func (s *AddressSpace) pageFile(e uint64) *PageFilePlace {
	f := &PageFilePlace{Number: -1, Offset: s.unswizzle(e) >> s.form.offset << pageShift}
	if s.form.file != 0 && (s.phys.masked || !s.form.swizzle) {
		f.Number = int(e >> s.form.file & 0xf)
	}
	return f
}
