package cab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

const (
	helloC   = "#include <stdio.h>\r\n\r\nvoid main(void)\r\n{\r\n    printf(\"Hello, world!\\n\");\r\n}\r\n"
	welcomeC = "#include <stdio.h>\r\n\r\nvoid main(void)\r\n{\r\n    printf(\"Welcome!\\n\");\r\n}\r\n\r\n"
)

// publishedCabinet is the sample of [MS-CAB] 3: two stored files in a folder.
// Its checksum, 0x30A65ABD, and dates are Microsoft's.
func publishedCabinet() []byte {
	return append([]byte{
		'M', 'S', 'C', 'F', 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0,
		0x2c, 0, 0, 0, 0, 0, 0, 0, 3, 1, 1, 0, 2, 0, 0, 0, 0x22, 0x06, 0, 0,
		0x5e, 0, 0, 0, 1, 0, 0, 0,
		0x4d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x6c, 0x22, 0xba, 0x59, 0x20, 0, 'h', 'e', 'l', 'l', 'o', '.', 'c', 0,
		0x4a, 0, 0, 0, 0x4d, 0, 0, 0, 0, 0, 0x6c, 0x22, 0xe7, 0x59, 0x20, 0, 'w', 'e', 'l', 'c', 'o', 'm', 'e', '.', 'c', 0,
		0xbd, 0x5a, 0xa6, 0x30, 0x97, 0, 0x97, 0,
	}, helloC+welcomeC...)
}

