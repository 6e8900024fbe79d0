package dwarf

import (
	"debug/dwarf"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxRootAbbrev = 1 << 16 // gcc puts the most used first: a unit's own may be the last of hundreds
	maxAbbrevs    = 1 << 20 // attributes in one table
)

// abbrev says which attributes a kind of entry has.
type abbrev struct {
	tag      dwarf.Tag
	children bool
	attrs    []attrForm
}

type attrForm struct {
	name     dwarf.Attr
	form     uint16
	implicit int64 // of formImplicitConst
}

// abbrevs is a table by code. Compilers count from 1.
type abbrevs struct {
	list  []abbrev
	other map[uint64]*abbrev
}

func (t *abbrevs) find(code uint64) *abbrev {
	if code-1 < uint64(len(t.list)) {
		return &t.list[code-1]
	}
	return t.other[code]
}

func (t *abbrevs) add(code uint64, a abbrev) {
	if code == uint64(len(t.list))+1 {
		t.list = append(t.list, a)
		return
	}
	if t.other == nil {
		t.other = map[uint64]*abbrev{}
	}
	t.other[code] = &a
}

// readAbbrev reads one declaration. Code 0 ends a table.
func readAbbrev(c *cursor.Cursor) (code uint64, a abbrev) {
	if code = c.ULEB128(); code == 0 {
		return 0, a
	}
	a.tag = dwarf.Tag(min(c.ULEB128(), 0xffff))
	a.children = c.U8() != 0
	for {
		at := attrForm{name: dwarf.Attr(min(c.ULEB128(), 0xffff)), form: uint16(min(c.ULEB128(), 0xffff))}
		if at.form == formImplicitConst {
			at.implicit = c.SLEB128()
		}
		if c.Err() != nil || at.name == 0 && at.form == 0 {
			return code, a
		}
		a.attrs = append(a.attrs, at)
	}
}

// table reads the abbreviations of a unit.
func (f *File) table(off uint64) (*abbrevs, error) {
	if t := f.tables[off]; t != nil {
		return t, nil
	}
	c := f.abbrev.from(off)
	t := &abbrevs{}
	total := 0
	for {
		code, a := readAbbrev(c)
		if total += 1 + len(a.attrs); total > maxAbbrevs || !f.spend(1+len(a.attrs)) {
			c.Fail(dump.Limit, "more abbreviations than are read")
		}
		if c.Err() != nil {
			return nil, c.Err()
		}
		if code == 0 {
			break
		}
		t.add(code, a)
	}
	if f.attrs += total; f.tables == nil || f.attrs > maxAbbrevs {
		f.tables, f.attrs = map[uint64]*abbrevs{}, total
	}
	f.tables[off] = t
	return t, nil
}

// rootAbbrev reads one abbreviation of a table, without the rest of it.
func (f *File) rootAbbrev(off, want uint64) (abbrev, error) {
	c := f.abbrev.from(off)
	for range maxRootAbbrev {
		code, a := readAbbrev(c)
		if !f.spend(1 + len(a.attrs)) {
			c.Fail(dump.Limit, "more abbreviations than are read")
		}
		switch {
		case c.Err() != nil:
			return a, c.Err()
		case code == want && want != 0:
			return a, nil
		case code == 0:
			return a, dump.Errorf(dump.BadRecord, f.abbrev.name, "the table at %#x lacks code %d", off, want)
		}
	}
	return abbrev{}, dump.Errorf(dump.Limit, f.abbrev.name, "the table at %#x has code %d too far back", off, want)
}
