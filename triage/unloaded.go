package triage

import (
	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/symbols"
)

const memCommit = 0x1000 // MEM_COMMIT

// unloadedImages finds the images of modules that are gone, for frames whose
// return address lies where one was.
type unloadedImages struct {
	modules []dump.Module
	images  map[*dump.Module]*pdata.Image // nil when there is none
	paths   map[*dump.Module]string       // of the images' files
	debug   map[*dump.Module]symbols.Debug
}

// at returns the image that had been at an address. There must be no doubt: one
// record of an unloaded module only, whose time stamp proves the file, and
// nothing else in its place now.
func (u *unloadedImages) at(s *space, va uint64) (*pdata.Image, uint64) {
	im, m := u.proved(s, va)
	if im == nil || !im.HasFunctionTable() {
		return nil, 0
	}
	return im, m.Base
}

// proved returns the image and its module's record, of any architecture.
func (u *unloadedImages) proved(s *space, va uint64) (*pdata.Image, *dump.Module) {
	m := u.only(va)
	if m == nil || m.TimeDateStamp == 0 {
		return nil, nil
	}
	if r := s.region(va); r != nil && r.State == memCommit {
		return nil, nil
	}
	if n, _ := s.mem.ReadAt(make([]byte, 1), va); n > 0 {
		return nil, nil
	}
	im, done := u.images[m]
	if !done {
		var path string
		im, path, _ = s.store.Find(m)
		if u.images == nil {
			u.images, u.paths = map[*dump.Module]*pdata.Image{}, map[*dump.Module]string{}
		}
		u.images[m], u.paths[m] = im, path
	}
	if im == nil {
		return nil, nil
	}
	return im, m
}

// name names an address of such an image.
func (u *unloadedImages) name(s *space, lookup, ip uint64) (symbols.Name, bool) {
	im, m := u.proved(s, lookup)
	if im == nil || !im.Executable(uint32(lookup-m.Base)) {
		return symbols.Name{}, false
	}
	d, done := u.debug[m]
	if !done {
		d, _, _ = s.store.FindDebug(im.CodeView(), u.paths[m])
		if u.debug == nil {
			u.debug = map[*dump.Module]symbols.Debug{}
		}
		u.debug[m] = d
	}
	name := symbols.NameIn(d, im, uint32(lookup-m.Base), uint32(ip-m.Base))
	return name, name.Function != ""
}

// only returns the one module that was at an address, nil when there were
// several images or none. Of a list longer than any system's nothing is
// believed: it is searched for every word of a stack.
func (u *unloadedImages) only(va uint64) *dump.Module {
	if len(u.modules) > unloadedSearched {
		return nil
	}
	var found *dump.Module
	for i := range u.modules {
		m := &u.modules[i]
		if !m.Contains(va) {
			continue
		}
		if found != nil && (found.Base != m.Base || found.Size != m.Size || found.TimeDateStamp != m.TimeDateStamp) {
			return nil
		}
		if found == nil {
			found = m
		}
	}
	return found
}