func open(tb testing.TB, b []byte) *Cabinet {
	tb.Helper()
	c, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func extract(tb testing.TB, c *Cabinet, i int) string {
	tb.Helper()
	var out strings.Builder
	if _, err := c.Extract(c.Files()[i], &out, 1<<30); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func TestPublishedCabinet(t *testing.T) {
	b := publishedCabinet()
	if len(b) != 0xfd { // cbCabinet
		t.Fatalf("the sample has %d bytes", len(b))
	}
	c := open(t, b)
	want := []File{
		{Name: "hello.c", Size: 0x4d, Modified: time.Date(1997, 3, 12, 11, 13, 52, 0, time.UTC)},
		{Name: "welcome.c", Size: 0x4a, Offset: 0x4d, Modified: time.Date(1997, 3, 12, 11, 15, 14, 0, time.UTC)},
	}
	for i, f := range c.Files() {
		if f != want[i] {
			t.Errorf("file %d: %+v, want %+v", i, f, want[i])
		}
	}
	if a, b := extract(t, c, 0), extract(t, c, 1); a != helloC || b != welcomeC {
		t.Errorf("%q, %q", a, b)
	}
	if len(c.Damage()) != 0 {
		t.Errorf("damage: %v", c.Damage())
	}
}

// TestMSZIP reads a cabinet that gcab 1.5 made of the output of "seq 1 20000"
// and a small file; the hashes are sha256sum's.
func TestMSZIP(t *testing.T) {
	c, err := openFile(t, "testdata/gcab-mszip.cab")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ name, hash string }{
		{"numbers.txt", "f6351f5ead9a700e34275480b3856ea738122a7c57bdeb744a631251c069587a"},
		{"second.dmp", "29792872bb51f12f297d3afac4c3505a32a3a94c915acaeb1191e392710d0852"},
	} {
		f := c.Files()[i]
		if method := c.folders[f.Folder].method; f.Name != want.name || method != MSZIP {
			t.Errorf("file %d: %+v, %v", i, f, method)
		}
		sum := sha256.Sum256([]byte(extract(t, c, i)))
		if got := hex.EncodeToString(sum[:]); got != want.hash {
			t.Errorf("%s: sha256 %s, want %s", f.Name, got, want.hash)
		}
	}
}

// TestReservedAreas skips the areas that signatures are kept in, whether the
// blocks' checksums take them in or not.
func TestReservedAreas(t *testing.T) {
	t.Run("not summed", func(t *testing.T) { testReservedAreas(t, false) })
	t.Run("summed", func(t *testing.T) { testReservedAreas(t, true) })
}

func testReservedAreas(t *testing.T, summed bool) {
	data := testData(3, 70000)
	c := open(t, testCab{
		reserve:    true,
		sumReserve: summed,
		folders: []testFolder{
			{packed: [][]byte{[]byte("abc")}, plain: []int{3}},
			lzxFolder(data, 16, []testBlock{{1, 70000}}, 0),
		},
		files: []testFile{{name: "a", size: 3}, {name: `dir\b`, size: 69000, offset: 1000, folder: 1}},
	}.build())
	if got := extract(t, c, 0); got != "abc" {
		t.Errorf("%q", got)
	}
	if got := extract(t, c, 1); got != string(data[1000:]) {
		t.Errorf("second folder differs at %d", firstDifference([]byte(got), data[1000:]))
	}
}

func TestHeads(t *testing.T) {
	data := testData(4, 100000)
	c := open(t, testCab{
		folders: []testFolder{lzxFolder(data, 15, []testBlock{{2, 100000}}, 0), {method: 2, packed: [][]byte{{1}}, plain: []int{1}}},
		files: []testFile{
			{name: "last", size: 100, offset: 99900},
			{name: "across", size: 50000, offset: 32766}, // its head lies in two blocks
			{name: "empty", offset: 5},
			{name: "short", size: 2, offset: 40000},
			{name: "quantum", size: 1, folder: 1},
		},
	}.build())
	heads, err := c.Heads(8, 1<<20)
	if want := dump.UnsupportedFormat; codeOf(err) != want {
		t.Errorf("error %v, want code %s", err, want)
	}
	for i, want := range [][]byte{data[99900:99908], data[32766:32774], {}, data[40000:40002], nil} {
		if !bytes.Equal(heads[i], want) || (heads[i] == nil) != (want == nil) {
			t.Errorf("%s: % x, want % x", c.Files()[i].Name, heads[i], want)
		}
	}
	if heads, err = c.Heads(8, 50000); codeOf(err) != dump.Limit || heads[0] != nil || heads[1] == nil {
		t.Errorf("with a limit: %v, %v", heads, err)
	}
}

func codeOf(err error) dump.Code {
	var e *dump.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestRefused damages one thing at a time: each has its own code and words.
func TestRefused(t *testing.T) {
	stored := func(c testCab) testCab {
		c.folders = []testFolder{{packed: [][]byte{[]byte("hello")}, plain: []int{5}}}
		if c.files == nil {
			c.files = []testFile{{name: "a.dmp", size: 5}}
		}
		return c
	}
	flip := func(b []byte, at int) []byte {
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0x55
		return b
	}
	folder := func(f testFolder) []byte {
		return testCab{folders: []testFolder{f}, files: []testFile{{name: "a.dmp", size: 5}}}.build()
	}
	one := func(method uint16, packed []byte, plain int) []byte {
		return folder(testFolder{method, [][]byte{packed}, []int{plain}})
	}
	for _, test := range []struct {
		name    string
		cabinet []byte
		code    dump.Code
		words   string
	}{
		{"not a cabinet", []byte("MDMP and so on"), dump.UnsupportedFormat, "not a cabinet"},
		{"only magic", []byte("MSCF"), dump.Truncated, "CFHEADER"},
		{"version 2", flip(stored(testCab{}).build(), 25), dump.UnsupportedFormat, "version 84.3"},
		{"cut in the folders", stored(testCab{}).build()[:40], dump.BadCount, "CFFOLDER"},
		{"cut in the files", stored(testCab{}).build()[:50], dump.Truncated, "file 1 of 1"},
		{"cut in the data", stored(testCab{}).build()[:len(stored(testCab{}).build())-2], dump.Truncated, "needs 5 bytes, 3 left"},
		{"no such folder", stored(testCab{files: []testFile{{name: "a.dmp", size: 5, folder: 1}}}).build(), dump.BadRecord, "folder 1 of 1"},
		{"from the cabinet before", stored(testCab{flags: 1, files: []testFile{{name: "a.dmp", size: 5, folder: 0xfffd}}}).build(), dump.UnsupportedFormat, `"before.cab" before`},
		{"into the next cabinet", stored(testCab{flags: 2, files: []testFile{{name: "a.dmp", size: 5, folder: 0xfffe}}}).build(), dump.UnsupportedFormat, `"after.cab" after`},
		{"both", stored(testCab{flags: 3, files: []testFile{{name: "a.dmp", size: 5, folder: 0xffff}}}).build(), dump.UnsupportedFormat, "continues in another cabinet"},
		{"block goes on in the next", one(0, []byte("hello"), 0), dump.UnsupportedFormat, "continues in another cabinet"},
		{"data changed", flip(stored(testCab{}).build(), -1), dump.BadRecord, "checksum mismatch"},
		{"sizes differ", one(0, []byte("hello"), 6), dump.BadRecord, "stored block of 5 bytes"},
		{"block too large", one(0, []byte("hello"), 32769), dump.BadRecord, "at most"},
		{"Quantum", one(2, []byte("hello"), 5), dump.UnsupportedFormat, "Quantum"},
		{"method 7", one(7, []byte("hello"), 5), dump.UnsupportedFormat, "method 7"},
		{"LZX window of 4 GB", one(3|22<<8, []byte("hello"), 5), dump.UnsupportedFormat, "2^22"},
		{"MSZIP without CK", one(1, []byte("hello"), 5), dump.BadRecord, "CK"},
		{"MSZIP cut", one(1, []byte("CK\x4b"), 5), dump.BadRecord, "claims 5 bytes"},
		{"MSZIP too long", one(1, []byte("CK\x01\x06\x00\xf9\xffhello!"), 5), dump.BadRecord, "does not end"},
		{"LZX empty", one(3|15<<8, nil, 5), dump.BadRecord, "end early"},
		{"LZX block type 0", one(3|15<<8, make([]byte, 64), 5), dump.BadRecord, "undefined type 0"},
		{"folder too short", stored(testCab{files: []testFile{{name: "a.dmp", size: 9}}}).build(), dump.Truncated, "ends after 5"},
		{"over the limit", stored(testCab{files: []testFile{{name: "a.dmp", size: 1001}}}).build(), dump.Limit, "limit of 1000"},
		{"begins over the limit", stored(testCab{files: []testFile{{name: "a.dmp", size: 5, offset: 996}}}).build(), dump.Limit, "limit of 1000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Open(bytes.NewReader(test.cabinet), int64(len(test.cabinet)))
			if err == nil {
				_, err = c.Extract(c.Files()[0], new(bytes.Buffer), 1000)
			}
			if codeOf(err) != test.code || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v (%s), want code %s and %q", err, codeOf(err), test.code, test.words)
			}
		})
	}
}

