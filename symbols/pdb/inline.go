package pdb

import (
	"slices"

	"dumptriage/internal/cursor"
)

// maxInlines bounds the depth of an inline chain.
const maxInlines = 256

// inlines returns the inline sites of a function that cover an address of the
// image as linked, innermost first. At is the offset of the function's record,
// chunk and offset the address within it.
func (f *File) inlines(m *module, at uint32, in chunkAddress) []Inline {
	c := cursor.New(m.symbols, "symbols", -1)
	c.Seek(int(at))
	var out []Inline
	var r record
	depth, inside := 0, 0 // inside: depth of the innermost site found
	for nextWanted(c, &r, symbolKind.isInlineSite) {
		if r.kind.closesScope() {
			depth--
		} else if r.kind.opensScope() {
			depth++
		}
		if depth <= 0 || depth < inside {
			break
		}
		if !r.kind.isInlineSite() || depth <= inside || len(out) >= maxInlines {
			continue
		}
		if site, ok := f.inlineSite(m, &r, in); ok {
			out, inside = append(out, site), depth
		}
	}
	f.note(c.Err())
	slices.Reverse(out)
	return out
}

// chunkAddress is an offset within one of a function's chunks of code.
type chunkAddress struct{ chunk, offset uint32 }

// inlineSite decodes an inline site if it covers the address.
func (f *File) inlineSite(m *module, r *record, in chunkAddress) (Inline, bool) {
	c := &r.body
	c.Skip(8) // parent, end
	id := c.U32()
	if r.kind == symInlineSite2 {
		c.U32() // invocations
	}
	var row annotationRow
	found := false
	f.note(decodeAnnotations(c, func(a annotationRow) bool {
		if a.chunk == in.chunk && a.start <= in.offset && in.offset < a.end {
			row, found = a, true
		}
		return !found
	}))
	if !found {
		return Inline{}, false
	}
	out := Inline{Function: f.inlineeName(m, id)}
	begin, known := m.findInlinee(id)
	file := begin.file
	if row.hasFile {
		file = row.file
	}
	if line := int64(begin.line) + row.line; known && line > 0 && line <= 0xFFFFFF {
		out.Line = uint32(line)
	}
	if known || row.hasFile {
		out.File = f.fileName(m, file)
	}
	return out, true
}
