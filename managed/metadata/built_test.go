package metadata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
)

// written is metadata put together by hand from II.24.2: rows are given byte by byte.
type written struct {
	tables   string // name of the table stream
	heaps    byte   // HeapSizes
	rows     map[int]uint32
	sorted   uint64
	data     []byte // of the rows, tables in order
	strings  string
	blob     []byte
	guid     []byte
	more     []string // names of further, empty streams
	extra    []byte   // behind the counts
	streamAt int      // offset of the table stream, of the last bytes written
}

func le(size int, v ...uint32) (b []byte) {
	for _, n := range v {
		b = append(b, binary.LittleEndian.AppendUint32(nil, n)[:size]...)
	}
	return b
}

func (w *written) bytes() []byte {
	var valid uint64
	var counts []byte
	for t := range 64 {
		if n, ok := w.rows[t]; ok {
			valid |= 1 << t
			counts = append(counts, le(4, n)...)
		}
	}
	tables := append(le(4, 0), 2, 0, w.heaps, 1)
	tables = binary.LittleEndian.AppendUint64(tables, valid)
	tables = binary.LittleEndian.AppendUint64(tables, w.sorted)
	tables = append(append(append(tables, counts...), w.extra...), w.data...)
	if w.tables == "" {
		w.tables = "#~"
	}
	streams := []struct {
		name string
		data []byte
	}{{w.tables, tables}, {"#Strings", []byte(w.strings)}, {"#Blob", w.blob}, {"#GUID", w.guid}}
	for _, name := range w.more {
		streams = append(streams, struct {
			name string
			data []byte
		}{name, nil})
	}
	head := append([]byte("BSJB\x01\x00\x01\x00\x00\x00\x00\x00\x0c\x00\x00\x00v4.0.30319\x00\x00\x00\x00"), byte(len(streams)), 0)
	size := len(head)
	for _, s := range streams {
		size += 8 + (len(s.name)+4)&^3
	}
	var body []byte
	for _, s := range streams {
		head = append(head, le(4, uint32(size+len(body)), uint32(len(s.data)))...)
		head = append(head, s.name...)
		head = append(head, make([]byte, 4-len(s.name)%4)...)
		body = append(body, s.data...)
		body = append(body, make([]byte, -len(body)&3)...)
	}
	w.streamAt = len(head)
	return append(head, body...)
}

