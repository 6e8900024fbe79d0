package pdata

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/fixtures"
)

// The program's entry and the table of imported functions, both by the file's
// headers and by those of an image in memory, which have readers of their own.
func TestEntryAndImports(t *testing.T) {
	for _, exe := range []bool{true, false} {
		file := (&fixtures.Image{Name: "a", Base: 0x140000000, SizeOfImage: 0x10000, EntryPoint: 0x1230, Exe: exe,
			Functions: []*fixtures.Function{{Name: "f", RVA: 0x1000, Size: 0x40}}}).File()
		nt := binary.LittleEndian.Uint32(file[0x3c:])
		table := file[nt+24+112+12*8:] // IMAGE_DIRECTORY_ENTRY_IAT of a PE32+ header
		binary.LittleEndian.PutUint32(table, 0x4000)
		binary.LittleEndian.PutUint32(table[4:], 0x20)
		for name, read := range map[string]ntReader{"file": fileNT, "memory": parseNT} {
			h, err := readHeaders(bytes.NewReader(file), int64(len(file)), read)
			if err != nil {
				t.Fatal(err)
			}
			im := newImage(h, "a")
			if rva, ok := im.ProgramEntry(); rva != 0x1230 || ok != exe {
				t.Errorf("%s, exe %v: entry %#x, %v", name, exe, rva, ok)
			}
			for rva, want := range map[uint32]bool{0x3fff: false, 0x4000: true, 0x401f: true, 0x4020: false} {
				if im.Imported(rva) != want {
					t.Errorf("%s: %#x imported: %v", name, rva, !want)
				}
			}
		}
	}
}
