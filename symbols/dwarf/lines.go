package dwarf

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	maxRows      = 1 << 21
	maxFiles     = 1 << 18 // and directories, of one table
	maxLineTable = 128 << 20

	// Standard and extended opcodes of a line program.
	opCopy             = 1
	opAdvancePC        = 2
	opAdvanceLine      = 3
	opSetFile          = 4
	opSetColumn        = 5
	opConstAddPC       = 8
	opFixedAdvancePC   = 9
	opSetISA           = 12
	opEndSequence      = 1
	opSetAddress       = 2
	contentPath        = 1 // DW_LNCT_path
	contentDirectory   = 2 // DW_LNCT_directory_index
	maxEntryFormats    = 255
	firstLineOldFormat = 1 // before version 5 files and directories count from 1
)

// row says from which address on code belongs to a line.
type row struct {
	addr       uint64
	file, line uint32
}

// lineTable is the line program of one unit, run.
type lineTable struct {
	version  uint16
	dirs     []value
	files    []lineFile
	rows     []row
	byAddr   spans   // sequences: index is that of the first row
	lastRows []int32 // behind the rows of a sequence, by its place before sorting
	firsts   []int32
	off      uint64 // of the table, from which strings in place count
}

type lineFile struct {
	name value
	dir  uint64
}

// program is a line program while it is run.
type program struct {
	encoding
	minLength  uint64
	lineBase   int64
	lineRange  uint64
	opcodeBase uint8
	operands   []uint8
	c          *cursor.Cursor
	t          *lineTable
	f          *File

	addr       uint64
	file, line uint64
	first      int // row of the sequence
}

// readLines runs a unit's line program.
func (f *File) readLines(u *unit) (*lineTable, error) {
	t := &lineTable{off: u.lines.u}
	p := &program{f: f, t: t, encoding: encoding{addrSize: u.addrSize}}
	head := f.line.at(u.lines.u, 12)
	length := uint64(head.U32())
	if p.wide = length == 0xffffffff; p.wide {
		length = head.U64()
	}
	if head.Err() != nil {
		return t, head.Err()
	}
	length = min(length, maxLineTable)
	p.c = f.line.at(u.lines.u, int64(length)+int64(head.Offset()))
	p.c.Skip(head.Offset())
	if err := p.header(); err != nil {
		return t, err
	}
	p.run()
	t.index()
	return t, p.c.Err()
}

func (p *program) header() error {
	c := p.c
	p.version = c.U16()
	if c.Err() == nil && (p.version < 2 || p.version > 5) {
		c.Fail(dump.UnsupportedFormat, "lines of version %d", p.version)
	}
	p.t.version = p.version
	if p.version >= 5 {
		p.addrSize = int(c.U8())
		c.Skip(1) // size of a segment selector
	}
	length := p.offset(c)
	start := c.Offset()
	p.minLength = uint64(c.U8())
	if p.version >= 4 {
		c.Skip(1) // operations in one instruction, of other processors
	}
	c.Skip(1) // default_is_stmt
	p.lineBase, p.lineRange, p.opcodeBase = int64(int8(c.U8())), uint64(c.U8()), c.U8()
	if c.Err() == nil && (p.lineRange == 0 || p.opcodeBase == 0 || p.addrSize != 4 && p.addrSize != 8) {
		c.Fail(dump.BadRecord, "a line program without a line range, opcodes or addresses")
	}
	p.operands = c.Bytes(int(p.opcodeBase) - 1)
	if p.version >= 5 {
		p.newFiles()
	} else {
		p.oldFiles()
	}
	if c.Err() == nil && length > uint64(c.Len()-start) {
		c.Fail(dump.OutOfRange, "the header claims %d bytes", length)
	}
	c.Seek(start + int(length))
	return c.Err()
}

func (p *program) oldFiles() {
	for {
		v := p.read(p.c, formString, 0)
		if p.c.Err() != nil || int(v.u)+1 == p.c.Offset() {
			break
		}
		if !p.room() {
			return
		}
		p.t.dirs = append(p.t.dirs, v)
	}
	for {
		v := p.read(p.c, formString, 0)
		if p.c.Err() != nil || int(v.u)+1 == p.c.Offset() {
			return
		}
		if !p.room() {
			return
		}
		p.t.files = append(p.t.files, lineFile{v, p.c.ULEB128()})
		p.c.ULEB128() // time
		p.c.ULEB128() // size
	}
}

// room reports whether one more directory or file may be kept.
func (p *program) room() bool {
	if len(p.t.dirs)+len(p.t.files) >= maxFiles || !p.f.spend(1) {
		p.c.Fail(dump.Limit, "more files than are read")
		return false
	}
	return true
}

func (p *program) newFiles() {
	p.entries(func(path value, _ uint64) { p.t.dirs = append(p.t.dirs, path) })
	p.entries(func(path value, dir uint64) { p.t.files = append(p.t.files, lineFile{path, dir}) })
}

// entries reads a list whose elements say themselves what they consist of.
func (p *program) entries(add func(path value, dir uint64)) {
	c := p.c
	type part struct{ content, form uint16 }
	parts := make([]part, c.U8())
	for i := range parts {
		parts[i] = part{uint16(min(c.ULEB128(), 0xffff)), uint16(min(c.ULEB128(), 0xffff))}
	}
	for n := c.ULEB128(); n > 0 && c.Err() == nil; n-- {
		var path value
		dir := uint64(0)
		begin := c.Offset()
		for _, part := range parts {
			v := p.read(c, part.form, 0)
			switch part.content {
			case contentPath:
				path = v
			case contentDirectory:
				dir = v.u
			}
		}
		if c.Offset() == begin { // of nothing any number would fit
			c.Fail(dump.Limit, "more files than are read")
		}
		if p.room() && c.Err() == nil {
			add(path, dir)
		}
	}
}

