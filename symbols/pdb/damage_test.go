package pdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"dumptriage/dump"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		head   string
		format Format
		says   string
	}{
		{"Microsoft C/C++ program database 2.00\r\n\x1aJG\x00\x00", FormatMSF2, "MSF 2.00"},
		{"BSJB\x01\x00\x01\x00", FormatPortable, "portable PDB"},
		{"MZ\x90\x00", FormatUnknown, "executable image"},
		{"MSCF\x00", FormatUnknown, "cabinet"},
		{"\x28\xb5\x2f\xfd", FormatUnknown, "zstd"},
		{"", FormatUnknown, "empty"},
		{"some text", FormatUnknown, "not a PDB"},
		{magicMSF7[:20], FormatUnknown, "not a PDB"},
	} {
		r := strings.NewReader(c.head)
		if got := Sniff(r); got != c.format {
			t.Errorf("%q: %q, want %q", c.head, got, c.format)
		}
		_, err := Open(r, int64(len(c.head)), "f.pdb")
		wantError(t, c.head, err, dump.UnsupportedFormat, c.says)
	}
}

func wantError(t *testing.T, what string, err error, code dump.Code, says string) {
	t.Helper()
	var e *dump.Error
	if !errors.As(err, &e) {
		t.Errorf("%q: %v is no *dump.Error", what, err)
		return
	}
	if e.Code != code || e.File != "f.pdb" || !strings.Contains(e.Error(), says) {
		t.Errorf("%q: %v (%s), want %s with %q", what, e, e.Code, code, says)
	}
}

// Each case alters one field of a good container.
func TestBrokenContainers(t *testing.T) {
	good := build(everything())
	le := binary.LittleEndian
	blocks := le.Uint32(good[40:])
	mapAt := int(le.Uint32(good[52:])) * testBlock
	dirAt := int(le.Uint32(good[mapAt:])) * testBlock
	list := dirAt + 4 + 4*int(le.Uint32(good[dirAt:])) // of stream 1, as stream 0 is empty
	for _, c := range []struct {
		name  string
		alter func(b []byte) []byte
		code  dump.Code
		says  string
	}{
		{"block size 0", put(32, 0), dump.BadRecord, "block size 0"},
		{"block size no power", put(32, 768), dump.BadRecord, "block size 768"},
		{"block size too large", put(32, 1<<20), dump.BadRecord, "block size"},
		{"directory larger than the file", put(44, 0xFFFFFF00), dump.BadCount, "directory"},
		{"block map out of the file", put(52, blocks+5), dump.OutOfRange, "block map"},
		{"block map is the superblock", put(52, 0), dump.OutOfRange, "block map"},
		{"directory block out of the file", put(mapAt, blocks), dump.OutOfRange, "directory"},
		{"more streams than bytes", put(dirAt, 0x40000000), dump.BadCount, "claims"},
		{"stream 1 out of the file", put(list, blocks+100), dump.OutOfRange, "stream 1"},
		{"stream 1 larger than the file", put(dirAt+8, 0x7FFFFFFF), dump.BadCount, "stream 1"},
		{"stream 1 does not exist", put(dirAt+8, nilStream), dump.OutOfRange, "does not exist"},
		{"stream 1 too small", put(dirAt+8, 5), dump.Truncated, "PDB info"},
		{"cut in the superblock", cut(40), dump.Truncated, "MSF"},
		{"cut before the directory", cut(dirAt), dump.Truncated, "ends early"},
	} {
		b := c.alter(bytes.Clone(good))
		_, err := Open(bytes.NewReader(b), int64(len(b)), "f.pdb")
		wantError(t, c.name, err, c.code, c.says)
	}
}

func put(at int, v uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
}

func cut(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }

