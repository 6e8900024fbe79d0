// Package pdata reads PE images and their x64 and ARM64 unwind tables, from
// image files and from images as they are mapped in the memory that a dump holds.
//
// Sources of the formats: Microsoft's "PE Format" (headers, sections, export,
// debug and exception directories), "x64 exception handling" (RUNTIME_FUNCTION,
// UNWIND_INFO version 1) and "ARM64 exception handling" (.pdata, packed and
// .xdata records) pages. UNWIND_INFO version 2 is not documented by
// Microsoft; its layout here is what measured images hold and agrees with what
// the GNU binutils print of them. Version 3, for code that uses APX, is by the
// preview specification "x64 unwind information v3" (May 2026), which may still
// change. CodeView records (RSDS, NB10) are as measured.
//
// Nothing in an image is trusted. Counts and sizes are clamped to the bytes
// that are really there before anything is allocated, every RVA is checked,
// chains and indirections end after 32 steps, and an image with missing pages
// answers only what the pages at hand decide. Tables are searched where they
// lie: opening an image reads its headers and nothing else.
//
// NT headers of image files come from saferwall/pe in its fast mode. It is not
// used for anything else: it reads file layout only, refuses the patched image
// bases of mapped images, and drops section headers when it sees only part of
// a large file. See headers_file.go.
package pdata
