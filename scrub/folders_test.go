package scrub

import "testing"

// Folders of a PDB's path become backslashes, and nothing else in the record changes.
func TestHidePDB(t *testing.T) {
	id := "0123456789abcdef\x01\x00\x00\x00" // GUID and age
	for in, want := range map[string]string{
		"xxRSDS" + id + `C:\Users\ann\app.pdb` + "\x00D:\\y":   "xxRSDS" + id + `\\\\\\\\\\\\\app.pdb` + "\x00D:\\y",
		"RSDS" + id + "/home/ann/a.pdb\x00":                    "RSDS" + id + `\\\\\\\\\` + "/a.pdb\x00",
		"RSDS" + id + "a.pdb\x00":                              "RSDS" + id + "a.pdb\x00",
		"RSDS" + id + `C:\cut`:                                 "RSDS" + id + `\\\cut`,
		"NB10\x00\x00\x00\x00stmpage." + `C:\b\a.pdb` + "\x00": "NB10\x00\x00\x00\x00stmpage." + `\\\\\a.pdb` + "\x00",
		"RSDS": "RSDS",
	} {
		b := []byte(in)
		hidePDB(b, "RSDS", 24)
		hidePDB(b, "NB10", 16)
		if string(b) != want {
			t.Errorf("%q became %q, want %q", in, b, want)
		}
	}
}

func TestByteAt(t *testing.T) {
	blocks := []block{{0x10, []byte{1, 2}}, {0x20, []byte{3}}}
	for va, want := range map[uint64]byte{0x10: 1, 0x11: 2, 0x20: 3} {
		if at := byteAt(blocks, va); at == nil || *at != want {
			t.Errorf("%#x: %v", va, at)
		}
	}
	for _, va := range []uint64{0, 0xf, 0x12, 0x1f, 0x21} {
		if byteAt(blocks, va) != nil {
			t.Errorf("there is a byte at %#x", va)
		}
	}
}
