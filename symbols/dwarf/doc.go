// Package dwarf names code addresses by the debug information that gcc, clang and
// Go put into Windows images themselves: DWARF 2 to 5 in sections such as
// .debug_info, with function, file, line and the chain of inlined calls; and by
// the COFF symbol table, where there is no DWARF or it does not cover an address.
//
//	f, err := dwarf.Open(file, size, "app.exe")
//	loc, ok := f.Lookup(rva)
//
// Open reads the headers. The first Lookup indexes the ranges of addresses that
// the units (source files) cover; each Lookup decodes the unit of its address, and
// a bounded number of units is kept. All methods may be called from several
// goroutines.
//
// # Sources
//
// The DWARF Debugging Information Format, versions 2 to 5 (dwarfstd.org), with the
// GNU extensions that gcc emits; Microsoft, "PE Format" (sections, string table,
// symbol table). Checked against llvm-symbolizer.
//
// # Trust
//
// Every byte is untrusted. The standard library's debug/dwarf is not made for that and
// is not used to read, only for the names of tags and attributes, and by the tests as a
// second reader (docs/dependencies.md says why). Sizes are clamped to the file, nothing is allocated by
// a count, all walks have caps, references are followed a few steps and may form
// cycles; the text of one answer is bounded too. Damage makes the answer partial; File.Damage says what could not be read.
// Errors are *dump.Error. An image needs no further proof: its debug information
// is inside it. Files that .gnu_debuglink names are proved by their checksum.
//
// # Addresses
//
// Addresses given and returned are relative virtual addresses (RVA).
package dwarf