func (w *written) open(t testing.TB) *Metadata {
	t.Helper()
	b := w.bytes()
	m, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names is a #Strings heap and where each name lies in it.
func names(list ...string) (heap string, at map[string]uint32) {
	heap, at = "\x00", map[string]uint32{}
	for _, n := range list {
		at[n] = uint32(len(heap))
		heap += n + "\x00"
	}
	return heap, at
}

// twoTypes has type A with methods one and two, B with none, and N.C with three.
func twoTypes() *written {
	heap, at := names("A", "B", "C", "N", "one", "two", "three")
	typ := func(name, namespace string, first uint32) []byte {
		return append(le(4, 0), le(2, at[name], at[namespace], 0, 1, first)...)
	}
	method := func(name string, rva uint32) []byte {
		return append(le(4, rva), le(2, 0, 0, at[name], 1, 1)...)
	}
	w := &written{strings: heap, blob: []byte{0, 3, 0x00, 0x00, 0x01}, rows: map[int]uint32{2: 3, 6: 3}} // static Void ()
	w.data = bytes.Join([][]byte{typ("A", "", 1), typ("B", "", 3), typ("C", "N", 3), method("one", 0x100), method("two", 0), method("three", 0x100)}, nil)
	return w
}

func TestOwner(t *testing.T) {
	m := twoTypes().open(t)
	for rid, want := range []string{"", "A.one()", "A.two()", "N.C.three()"} {
		if rid == 0 {
			continue
		}
		got, err := m.Method(0x06000000 | uint32(rid))
		if got.String() != want || err != nil || !got.Static || got.Returns != "Void" {
			t.Errorf("%d: %s, %v; want %s", rid, got, err, want)
		}
	}
	if got, err := m.MethodByRVA(0x100); got.Name != "one" || err != nil { // three has the same body
		t.Errorf("%s, %v", got, err)
	}
	for _, rva := range []uint32{0, 0x101} { // 0 is no body
		if got, err := m.MethodByRVA(rva); got.Name != "" || code(err) != dump.OutOfRange {
			t.Errorf("%#x: %s, %v", rva, got, err)
		}
	}
	if m.Version() != "v4.0.30319" {
		t.Errorf("%q", m.Version())
	}
}

func code(err error) dump.Code {
	var e *dump.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Code
}

// Tokens of no table, of no row, and of tables that have no such thing.
func TestTokens(t *testing.T) {
	m := twoTypes().open(t)
	for _, token := range []uint32{0, 0x06000000, 0x06000004, 0x06ffffff, 0x02000001, 0x0a000001, 0x2b000001, 0x70000001, 0xff000001} {
		if got, err := m.Method(token); code(err) != dump.OutOfRange {
			t.Errorf("%#x: method %+v, %v", token, got, err)
		}
	}
	for _, token := range []uint32{0, 0x02000000, 0x02000004, 0x06000001, 0x1b000001, 0x42000001} {
		if got, err := m.Type(token); code(err) != dump.OutOfRange {
			t.Errorf("%#x: type %+v, %v", token, got, err)
		}
	}
}

// In "#-" a type's list of methods may go by way of MethodPtr (edit-and-continue).
func TestMethodPtr(t *testing.T) {
	w := twoTypes()
	w.tables = "#-"
	w.rows[5] = 3
	types := w.data[:3*14]
	w.data = bytes.Join([][]byte{types, le(2, 3, 1, 2), w.data[3*14:]}, nil) // A has three and one, C has two
	m := w.open(t)
	for rid, want := range []string{"", "A.one()", "N.C.two()", "A.three()"} {
		if rid == 0 {
			continue
		}
		if got, err := m.Method(0x06000000 | uint32(rid)); got.String() != want || err != nil {
			t.Errorf("%d: %s, %v; want %s", rid, got, err, want)
		}
	}
}

// Heaps above 64 KiB and deltas of edit-and-continue (#JTD) have wide indexes; the
// latter also extra data behind the counts.
func TestWide(t *testing.T) {
	heap, at := names("A", "one")
	w := &written{strings: heap, heaps: 7, blob: []byte{0, 3, 0x20, 0x00, 0x01}, rows: map[int]uint32{2: 1, 6: 1}}
	w.data = bytes.Join([][]byte{le(4, 0, at["A"], 0), le(2, 0, 1, 1), le(4, 0x77), le(2, 0, 0), le(4, at["one"], 1), le(2, 1)}, nil)
	if got, err := w.open(t).Method(0x06000001); got.String() != "A.one()" || got.Static || got.RVA != 0x77 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	w.more, w.heaps, w.extra, w.tables = []string{"#JTD"}, 0x47, le(4, 0xabcdef), "#-"
	w.data = bytes.Join([][]byte{le(4, 0, at["A"], 0, 0, 1, 1), le(4, 0x77), le(2, 0, 0), le(4, at["one"], 1, 1)}, nil)
	if got, err := w.open(t).Method(0x06000001); got.String() != "A.one()" || got.RVA != 0x77 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// A Portable PDB by itself has the counts of the module's tables in #Pdb, and they
// make its indexes wide: here those of LocalScope to the module's methods. Its own
// tables hold no names of methods.
func TestPdb(t *testing.T) {
	pdb := append(make([]byte, 24), 0x40, 0, 0, 0, 0, 0, 0, 0)
	pdb = append(pdb, le(4, 0x10000)...)
	var rows [numTables]uint32
	m := &Metadata{in: chunk.New(bytes.NewReader(pdb), int64(len(pdb)))}
	external, err := m.readPdb(span{0, int64(len(pdb))})
	if err != nil || external[tMethodDef] != 0x10000 {
		t.Fatal(external, err)
	}
	m.setWidths(0, false, &rows, &external)
	if m.widths[index(tMethodDef)] != 4 || m.widths[index(tTypeDef)] != 2 || m.widths[methodDefOrRef] != 4 || m.widths[hasCustomDebugInformation] != 4 {
		t.Error(m.widths)
	}
	// 5 bits of tag leave 11 for the row
	external[tMethodDef] = 0x7ff
	if m.setWidths(0, false, &rows, &external); m.widths[hasCustomAttribute] != 2 || m.widths[index(tMethodDef)] != 2 {
		t.Error("0x7ff rows need no wide index")
	}
	external[tMethodDef] = 0x800
	if m.setWidths(0, false, &rows, &external); m.widths[hasCustomAttribute] != 4 || m.widths[methodDefOrRef] != 2 {
		t.Error("0x800 rows need a wide hasCustomAttribute")
	}
}

// Claims of the header that cannot be: each is refused by name, and at once.
func TestBadRoots(t *testing.T) {
	good := twoTypes()
	b := good.bytes()
	for _, tt := range []struct {
		name string
		at   int
		v    []byte
		want dump.Code
	}{
		{"signature", 0, []byte("BSJC"), dump.UnsupportedFormat},
		{"version of 4 GB", 12, le(4, 0xffffffff), dump.BadRecord},
		{"65,535 streams", 30, le(2, 0xffff), dump.Limit},
		{"no streams", 30, le(2, 0), dump.BadRecord},
		{"no tables", 32 + 8, []byte("#x"), dump.BadRecord},
		{"tables beyond the end", 32, le(4, 0xfffffff0), dump.OutOfRange},
		{"endless stream name", 32 + 8, bytes.Repeat([]byte("x"), 40), dump.BadRecord},
		{"4 G rows", good.streamAt + 24, le(4, 0xffffffff), dump.BadCount},
	} {
		bad := bytes.Clone(b)
		copy(bad[tt.at:], tt.v)
		if m, err := Open(bytes.NewReader(bad), int64(len(bad))); code(err) != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, m, err, tt.want)
		}
	}
}

