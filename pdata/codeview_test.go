package pdata

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"dumptriage/dump"
)

// TestFixtureCodeView compares with PDBInfo in fixture.readobj.txt, which
// prints a GUID's first three fields as numbers.
func TestFixtureCodeView(t *testing.T) {
	b := readTest(t, "testdata/fixture.dll")
	cv := openTest(t, b, "fixture.dll").CodeView()
	g := cv.GUID
	text := "PDBGUID: {" + hex.EncodeToString([]byte{g[3], g[2], g[1], g[0]}) + "-" + hex.EncodeToString([]byte{g[5], g[4]}) + "-" +
		hex.EncodeToString([]byte{g[7], g[6]}) + "-" + hex.EncodeToString(g[8:10]) + "-" + hex.EncodeToString(g[10:]) + "}"
	golden := readTest(t, "testdata/fixture.readobj.txt")
	if cv.Signature != "RSDS" || cv.Age != 1 || cv.PDB != "fixture.pdb" || !bytes.Contains(bytes.ToLower(golden), bytes.ToLower([]byte(text))) {
		t.Errorf("%+v: %s is not in the golden", cv, text)
	}
}

var (
	guid = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	rsds = slices.Concat([]byte("RSDS"), guid, u32s(3), []byte(`c:\x\ä.pdb`+"\x00junk"))
	nb10 = slices.Concat([]byte("NB10"), u32s(0, 0x38b369c4, 2), []byte("old.pdb\x00"))
)

func TestParseCodeView(t *testing.T) {
	for _, tt := range []struct {
		in   []byte
		want dump.CodeView
	}{
		{rsds, dump.CodeView{Signature: "RSDS", GUID: [16]byte(guid), Age: 3, PDB: `c:\x\ä.pdb`}},
		{nb10, dump.CodeView{Signature: "NB10", Stamp: 0x38b369c4, Age: 2, PDB: "old.pdb"}},
		{rsds[:24], dump.CodeView{Signature: "RSDS", GUID: [16]byte(guid), Age: 3}},
		{rsds[:23], dump.CodeView{}},
		{nb10[:15], dump.CodeView{}},
		{[]byte("NB11...................."), dump.CodeView{}},
		{nil, dump.CodeView{}},
	} {
		if got := ParseCodeView(tt.in); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

// debugPE has a debug directory at 0x4000 of two entries, the second a
// CodeView record of the claimed size at an RVA and a file offset.
func debugPE(size, rva, off uint32) *peBuilder {
	data := make([]byte, 0x200)
	copy(data, u32s(0, 0, 0, 13, 4, 0x4100, 0, 0, 0, 0, 2, size, rva, off)) // type 13: POGO
	copy(data[0x80:], rsds)
	p := newPE().add(0x1000, scnCode, info).add(0x4000, scnData, data)
	p.dirs[6] = [2]uint32{0x4000, 56}
	return p
}

func TestCodeViewPlaces(t *testing.T) {
	const off = 0x600 + 0x80 // headers 0x400, code 0x200, then this section
	for _, tt := range []struct {
		name           string
		size, rva, off uint32
		age            uint32 // 0: no record
	}{
		{"by RVA", uint32(len(rsds)), 0x4080, 0, 3},
		{"by offset, not mapped", uint32(len(rsds)), 0, off, 3},
		{"RVA outside the image", uint32(len(rsds)), 0x800000, off, 3},
		{"size of four gigabytes", 0xffffffff, 0x4080, off, 3},
		{"size too small", 23, 0x4080, off, 0},
		{"nowhere", uint32(len(rsds)), 0, 0xfffffff0, 0},
	} {
		if cv := debugPE(tt.size, tt.rva, tt.off).open(t).CodeView(); cv.Age != tt.age {
			t.Errorf("%s: %+v", tt.name, cv)
		}
	}
	p := debugPE(uint32(len(rsds)), 0x4080, 0)
	p.dirs[6][1] = 0xffffffff // the directory's size is a claim too
	if cv := p.open(t).CodeView(); cv.Age != 3 {
		t.Errorf("huge directory: %+v", cv)
	}
}
