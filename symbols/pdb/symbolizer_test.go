package pdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"dumptriage/internal/cursor"
)

// tool finds an LLVM tool, preferring the version that the figures are from.
func tool(tb testing.TB, name string) string {
	tb.Helper()
	for _, n := range []string{name + "-19", name} {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	tb.Skip(name + " is not installed")
	return ""
}

// stubImage writes the least PE file that llvm-symbolizer takes: the sections of
// the PDB without contents, and a debug directory that names the PDB.
func stubImage(f *File, pdbPath string) []byte {
	le := binary.LittleEndian
	machine, optional, plus := f.info.Machine, 240, true
	if machine == 0x14C {
		optional, plus = 224, false
	}
	sections := f.Sections()
	end := uint32(0)
	for _, s := range sections {
		end = max(end, s.RVA+s.VirtualSize)
	}
	debugRVA := (end + 0x1FFF) &^ 0xFFF
	b := make([]byte, 64)
	copy(b, "MZ")
	le.PutUint32(b[60:], 64)
	b = append(b, "PE\x00\x00"...)
	b = le.AppendUint16(b, machine)
	b = le.AppendUint16(b, uint16(len(sections)+1))
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint16(b, uint16(optional))
	b = le.AppendUint16(b, 0x22)
	o := make([]byte, optional)
	dirs := 96
	le.PutUint16(o, 0x10B)
	if plus {
		le.PutUint16(o, 0x20B)
		dirs = 112
	}
	le.PutUint32(o[32:], 0x1000) // section alignment
	le.PutUint32(o[36:], 0x200)  // file alignment
	le.PutUint32(o[56:], debugRVA+0x1000)
	le.PutUint32(o[60:], 0x1000) // headers
	le.PutUint32(o[dirs-4:], 16) // data directories
	le.PutUint32(o[dirs+6*8:], debugRVA)
	le.PutUint32(o[dirs+6*8+4:], 28)
	b = append(b, o...)
	const raw = 0x2000
	header := func(name string, rva, virtual, size, at, flags uint32) {
		h := make([]byte, 40)
		copy(h, name)
		for i, v := range []uint32{virtual, rva, size, at} {
			le.PutUint32(h[8+4*i:], v)
		}
		le.PutUint32(h[36:], flags)
		b = append(b, h...)
	}
	for _, s := range sections {
		header(s.Name, s.RVA, s.VirtualSize, 0, 0, s.Characteristics)
	}
	header(".dbg", debugRVA, 0x1000, 0x1000, raw, 0x40000040)
	b = append(b, make([]byte, raw+0x1000-len(b))...)
	d := b[raw:]
	rsds := append(append([]byte("RSDS"), f.info.GUID[:]...), 0, 0, 0, 0)
	le.PutUint32(rsds[20:], f.info.Age)
	rsds = append(append(rsds, pdbPath...), 0)
	le.PutUint32(d[12:], 2) // CodeView
	le.PutUint32(d[16:], uint32(len(rsds)))
	le.PutUint32(d[20:], debugRVA+0x100)
	le.PutUint32(d[24:], raw+0x100)
	copy(d[0x100:], rsds)
	return b
}

// symbolized is one answer of llvm-symbolizer.
type symbolized struct {
	Crashed bool `json:"-"`
	Address string
	Symbol  []struct {
		FunctionName, FileName, StartAddress string
		Line                                 uint32
	}
}

// symbolize asks llvm-symbolizer about addresses of a PDB.
func symbolize(t *testing.T, f *File, b []byte, rvas []uint32) []symbolized {
	t.Helper()
	dir := t.TempDir()
	pdbPath, exe := filepath.Join(dir, "x.pdb"), filepath.Join(dir, "x.exe")
	if err := os.WriteFile(pdbPath, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, stubImage(f, pdbPath), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"--obj=" + exe, "--relative-address", "--functions=short", "--no-demangle", "--output-style=JSON"}
	out := make([]symbolized, 0, len(rvas))
	crashes := 0
	for len(out) < len(rvas) {
		got, err := runSymbolizer(tool(t, "llvm-symbolizer"), args, rvas[len(out):])
		out = append(out, got...)
		if err != nil && len(out) < len(rvas) {
			out = append(out, symbolized{Crashed: true}) // the address that it died of
			crashes++
		}
	}
	if crashes > 0 {
		t.Logf("llvm-symbolizer crashed on %d of %d addresses", crashes, len(rvas))
	}
	return out
}

// runSymbolizer returns the answers up to the end or to a crash.
func runSymbolizer(exe string, args []string, rvas []uint32) ([]symbolized, error) {
	var in bytes.Buffer
	for _, rva := range rvas {
		fmt.Fprintf(&in, "%#x\n", rva)
	}
	cmd := exec.Command(exe, args...)
	cmd.Stdin = &in
	raw, runErr := cmd.Output()
	var out []symbolized
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s symbolized
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, runErr
}

// codeAddresses returns every 16th byte of the executable sections.
func codeAddresses(f *File) []uint32 {
	const executable = 0x20000000
	var out []uint32
	for _, s := range f.Sections() {
		if s.Characteristics&executable == 0 {
			continue
		}
		for off := uint32(0); off < s.VirtualSize; off += 16 {
			out = append(out, s.RVA+off)
		}
	}
	return out
}

func TestAgainstSymbolizer(t *testing.T) {
	tool(t, "llvm-symbolizer")
	pdbs := corpusPDBs(t)
	var names []string
	for name := range pdbs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compareSymbolizer(t, pdbs[name], name) })
	}
}

