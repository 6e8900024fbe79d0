// Package sym reads the text symbol files of Breakpad (".sym"), which dump_syms
// and its relatives make from PDB, DWARF and images: it names code addresses with
// function, file, line and the chain of inlined calls, and gives the rules for
// unwinding.
//
//	f, err := sym.Open(file, size, "app.sym")
//	loc, ok := f.Lookup(rva)
//
// Open reads the first line, which says whose symbols these are. The first look-up
// streams through the file once and keeps where each function, public symbol,
// file name and unwind record is: about 16 bytes each. What they say is read from
// the file when it is asked for. All methods may be called from several
// goroutines.
//
// # Sources
//
// The format is that of Breakpad's docs/symbol_files.md, with the forms of older
// and newer writers: the "m" of folded functions, inline records, lines that end
// in CR LF.
//
// # Trust
//
// Every byte is untrusted. A record that cannot be read is left out and counted
// in Damage; lines, records per function, inline chains and rules have caps. The
// index takes 16 bytes a record, which in a file of the shortest records is a
// small multiple of its size. Being text, the records are split by this package
// and not by a cursor; numbers are checked against their width. Errors are
// *dump.Error.
//
// # Addresses
//
// Addresses are relative to the base of the image (RVA).
package sym