// A stream that lists a block twice is refused, the rest is read.
func TestStreamTwice(t *testing.T) {
	im := everything()
	im.symbols = append(im.symbols, symbol(0x1111, func(w *writer) { w.raw(make([]byte, testBlock)) })...)
	b := build(im)
	le := binary.LittleEndian
	dirAt := int(le.Uint32(b[int(le.Uint32(b[52:]))*testBlock:])) * testBlock
	// Make the module's stream longer by a block: its list then runs into the next
	// stream's, so give it its own first block again.
	at := dirAt + 4 + 4*int(le.Uint32(b[dirAt:]))
	for s := range testModule {
		at += 4 * int((le.Uint32(b[dirAt+4+4*s:])+testBlock-1)/testBlock)
	}
	if le.Uint32(b[dirAt+4+4*testModule:]) <= testBlock {
		t.Fatal("the module's stream has one block")
	}
	le.PutUint32(b[at+4:], le.Uint32(b[at:]))
	f := openBytes(t, b, "f.pdb")
	loc, _ := f.Lookup(0x1104)
	if loc.Source != SourcePublic || loc.Function != "?hot@@YAXXZ" {
		t.Errorf("%+v: want the public symbol", loc)
	}
	d := f.Damage()
	if len(d) != 1 || d[0].Code != dump.Cycle || !strings.Contains(d[0].Error(), "twice") {
		t.Errorf("damage: %v", d)
	}
}

// Cut anywhere and with any byte altered, a file gives an error or an answer.
func TestCutsAndFlips(t *testing.T) {
	good := build(everything())
	for n := 0; n < len(good); n += 61 {
		exercise(good[:n])
	}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0xFF
		exercise(b)
	}
}

// exercise asks a file everything.
func exercise(b []byte) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), "f.pdb")
	if err != nil {
		return
	}
	for _, rva := range []uint32{0, 0x1000, 0x1104, 0x1130, 0x1145, 0x1152, 0x1168, 0x1175, 0x1803, 0x2104, 0xFFFFFFFF} {
		f.Lookup(rva)
		f.FrameData(rva)
	}
	n := 0
	for range f.Publics() {
		if n++; n > 1000 {
			break
		}
	}
	f.Modules()
	f.Struct("shapes::Box")
	f.Struct("outer")
	f.TypeName(0x1003)
	f.Damage()
}

// A file that claims much takes little memory.
func TestClaimsTakeNoMemory(t *testing.T) {
	b := build(everything())
	dbi := bytes.Index(b, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0x77, 0x09, 0x31, 0x01})
	if dbi < 0 {
		t.Fatal("no DBI header")
	}
	for _, at := range []int{24, 28, 48} {
		binary.LittleEndian.PutUint32(b[dbi+at:], 0x7FFFFFF0)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exercise(b)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated for a file of %d", got, len(b))
	}
}

type failingReader struct{ io.ReaderAt }

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("disk on fire") }

func TestReadError(t *testing.T) {
	_, err := Open(failingReader{}, 1<<20, "f.pdb")
	wantError(t, "failing disk", err, dump.IO, "disk on fire")
}

// Types that each refer twice to the one before: written out in full the last
// would take 2^60 steps.
func TestTypesThatExplode(t *testing.T) {
	var records [][]byte
	id := uint32(0x1000)
	previous := uint32(0x74) // int
	for range 60 {
		arguments := id
		records = append(records,
			symbol(uint16(typeArgList), func(w *writer) { w.u32(2, previous, previous) }),
			symbol(uint16(typeProcedure), func(w *writer) { w.u32(previous).u8(0, 0).u16(2).u32(arguments) }))
		previous, id = id+1, id+2
	}
	circle := id
	records = append(records, symbol(uint16(typePointer), func(w *writer) { w.u32(circle, 0x1000C) }))
	im := image{}
	f := openBytes(t, buildMSF([][]byte{nil, im.info(), types(records), nil, nil}), "f.pdb")
	// The first procedure: int (int, int).
	if got := f.TypeName(0x1001); got != "int (int, int)" {
		t.Errorf("%q", got)
	}
	if got := f.TypeName(previous); len(got) > maxTypeText {
		t.Errorf("%d bytes", len(got))
	}
	if got := f.TypeName(circle); len(got) > 100 {
		t.Errorf("a pointer to itself: %q", got)
	}
}
