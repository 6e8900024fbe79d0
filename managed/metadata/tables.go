package metadata

import (
	"fmt"
	"math/bits"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	tableStream = "metadata tables"
	maxRID      = 0xffffff // a token has 24 bits for a row
	maxScan     = 1 << 16  // rows looked through where a table is not sorted
	maxBesides  = 1 << 11  // rows tried on each side of one that is missing: 16 KiB or more
	maxTries    = 1 << 17  // such rows in all, so that metadata full of holes costs little
	maxScanned  = 1 << 24  // rows looked through in all where tables are not sorted
)

// tableInfo is where a table lies and how its rows are laid out.
type tableInfo struct {
	rows    uint32 // as claimed: a row may lie beyond what can be read
	off     int64
	size    uint8 // bytes of a row
	columns [maxColumns + 1]uint8
}

// row is the cells of a row, widened.
type row [maxColumns]uint32

// readTables reads the header of the table stream (II.24.2.6) and lays out the
// tables. Wide makes all indexes four bytes, as in deltas of edit-and-continue.
func (m *Metadata) readTables(s span, wide bool, external [numTables]uint32) error {
	b, missing := m.in.UpTo(s.off, min(s.size, 24+4*numTables+4), tableStream)
	c := cursor.New(b, tableStream, s.off)
	c.Skip(6) // reserved, version
	heaps := c.U8()
	c.Skip(1)
	valid := c.U64()
	m.sorted = c.U64()
	var rows [numTables]uint32
	readCounts(c, valid, &rows)
	if heaps&0x40 != 0 { // extra data, as edit-and-continue writes
		c.Skip(4)
	}
	if c.Err() != nil {
		return why(c, missing)
	}
	m.setWidths(heaps, wide, &rows, &external)
	off := s.off + int64(c.Offset())
	for t := range numTables {
		m.layOut(table(t), rows[t], off)
		off += int64(rows[t]) * int64(m.tables[t].size)
	}
	return nil
}

// setWidths says for each kind of column how many bytes it has.
func (m *Metadata) setWidths(heaps uint8, wide bool, rows, external *[numTables]uint32) {
	m.widths[u16], m.widths[u32] = 2, 4
	m.widths[str], m.widths[guid], m.widths[blob] = width(wide || heaps&1 != 0), width(wide || heaps&2 != 0), width(wide || heaps&4 != 0)
	count := func(t table) uint32 { return max(rows[t], external[t]) }
	for t := range table(numTables) {
		m.widths[index(t)] = width(wide || count(t) > 0xffff)
	}
	for i, k := range coded {
		large := wide
		for _, t := range k.tags {
			large = large || t != none && count(t) > 0xffff>>k.bits
		}
		m.widths[firstCoded+column(i)] = width(large)
	}
}

func width(wide bool) uint8 {
	if wide {
		return 4
	}
	return 2
}

// layOut places a table. A table that no standard tells of ends what can be
// placed, but all that is read here lies before such.
func (m *Metadata) layOut(t table, rows uint32, off int64) {
	info := &m.tables[t]
	info.rows, info.off = rows, off
	for i, c := range schema[t].columns {
		info.columns[i+1] = info.columns[i] + m.widths[c]
	}
	info.size = info.columns[len(schema[t].columns)]
}

// Rows returns how many rows the metadata claims to have of the table of a token,
// such as 0x06000000.
func (m *Metadata) Rows(token uint32) uint32 {
	if t := token >> 24; t < numTables {
		return m.tables[t].rows
	}
	return 0
}

// place returns where a row lies, or an error that says that there is no such row.
func (m *Metadata) place(t table, rid uint32) (int64, error) {
	info := &m.tables[t]
	if rid == 0 || rid > info.rows {
		return 0, outside(schema[t].name, -1, "has no row %d of %d", rid, info.rows)
	}
	return info.off + int64(rid-1)*int64(info.size), nil
}

// row reads a whole row.
func (m *Metadata) row(t table, rid uint32) (r row, err error) {
	off, err := m.place(t, rid)
	if err != nil {
		return r, err
	}
	c := m.in.At(off, int64(m.tables[t].size), schema[t].name)
	for i, col := range schema[t].columns {
		r[i] = m.read(c, col)
	}
	return r, c.Err()
}