// 16 million rows are claimed of tables that are not there: nothing is made for them,
// and what is asked for ends soon.
func TestClaimedRows(t *testing.T) {
	for _, sorted := range []uint64{0, 1 << tNestedClass} {
		w := twoTypes()
		w.sorted = sorted
		w.rows[2], w.rows[6], w.rows[0x29] = maxRID, maxRID, maxRID
		m := w.open(t)
		start := time.Now()
		got := testing.AllocsPerRun(1, func() {
			for range 20 {
				m.Method(0x06000001)
				m.Type(0x02000001)
				m.MethodByRVA(0x100)
			}
		})
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("took %v", d)
		}
		t.Logf("%v allocations, %v", got, time.Since(start))
	}
}

// Types nested in themselves, or deeper than any compiler does.
func TestNestingCycle(t *testing.T) {
	heap, at := names("A", "B")
	typ := func(name string) []byte { return append(le(4, 2), le(2, at[name], 0, 0, 1, 1)...) } // nested public
	w := &written{strings: heap, rows: map[int]uint32{2: 2, 0x29: 2}, sorted: 1 << tNestedClass}
	w.data = bytes.Join([][]byte{typ("A"), typ("B"), le(2, 1, 2, 2, 1)}, nil) // A in B in A
	if got, err := w.open(t).Type(0x02000001); code(err) != dump.Cycle {
		t.Errorf("%v, %v", got, err)
	}
	w = &written{strings: heap, rows: map[int]uint32{1: 2}}
	w.data = bytes.Join([][]byte{le(2, 2<<2|3, at["A"], 0), le(2, 1<<2|3, at["B"], 0)}, nil)
	if got, err := w.open(t).Type(0x01000001); code(err) != dump.Cycle {
		t.Errorf("%v, %v", got, err)
	}
}

// Types in each other that share the bytes of a long name have no name together.
func TestLongNesting(t *testing.T) {
	const deep = 40
	heap, at := names(strings.Repeat("A", maxName/deep+1))
	name := at[strings.Repeat("A", maxName/deep+1)]
	w := &written{strings: heap, rows: map[int]uint32{1: deep}}
	for i := range uint32(deep) {
		scope := (i+2)<<2 | 3 // the next row
		if i == deep-1 {
			scope = 0
		}
		w.data = append(w.data, le(2, scope, name, 0)...)
	}
	m := w.open(t)
	if got, err := m.Type(0x01000001); code(err) != dump.Limit || got.Name != "" {
		t.Errorf("%d bytes, %v", len(got.Name), err)
	}
	if got, err := m.Type(0x01000002); len(got.Name) != (deep-1)*(maxName/deep+2)-1 || err != nil {
		t.Errorf("%d bytes, %v", len(got.Name), err)
	}
}