func (p *program) reset() {
	p.addr, p.file, p.line, p.first = 0, 1, 1, len(p.t.rows)
}

func (p *program) run() {
	p.reset()
	for p.c.Err() == nil && p.c.Left() > 0 {
		if len(p.t.rows) >= maxRows || !p.f.spend(1) {
			p.c.Fail(dump.Limit, "more lines than are read")
			return
		}
		op := p.c.U8()
		switch {
		case op >= p.opcodeBase:
			adjusted := uint64(op - p.opcodeBase)
			p.addr += adjusted / p.lineRange * p.minLength
			p.line += uint64(p.lineBase + int64(adjusted%p.lineRange))
			p.emit()
		case op == 0:
			p.extended()
		default:
			p.standard(op)
		}
	}
}

func (p *program) standard(op uint8) {
	switch op {
	case opCopy:
		p.emit()
	case opAdvancePC:
		p.addr += p.c.ULEB128() * p.minLength
	case opAdvanceLine:
		p.line += uint64(p.c.SLEB128())
	case opSetFile:
		p.file = p.c.ULEB128()
	case opConstAddPC:
		p.addr += uint64(255-p.opcodeBase) / p.lineRange * p.minLength
	case opFixedAdvancePC:
		p.addr += uint64(p.c.U16())
	default: // no operands that matter
		for range p.operands[op-1] {
			p.c.ULEB128()
		}
	}
}

func (p *program) extended() {
	length := p.c.ULEB128()
	if length == 0 || length > uint64(p.c.Left()) {
		p.c.Fail(dump.BadRecord, "an instruction of %d bytes, %d left", length, p.c.Left())
		return
	}
	c := p.c.Sub(int(length))
	switch c.U8() {
	case opEndSequence:
		p.endSequence()
	case opSetAddress:
		e := encoding{addrSize: p.addrSize}
		if c.Left() < p.addrSize {
			e.addrSize = 4
		}
		p.addr = e.address(c)
	}
}

func (p *program) emit() {
	p.t.rows = append(p.t.rows, row{p.addr, uint32(min(p.file, 1<<32-1)), uint32(min(p.line, 1<<32-1))})
}

// endSequence keeps the rows since the last end, unless the linker left out their
// code.
func (p *program) endSequence() {
	t := p.t
	if rows := t.rows[p.first:]; len(rows) > 0 && rows[0].addr >= p.f.im.base && rows[0].addr != 0 && p.addr > rows[0].addr {
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.addr, b.addr) })
		t.byAddr.list = append(t.byAddr.list, span{rows[0].addr, p.addr, int32(len(t.firsts))})
		t.firsts = append(t.firsts, int32(p.first))
		t.lastRows = append(t.lastRows, int32(len(t.rows)))
	} else {
		t.rows = t.rows[:p.first]
	}
	p.reset()
}

func (t *lineTable) index() { t.byAddr.sort() }

// at returns the file and line of an address; noFile and 0 when there are none.
func (t *lineTable) at(pc uint64) (file uint64, line uint32) {
	file = noFile
	t.byAddr.each(pc, func(s span) bool {
		rows := t.rows[t.firsts[s.index]:t.lastRows[s.index]]
		i := sort.Search(len(rows), func(i int) bool { return rows[i].addr > pc })
		if i == 0 {
			return true
		}
		file, line = uint64(rows[i-1].file), rows[i-1].line
		return false
	})
	return file, line
}

// fileName is the path of a file of a unit's line table.
func (f *File) fileName(unit int32, t *lineTable, file uint64) string {
	first := uint64(0)
	if t.version < 5 {
		first = firstLineOldFormat
	}
	i := file - first
	if i >= uint64(len(t.files)) {
		return ""
	}
	e := &t.files[i]
	name := f.lineText(unit, t, e.name)
	if name == "?" { // of code that Go's compiler made itself
		return ""
	}
	if name == "" || isAbsolute(name) {
		return name
	}
	dir := ""
	if i := e.dir - first; i < uint64(len(t.dirs)) {
		dir = f.lineText(unit, t, t.dirs[i])
	}
	if !isAbsolute(dir) {
		dir = joined(f.string(unit, f.units[unit].compDir), dir)
	}
	if f.crowded() { // part of a path would be another path
		return ""
	}
	return joined(dir, name)
}

// lineText is text for a string of the line table.
func (f *File) lineText(unit int32, t *lineTable, v value) string {
	if v.form == formString {
		return f.read(f.line, t.off+v.u)
	}
	return f.string(unit, v)
}

// isAbsolute reports whether a path, of whatever system, is absolute.
func isAbsolute(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) || len(path) >= 2 && path[1] == ':'
}

// joined puts a directory before a path, as the compiler's system does.
func joined(dir, path string) string {
	switch {
	case dir == "":
		return path
	case path == "":
		return dir
	case strings.HasSuffix(dir, "/") || strings.HasSuffix(dir, `\`):
		return dir + path
	case strings.Contains(dir, `\`) && !strings.Contains(dir, "/"):
		return dir + `\` + path
	}
	return dir + "/" + path
}