// cell reads one cell of a row: of a row that is half in a missing page it may be
// the half that is there.
func (m *Metadata) cell(t table, rid uint32, col int) (uint32, error) {
	off, err := m.place(t, rid)
	if err != nil {
		return 0, err
	}
	kind := schema[t].columns[col]
	c := m.in.At(off+int64(m.tables[t].columns[col]), int64(m.widths[kind]), schema[t].name)
	v := m.read(c, kind)
	return v, c.Err()
}

func (m *Metadata) read(c *cursor.Cursor, col column) uint32 {
	if m.widths[col] == 4 {
		return c.U32()
	}
	return uint32(c.U16())
}

// ref decodes a coded index of a row.
func (m *Metadata) ref(t table, rid uint32, c column, v uint32) (table, uint32, error) {
	to, toRID, ok := decode(c, v)
	if !ok {
		return 0, 0, &dump.Error{Code: dump.BadRecord, Stream: schema[t].name, Offset: -1, Size: -1, Msg: fmt.Sprintf("row %d refers to no table (%#x)", rid, v)}
	}
	return to, toRID, nil
}

// lastNotAbove returns the last row whose cell is not above v, in a table whose
// cells ascend; 0 when the first row's is above. It goes round rows that are missing
// as long as others decide.
func (m *Metadata) lastNotAbove(t table, col int, v uint32) (uint32, error) {
	there := m.there(t)
	below, above := uint32(0), there+1
	for above-below > 1 {
		mid := below + (above-below)/2
		got, err := m.cell(t, mid, col)
		if err != nil {
			if mid, got, err = m.besides(t, col, mid, below, above, err); err != nil {
				return 0, err
			}
		}
		if got > v {
			above = mid
		} else {
			below = mid
		}
	}
	if below == there && there < m.tables[t].rows { // the next one may be it, and is cut off
		_, err := m.cell(t, below+1, col)
		return 0, err
	}
	return below, nil
}

// there returns how many rows of a table lie within the metadata's size.
func (m *Metadata) there(t table) uint32 {
	info := &m.tables[t]
	return uint32(max(0, min(int64(info.rows), (m.in.Size()-info.off)/max(1, int64(info.size)))))
}

// besides returns a row near mid, between below and above, that can be read, or the
// error of mid.
func (m *Metadata) besides(t table, col int, mid, below, above uint32, missing error) (uint32, uint32, error) {
	for d := uint32(1); d <= maxBesides && m.tries.Add(1) < maxTries; d++ {
		if d < above-mid {
			if got, err := m.cell(t, mid+d, col); err == nil {
				return mid + d, got, nil
			}
		}
		if d < mid-below {
			if got, err := m.cell(t, mid-d, col); err == nil {
				return mid - d, got, nil
			}
		}
	}
	return 0, 0, missing
}

// find returns the first row whose cell is v, or 0. Tables that do not say that they
// are sorted are looked through, up to maxScan rows.
func (m *Metadata) find(t table, col int, v uint32) (uint32, error) {
	if m.sorted>>t&1 == 0 {
		return m.scan(t, col, v)
	}
	rid, err := m.lastNotAbove(t, col, v)
	if rid == 0 || err != nil {
		return 0, err
	}
	got, err := m.cell(t, rid, col)
	if got != v || err != nil {
		return 0, err
	}
	return rid, nil
}

func (m *Metadata) scan(t table, col int, v uint32) (uint32, error) {
	n := m.tables[t].rows
	if m.scanned.Add(int64(min(n, maxScan))) > maxScanned {
		return 0, dump.Errorf(dump.Limit, schema[t].name, "is not sorted: more than %d rows of such tables would be looked through in all", maxScanned)
	}
	for rid := uint32(1); rid <= min(n, maxScan); rid++ {
		if got, err := m.cell(t, rid, col); err != nil || got == v {
			return rid, err
		}
	}
	if n > maxScan {
		return 0, dump.Errorf(dump.Limit, schema[t].name, "is not sorted and has %d rows; %d were looked through", n, maxScan)
	}
	return 0, nil
}

// tokenOf makes a token of a table and a row.
func tokenOf(t table, rid uint32) uint32 { return uint32(t)<<24 | rid }

// splitToken is the reverse; a token of no table gives false.
func splitToken(token uint32) (table, uint32, bool) {
	t := token >> 24
	return table(t), token & maxRID, bits.Len32(t) <= 6 && schema[t&63].columns != nil
}
