// Package symbols finds the images that belong to a dump's modules and gives
// names to addresses in them.
//
// Images come from the dump's own memory or from directories that the user
// names; a file is used only when its header proves that it is the very image
// (TimeDateStamp and SizeOfImage). Names come from the module's PDB or Breakpad
// file when one is found that belongs to it (GUID and age), else from export
// tables and, where an export does not reach, from the function starts that
// .pdata proves. Mangled names are made readable.
package symbols

import "dumptriage/dump"

// SourceKind says where a name came from. Its text is part of the JSON
// contract.
type SourceKind string

// The sources of names.
const (
	SourceNone   SourceKind = "none"
	SourcePDB    SourceKind = "pdb"
	SourceSym    SourceKind = "sym" // Breakpad's
	SourceDWARF  SourceKind = "dwarf"
	SourceCOFF   SourceKind = "coff" // the image's symbol table
	SourceExport SourceKind = "export"
	SourcePdata  SourceKind = "pdata" // only the function's start is known
	SourceCLR    SourceKind = "clr"   // .NET metadata
)

// Name is what an address is called.
type Name struct {
	Function string // without arguments, "" when there is none
	Full     string // the whole declaration where it is known and says more, else ""
	Offset   uint64 // bytes from the function's start to the frame's IP
	Source   SourceKind
	Public   bool   // a public symbol's, which tells where a function begins and not how far it reaches
	File     string // source file as the compiler recorded it, "" unknown
	Line     uint32 // in File, 0 unknown; with Inlines, of the outermost call
	Inlines  []Inline
}

// Inline is a function that was inlined at an address. A chain is ordered
// innermost first.
type Inline struct {
	Function string
	File     string
	Line     uint32 // where the address lies in this function, 0 unknown
}

// ImageState says what became of the search for a module's image.
type ImageState uint8

// Image states.
const (
	ImageNotNeeded ImageState = iota // nothing asked for it
	ImageFromMemory
	ImageFromFile
	ImageMissing
)

// Missing is an image that was needed and not found.
type Missing struct {
	Module *dump.Module
	Key    string   // symbol-store key: time stamp in hexadecimal, then size
	Tried  []string // places, in the order they were tried
	Reason string   // why a candidate was refused, "" when there was none
}
