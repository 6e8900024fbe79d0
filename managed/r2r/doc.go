// Package r2r tells which .NET method a piece of code is of, in images whose code was
// compiled ahead of time (ReadyToRun). The image alone says it: no state of the runtime is
// asked for.
//
// Source of the format: "ReadyToRun File Format" and "Native Format" of the public .NET
// design documents. Measured on images of the versions 2.2 and 16.0, where those are silent
// or differ: a block of an array that has one element only stores the element's index in its
// node; the offsets in the table of a hash table count from the byte behind its header; an
// entry's offset is signed and counts from where it stands; an element of the array of entry
// points has its index shifted by one bit, or by two when fixups follow.
//
// Nothing in an image is trusted. Tables are read in place through internal/chunk, walks
// are capped, and errors are *dump.Error values whose offset is an RVA. A method is named
// only where the tables say so: code that none of them has is unknown.
package r2r