// knownDifferences are the reasons why llvm-symbolizer 19 answers differently,
// each checked by explain against the records at the address.
var knownDifferences = []string{
	"first row",    // of several rows at one offset it takes the first; DIA and we take the last: the others cover no byte
	"block edge",   // before the first row, and where blocks of two files interleave, it takes the first or last row of a block
	"folded",       // of two functions at one address it mixes the lines
	"hidden line",  // it reports 0xF00F00 and 0xFEEFEE, which mean "no line"
	"site gap",     // it does not count ranges of an inline site that end where the next begins with a length
	"site line",    // within an inline site it is off by a row
	"cross module", // it cannot resolve ids that another module exports
}

func compareSymbolizer(t *testing.T, b []byte, name string) {
	f := openBytes(t, b, name)
	rvas := codeAddresses(f)
	answers := symbolize(t, f, withoutImports(f, b), rvas)
	diff := map[string]int{}
	for i, rva := range rvas {
		if answers[i].Crashed {
			diff["crashed"]++
			continue
		}
		loc, _ := f.Lookup(rva)
		got, want := frames(loc), wanted(answers[i])
		if slices.Equal(got, want) {
			continue
		}
		reason := explain(f, rva, got, want)
		diff[reason]++
		if !slices.Contains(knownDifferences, reason) && diff[reason] <= 8 {
			t.Errorf("%#x (%s)\n got %+v\nwant %+v", rva, loc.Source, got, want)
		}
	}
	t.Logf("%s: %d addresses, differences explained: %v", name, len(rvas), diff)
	for _, d := range f.Damage() {
		t.Error("damage:", d)
	}
}

// frame is a function and a line, as both sides give them.
type frame struct {
	name, file string
	line       uint32
}

func frames(loc Location) []frame {
	var out []frame
	for _, in := range loc.Inlines {
		out = append(out, frame{in.Function, in.File, in.Line})
	}
	if loc.Source == SourceProc || loc.Line != 0 {
		out = append(out, frame{loc.Function, loc.File, loc.Line})
	}
	return out
}

func wanted(s symbolized) []frame {
	var out []frame
	for _, fr := range s.Symbol {
		if fr.FunctionName != "" || fr.Line != 0 {
			out = append(out, frame{fr.FunctionName, fr.FileName, fr.Line})
		}
	}
	return out
}

// withoutImports gives every inline site whose function another module exports
// the number of a function that exists: llvm-symbolizer crashes on them.
func withoutImports(f *File, b []byte) []byte {
	function := uint32(0)
	f.ids().scan(func(id uint32, _ int64, kind typeKind, _ *cursor.Cursor) bool {
		function = id
		return kind != idFunction
	})
	b = slices.Clone(b)
	le := binary.LittleEndian
	for i := 0; i+14 <= len(b); i += 2 {
		if le.Uint16(b[i:]) == uint16(symInlineSite) && le.Uint32(b[i+10:])>>24 == 0x80 {
			le.PutUint32(b[i+10:], function)
		}
	}
	return b
}

// siteAt is an inline site that covers an address.
type siteAt struct {
	name     string
	imported bool
	gap      bool     // llvm-symbolizer does not find it
	lines    []uint32 // of all its rows
}

// sitesAt returns the sites of Lookup, innermost first, with what explains
// another answer.
func sitesAt(f *File, rva uint32) (out []siteAt, rows rowsAt) {
	piece, ok := f.contribs().find(rva)
	m := f.module(int(piece.module))
	if !ok || m == nil {
		return nil, rows
	}
	rows = findRows(m, rva)
	v, ok := m.code.innermost(rva)
	if !ok || !v.kind.isProc() {
		return nil, rows
	}
	c := cursor.New(m.symbols, "", -1)
	c.Seek(int(v.record))
	var r record
	for depth := 0; nextRecord(c, &r); {
		if r.kind.opensScope() {
			depth++
		} else if r.kind.closesScope() {
			depth--
		}
		if depth == 0 {
			break
		}
		if r.kind != symInlineSite {
			continue
		}
		copied := r
		if _, ok := f.inlineSite(m, &copied, chunkAddress{0, rva - v.start}); ok {
			out = append(out, describeSite(f, m, &r, rva-v.start))
		}
	}
	slices.Reverse(out)
	for i := len(out) - 2; i >= 0; i-- {
		out[i].gap = out[i].gap || out[i+1].gap // it does not look inside a site that it did not find
	}
	return out, rows
}

