package pdata

// ProgramEntry returns the RVA at which a program, not a library, begins; ok is
// false for a library and an image that names none.
func (im *Image) ProgramEntry() (rva uint32, ok bool) {
	return im.h.entry, im.h.entry != 0 && !im.h.library
}

// Imported reports whether an RVA lies in the table of addresses that the loader
// fills with functions of other images. An image may have slots elsewhere too.
func (im *Image) Imported(rva uint32) bool {
	d := im.h.dirs[dirImports]
	return rva >= d.rva && rva-d.rva < d.size
}
