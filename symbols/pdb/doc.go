// Package pdb reads Microsoft program databases (PDB files: MSF 7.00 and MSFZ): it names
// code addresses with function, file, line and the chain of inlined calls, and
// gives public symbols, frame data, the address maps of rearranged images and
// the layout of structures.
//
//	f, err := pdb.Open(file, size, "app.pdb")
//	loc, ok := f.Lookup(rva)
//
// Nothing is loaded before it is needed: Open reads the directory of streams
// and two headers; Lookup reads the symbols and lines of the one module (object
// file) that the address belongs to and keeps a bounded number of modules. All
// methods may be called from several goroutines.
//
// # Sources
//
// The formats are those that LLVM's "PDB File Format" documentation describes,
// with the record layouts and constants of the cvinfo.h that Microsoft
// published, checked against files made by MSVC and lld; the compressed container is
// as in Microsoft's "MSFZ Container Specification".
//
// # Trust
//
// Every byte is untrusted. Counts and sizes are claims: they are checked against
// the bytes that are there, a stream can be no larger than its file, and walks
// have caps. Damage makes the answer partial, never wrong on purpose: what could
// not be read is collected in File.Damage. Errors are *dump.Error.
//
// # Addresses
//
// Addresses are relative virtual addresses (RVA) in the image as it is loaded.
// Where an image was rearranged after linking (OMAP), they are translated.
package pdb
