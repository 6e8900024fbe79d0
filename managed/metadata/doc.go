// Package metadata reads ECMA-335 metadata, which tells the names of .NET types
// and methods by token. It reads them from assembly files and from what of an
// assembly lies in a dump's memory.
//
// Source of the format: ECMA-335, 6th edition, partition II, sections 22 to 25.
// What that leaves out (the streams "#-" and "#JTD" of edit-and-continue, "#Pdb" and
// the tables 30h to 37h of Portable PDBs) is by the public Portable PDB
// specification and by measured files. Types are shown as the SOS debugger
// extension and the runtime's own stack traces do it.
//
// Nothing in the bytes is trusted. Opening reads the header and the counts of
// rows; rows and strings are read when asked for, and nothing is allocated by a
// count. Pages may be missing: what needs them gets a *dump.Error that says which
// table or heap, where in the metadata and how many bytes; all else still works.
package metadata