// TestPartial keeps what is right before damage.
func TestPartial(t *testing.T) {
	data := testData(5, 100000)
	b := testCab{folders: []testFolder{lzxFolder(data, 15, []testBlock{{1, 100000}}, 0)}, files: []testFile{{name: "a", size: 100000}, {name: "b"}}}.build()
	b[len(b)-1] ^= 1
	c := open(t, b)
	var out bytes.Buffer
	n, err := c.Extract(c.Files()[0], &out, 1<<20)
	if codeOf(err) != dump.BadRecord || n != 3*32768 || !bytes.Equal(out.Bytes(), data[:n]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	files := bytes.Index(b, []byte{'b', 0})
	short := open(t, b[:files])
	if len(short.Files()) != 1 || len(short.Damage()) != 2 {
		t.Errorf("cut in the second file's entry: %v, %v", short.Files(), short.Damage())
	}
}

func TestUncheckedBlocks(t *testing.T) {
	c := open(t, testCab{noChecksum: true, folders: []testFolder{{packed: [][]byte{[]byte("hello")}, plain: []int{5}}}, files: []testFile{{name: "a", size: 5}}}.build())
	if got := extract(t, c, 0); got != "hello" {
		t.Errorf("%q", got)
	}
}

func TestDOSTime(t *testing.T) {
	for _, bad := range [][2]uint16{{0, 0}, {0x5c3f & 0xfe1f, 0}, {0x5dff, 0}, {0x5c21, 0xc000}, {0x5c21, 0x07e0}} {
		if got := dosTime(bad[0], bad[1]); !got.IsZero() {
			t.Errorf("%#x %#x: %v, want none", bad[0], bad[1], got)
		}
	}
}