// Rows of tables that are not sorted are looked through so often and no more.
func TestScanned(t *testing.T) {
	heap, at := names("A", "B")
	typ := func(name string) []byte { return append(le(4, 2), le(2, at[name], 0, 0, 1, 1)...) } // nested public
	w := &written{strings: heap, rows: map[int]uint32{2: 2, 0x29: 1}}
	w.data = bytes.Join([][]byte{typ("A"), typ("B"), le(2, 1, 2)}, nil) // A in B, and B in nothing
	m := w.open(t)
	if got, err := m.Type(0x02000001); got.Name != "B+A" || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	m.scanned.Store(maxScanned)
	if got, err := m.Type(0x02000001); got.Name != "" || code(err) != dump.Limit {
		t.Errorf("%+v, %v", got, err)
	}
}

// signed returns how a signature is shown, with its error.
func signed(t *testing.T, sig []byte) (Method, error) {
	w := twoTypes()
	w.blob = append([]byte{0}, append(packed(uint32(len(sig))), sig...)...)
	got, err := w.open(t).Method(0x06000001)
	if err != nil {
		t.Error(err)
	}
	return got, got.Signature
}

// packed writes a compressed integer (II.23.2).
func packed(n uint32) []byte {
	switch {
	case n < 0x80:
		return []byte{byte(n)}
	case n < 0x4000:
		return []byte{byte(n>>8) | 0x80, byte(n)}
	}
	return []byte{byte(n>>24) | 0xc0, byte(n >> 16), byte(n >> 8), byte(n)}
}

// Signatures that lie are refused, and the method still has its name.
func TestBadSignatures(t *testing.T) {
	deep := append([]byte{0, 1, 1}, bytes.Repeat([]byte{etSzArray}, 100)...)
	many := append([]byte{0}, packed(20000)...)
	many = append(many, 1)
	many = append(many, bytes.Repeat([]byte{0x0e}, 20000)...) // 20,000 strings
	for _, tt := range []struct {
		name string
		sig  []byte
		want dump.Code
	}{
		{"empty", nil, dump.Truncated},
		{"a field's", []byte{0x06, 0x08}, dump.BadRecord},
		{"a million parameters", append([]byte{0}, append(packed(1000000), 1, 8, 8)...), dump.Truncated},
		{"nested 100 deep", append(deep, 8), dump.Limit},
		{"longer than is shown", many, dump.Limit},
		{"unknown type", []byte{0, 0, 0x3f}, dump.BadRecord},
		{"class of no table", []byte{0, 0, etClass, 0x03}, dump.BadRecord},
		{"class of no row", []byte{0, 0, etClass, 0x7c}, dump.OutOfRange},
		{"array of rank 0", []byte{0, 0, etArray, 8, 0, 0, 0}, dump.BadRecord},
		{"array of rank 1000", append([]byte{0, 0, etArray, 8}, append(packed(1000), 0, 0)...), dump.BadRecord},
		{"array of a million sizes", append([]byte{0, 0, etArray, 8, 1}, packed(1000000)...), dump.Truncated},
		{"bad integer", []byte{0, 0xff}, dump.BadRecord},
		{"instance of nothing", []byte{0, 0, etGenericInst, 8, 8, 1, 8}, dump.BadRecord},
	} {
		got, err := signed(t, tt.sig)
		if code(err) != tt.want || got.FullName() != "A.one" || got.String() != "A.one" || got.Params != nil {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	if got, err := signed(t, []byte{0, 1, 1, etCModOpt, 0x05, etByRef, etArray, 8, 3, 2, 5, 6, 1, 0}); got.String() != "A.one(Int32[,,] ByRef)" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// Names without an end, outside the heap, and of bytes that are no UTF-8.
func TestBadNames(t *testing.T) {
	for _, tt := range []struct {
		heap string
		want string
		code dump.Code
	}{
		{"\x00\xff\xfeab\x00", "\uFFFDab", ""},
		{"\x00" + strings.Repeat("n", 4090) + "\x00", strings.Repeat("n", 4090), ""},
		{"\x00" + strings.Repeat("n", 9000) + "\x00", "", dump.BadRecord},
		{"\x00abc", "", dump.BadRecord},
		{"\x00", "", dump.OutOfRange},
	} {
		w := &written{strings: tt.heap, rows: map[int]uint32{2: 1}}
		w.data = append(le(4, 0), le(2, 1, 0, 0, 1, 1)...)
		if got, err := w.open(t).Type(0x02000001); got.Name != tt.want || code(err) != tt.code {
			t.Errorf("%.10q: %.20q, %v", tt.heap, got.Name, err)
		}
	}
}
