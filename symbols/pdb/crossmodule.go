package pdb

import "strings"

// A link with link-time code generation may leave ids that only the module
// that made them can resolve: bit 31, 11 bits of which import, 20 bits of which
// of its ids.
const (
	importShift = 20
	importMask  = 0x7FF
	importedLow = 1<<importShift - 1
)

// importedID resolves an id that another module exports.
func (f *File) importedID(m *module, id uint32) (uint32, bool) {
	wantModule, wantID := id>>importShift&importMask, id&importedLow
	at := uint32(0)
	for _, p := range m.lines.imports {
		c := m.c13Part(p)
		for c.Left() >= 8 {
			name, count := c.U32(), c.U32()
			n, err := c.Count(uint64(count), 4)
			ids := c.Sub(n * 4)
			if err != nil || c.Err() != nil {
				return 0, false
			}
			if at == wantModule {
				ids.Seek(int(min(int64(wantID)*4, int64(ids.Len()))))
				local := ids.U32()
				if ids.Err() != nil {
					return 0, false
				}
				return f.exportedID(name, local)
			}
			at++
		}
	}
	return 0, false
}

// exportedID looks up a local id among the exports of the module of that name.
func (f *File) exportedID(nameOffset, local uint32) (uint32, bool) {
	name, ok := f.names().at(nameOffset)
	if !ok {
		return 0, false
	}
	i, ok := f.byName()[strings.ToLower(name)]
	if !ok {
		return 0, false
	}
	m := f.module(i)
	if m == nil {
		return 0, false
	}
	for _, p := range m.lines.exports {
		c := m.c13Part(p)
		for c.Left() >= 8 {
			if l, g := c.U32(), c.U32(); l == local {
				return g, g&crossModule == 0
			}
		}
	}
	return 0, false
}

// indexModules finds modules by name. Imports give names in lower case.
func (f *File) indexModules() map[string]int {
	t := f.modules()
	out := make(map[string]int, len(t.at))
	for i := range t.at {
		h, _ := t.header(i)
		name := strings.ToLower(h.name)
		if _, dup := out[name]; !dup {
			out[name] = i
		}
	}
	return out
}
