package pdata

import (
	"io"

	"dumptriage/dump"
)

// Image is a PE image read by RVA, from a file or from dump memory. It is safe
// for concurrent use.
type Image struct{}

// Identity is what tells one build of an image from another.
type Identity struct {
	Machine       uint16
	TimeDateStamp uint32
	SizeOfImage   uint32
	CheckSum      uint32
}

// ReadIdentity reads just the headers of a PE file.
func ReadIdentity(r io.ReaderAt, size int64) (Identity, error) { panic("not written yet") }

// OpenFile opens an image in file layout.
func OpenFile(r io.ReaderAt, size int64, name string) (*Image, error) { panic("not written yet") }

// OpenMapped opens an image as it is mapped at base in a dump's memory.
func OpenMapped(mem dump.Memory, base uint64, name string) (*Image, error) {
	panic("not written yet")
}

// Identity returns the image's identity.
func (im *Image) Identity() Identity { panic("not written yet") }

// ReadRVA reads len(p) bytes at an RVA and returns how many there were.
func (im *Image) ReadRVA(p []byte, rva uint32) (int, error) { panic("not written yet") }

// Executable reports whether an RVA lies in an executable section.
func (im *Image) Executable(rva uint32) bool { panic("not written yet") }

// CodeView returns the image's debug identity; Signature is "" without one.
func (im *Image) CodeView() dump.CodeView { panic("not written yet") }

// HasFunctionTable reports whether the image has an exception directory of
// which at least the first entry can be read.
func (im *Image) HasFunctionTable() bool { panic("not written yet") }

// Lookup finds the RUNTIME_FUNCTION that covers an RVA. Indirect entries are
// followed. ok is false when no entry covers it (a leaf function, or no code);
// the error says that the table, or the part needed, cannot be read.
func (im *Image) Lookup(rva uint32) (rf RuntimeFunction, ok bool, err error) {
	panic("not written yet")
}

// Primary follows chained unwind information to the function's first entry.
func (im *Image) Primary(rf RuntimeFunction) RuntimeFunction { panic("not written yet") }

// UnwindInfo decodes the UNWIND_INFO at an RVA. Results are cached.
func (im *Image) UnwindInfo(rva uint32) (*UnwindInfo, error) { panic("not written yet") }

// Symbol is an exported symbol.
type Symbol struct {
	Name string
	RVA  uint32
}

// NearestExport returns the exported function at or below an RVA, by the
// contract's preference when several names share the address.
func (im *Image) NearestExport(rva uint32) (Symbol, bool) { panic("not written yet") }