func describeSite(f *File, m *module, r *record, offset uint32) siteAt {
	r.body.Skip(8)
	id := r.body.U32()
	begin, _ := m.findInlinee(id)
	s := siteAt{name: f.inlineeName(m, id), imported: id>>31 != 0}
	raw := r.body
	s.gap = !containsByLengths(&raw, offset)
	decodeAnnotations(&r.body, func(a annotationRow) bool {
		s.lines = append(s.lines, uint32(int64(begin.line)+a.line))
		return true
	})
	return s
}

// containsByLengths counts only the ranges that end with an explicit length.
func containsByLengths(c *cursor.Cursor, offset uint32) bool {
	at, inside := uint32(0), false
	for c.Left() > 0 {
		op := annotationUint(c)
		if op == annotEnd {
			break
		}
		a := annotationUint(c)
		switch op {
		case annotCodeOffset, annotChangeCodeOffset:
			at += a
			inside = inside || offset >= at
		case annotChangeCodeAndLineOffset:
			at += a & 15
			inside = inside || offset >= at
		case annotChangeCodeLength:
			at += a
			if inside && offset < at {
				return true
			}
			inside = false
		case annotChangeCodeLengthAndStart:
			at += annotationUint(c)
			if offset >= at && offset < at+a {
				return true
			}
			inside = false
		}
	}
	return false
}

// rowsAt holds the lines of rows that an address could be taken to belong to.
type rowsAt struct {
	here   []uint32 // rows at the offset of the one that covers it
	edges  []uint32 // first and last rows of the table's blocks
	folded []uint32 // rows of other line tables of the same code
}

func findRows(m *module, rva uint32) (out rowsAt) {
	best, ok := m.lines.code.innermost(rva)
	for _, v := range m.lines.code {
		if !ok || rva < v.start || rva >= v.end {
			continue
		}
		here, edges := scanRows(m, v, rva)
		if v == best {
			out.here, out.edges = here, edges
		} else {
			out.folded = append(out.folded, here...)
		}
	}
	return out
}

func scanRows(m *module, v interval, rva uint32) (here, edges []uint32) {
	le := binary.LittleEndian
	sub := m.c13[v.record:][:le.Uint32(m.c13[v.record-4:])]
	best := uint32(0)
	for at := uint32(12); at+12 <= uint32(len(sub)); at += le.Uint32(sub[at+8:]) {
		for i := range le.Uint32(sub[at+4:]) {
			offset, line := le.Uint32(sub[at+12+8*i:]), le.Uint32(sub[at+16+8*i:])&0xFFFFFF
			if i == 0 || i == le.Uint32(sub[at+4:])-1 {
				edges = append(edges, line)
			}
			switch {
			case offset > rva-v.start:
			case offset > best:
				best, here = offset, []uint32{line}
			case offset == best:
				here = append(here, line)
			}
		}
	}
	return here, edges
}

// explain says why the answers differ, "" when it does not know.
func explain(f *File, rva uint32, got, want []frame) string {
	sites, rows := sitesAt(f, rva)
	if len(got) == 0 && len(want) == 1 && want[0].name == "" && slices.Contains(rows.edges, want[0].line) {
		return "block edge"
	}
	if len(sites)+1 != len(got) || len(got) == 0 || len(want) == 0 {
		return ""
	}
	reason := ""
	k := 0
	for i, s := range sites {
		if k >= len(want) {
			return ""
		}
		switch w := want[k]; {
		case s.gap:
			reason = "site gap"
			continue // not among the wanted
		case s.imported || reason == "cross module" && i > 0 && w.name != s.name:
			reason = "cross module"
			if w.line != got[i].line {
				continue
			}
		case w.name != s.name:
			return ""
		case w == got[i]:
		case slices.Contains(s.lines, w.line):
			reason = "site line"
		default:
			return ""
		}
		k++
	}
	if len(want) != k+1 {
		return ""
	}
	switch g, w := got[len(got)-1], want[k]; {
	case g.name != w.name:
		return ""
	case g == w:
	case w.line == lineNeverStep || w.line == lineAlwaysStep:
		reason = "hidden line"
	case slices.Contains(rows.here, w.line):
		reason = "first row"
	case slices.Contains(rows.edges, w.line):
		reason = "block edge"
	case slices.Contains(rows.folded, w.line):
		reason = "folded"
	default:
		return ""
	}
	return reason
}
