package symbols

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"dumptriage/pdata"
)

// asARM64 makes an x64 image one of ARM64 and its function table one of packed
// entries, each a begin and a length in bytes.
func asARM64(t *testing.T, b []byte, entries ...[2]uint32) *pdata.Image {
	t.Helper()
	le := binary.LittleEndian
	nt := le.Uint32(b[0x3c:])
	le.PutUint16(b[nt+4:], 0xaa64)
	dir := b[nt+24+112+8*3:] // IMAGE_DIRECTORY_ENTRY_EXCEPTION
	le.PutUint32(dir[4:], uint32(8*len(entries)))
	table := fileAt(b, le.Uint32(dir))
	for i, e := range entries {
		le.PutUint32(table[8*i:], e[0])
		le.PutUint32(table[8*i+4:], 1|e[1]/4<<2) // packed, of so many instructions
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "arm.dll")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// fileAt returns what of an image file lies at an RVA, and behind it.
func fileAt(b []byte, rva uint32) []byte {
	le := binary.LittleEndian
	nt := le.Uint32(b[0x3c:])
	sections := nt + 24 + uint32(le.Uint16(b[nt+20:]))
	for i := range uint32(le.Uint16(b[nt+6:])) {
		s := b[sections+40*i:]
		if at := le.Uint32(s[12:]); rva >= at && rva-at < le.Uint32(s[16:]) {
			return b[le.Uint32(s[20:])+rva-at:]
		}
	}
	return nil
}

// The function table of ARM64 too proves that an export is another function's.
func TestNameOfARM64(t *testing.T) {
	im := asARM64(t, nameImage().File(), [2]uint32{0x1100, 0x60}, [2]uint32{0x2100, 0x40}, [2]uint32{0x2200, 0x40})
	for _, x := range []struct {
		lookup uint32
		want   Name
	}{
		{0x1104, Name{Function: "First", Offset: 4, Source: SourceExport}},
		{0x1140, Name{Function: "FirstMiddle", Offset: 0x10, Source: SourceExport}},
		{0x2204, Name{Function: "fn@2200", Offset: 4, Source: SourcePdata}},
		{0x2180, Name{Source: SourceNone}}, // behind Second, which ends before it
		{0x2508, Name{Function: "Leaf", Offset: 8, Source: SourceExport}},
	} {
		if got := NameOf(im, x.lookup, x.lookup); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%#x: %+v, want %+v", x.lookup, got, x.want)
		}
	}
}
