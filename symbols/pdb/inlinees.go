package pdb

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/internal/cursor"
)

// inlineeLine says where an inlined function begins in source text.
type inlineeLine struct {
	id   uint32 // of the function, in the IPI stream
	file uint32 // offset in the checksums
	line uint32
}

// readInlineeLines reads a module's inlinee lines subsections, sorted by id.
func (m *module) readInlineeLines() []inlineeLine {
	var out []inlineeLine
	for _, p := range m.lines.inlinees {
		out = appendInlinees(out, m.c13Part(p))
	}
	slices.SortStableFunc(out, func(a, b inlineeLine) int { return cmp.Compare(a.id, b.id) })
	return out
}

func appendInlinees(out []inlineeLine, c *cursor.Cursor) []inlineeLine {
	extended := c.U32() == 1 // each entry lists further files
	for c.Left() >= 12 {
		out = append(out, inlineeLine{c.U32(), c.U32(), c.U32()})
		if extended {
			n, err := c.Count(uint64(c.U32()), 4)
			if err != nil {
				break
			}
			c.Skip(n * 4)
		}
	}
	return out
}

// findInlinee returns where an inlined function begins.
func (m *module) findInlinee(id uint32) (inlineeLine, bool) {
	list := m.lines.inlinee()
	i := sort.Search(len(list), func(i int) bool { return list[i].id >= id })
	if i < len(list) && list[i].id == id {
		return list[i], true
	}
	return inlineeLine{}, false
}
