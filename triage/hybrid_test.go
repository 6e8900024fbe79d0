package triage

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
)

// TestDamagedCodeMap: an image whose metadata of a second machine's code is damaged is a
// warning of the answer, and its x64 frames are found all the same.
func TestDamagedCodeMap(t *testing.T) {
	const metadata = 0x3140 // in the file's .rdata, which is 0x3000 in memory; by llvm-readobj
	good, err := os.ReadFile("../pdata/testdata/arm64ec/ec.dll")
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []bool{false, true} {
		b := append([]byte(nil), good...)
		if damage {
			raw := sectionOffset(t, b, 0x3000)
			binary.LittleEndian.PutUint32(b[raw+metadata-0x3000:], 0xdead)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ec.dll"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := Open("../fixtures/arm64/ecdemo.dmp")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		inc, err := Analyze(d, nil, "", Options{Images: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		defer inc.Close()
		var told []*dump.Error
		for _, e := range inc.Errors {
			if e.Stream == "CHPE metadata" {
				told = append(told, e)
			}
		}
		if damage != (len(told) == 1 && told[0].Warning && told[0].Code == dump.UnsupportedFormat) {
			t.Errorf("damaged %v: the answer tells %v", damage, told)
		}
	}
}

// sectionOffset returns where the section of an RVA lies in a PE file.
func sectionOffset(t *testing.T, b []byte, rva uint32) int {
	t.Helper()
	nt := binary.LittleEndian.Uint32(b[0x3c:])
	sections := int(nt) + 24 + int(binary.LittleEndian.Uint16(b[nt+20:]))
	for i := range int(binary.LittleEndian.Uint16(b[nt+6:])) {
		s := b[sections+40*i:]
		if binary.LittleEndian.Uint32(s[12:]) == rva {
			return int(binary.LittleEndian.Uint32(s[20:]))
		}
	}
	t.Fatal("no such section")
	return 0
}
