package kdump

import "dumptriage/dump"

// UserMemory says what of a process's user memory is in the dump, by the page of
// its PEB: PageValid when it is, else why not. Dumps of kernel memory only have
// page tables for user memory but none of its pages.
func (v *View) UserMemory() PageState {
	if v.space == nil || v.process.PEB == 0 {
		return PageInvalid
	}
	var b [1]byte
	if _, err := v.space.ReadAt(b[:], v.process.PEB); err != nil {
		return pageStateOf(err)
	}
	return PageValid
}

// Unreadable is the state of the page that keeps the process's user memory from being
// read: that of its PEB, else of its parameters; "" when both are there or there are
// none.
func (v *View) Unreadable() string {
	if v.space == nil || v.process.PEB == 0 {
		return ""
	}
	if s := v.UserMemory(); s != PageValid {
		return s.Key()
	}
	at, err := dump.ReadPointer(v.space, v.hdr.arch, v.process.PEB+uint64(loaderOf(v.hdr.ptr).parameters))
	if err == nil && at != 0 {
		if _, err = dump.ReadUint32(v.space, at); err != nil {
			page := v.space.Page(at)
			return page.State.Key()
		}
	}
	return ""
}

// ListMissing says in words why the loader's list of the process's modules cannot be
// read, "" when it can or there is none.
func (v *View) ListMissing() string {
	if v.space == nil || v.process.PEB == 0 {
		return ""
	}
	l := loaderOf(v.hdr.ptr)
	at := v.process.PEB + uint64(l.ldr)
	for _, next := range []uint64{uint64(l.inLoadOrder), 0} { // of PEB_LDR_DATA, then of the first entry
		va, err := dump.ReadPointer(v.space, v.hdr.arch, at)
		if err != nil {
			page := v.space.Page(at)
			return page.Describe()
		}
		if va == 0 {
			return "the loader had not begun yet"
		}
		at = va + next
	}
	if _, err := dump.ReadPointer(v.space, v.hdr.arch, at); err != nil {
		page := v.space.Page(at)
		return page.Describe()
	}
	return ""
}
