package kdump

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/fixtures/machine"
)

// FuzzBlobs reads whatever stands where the secondary data do.
func FuzzBlobs(f *testing.F) {
	whole := fixtures.BugCheckTriage().Dump
	size := int(binary.LittleEndian.Uint32(whole[0x2004:])) // TRIAGE_DUMP64.SizeOfDump
	f.Add(whole[size:])
	f.Add([]byte("DumpBlob\x10\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		b := append(whole[:size:size], tail...)
		k, err := Open(bytes.NewReader(b), int64(len(b)), "x.dmp")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range k.Blobs() {
			if r.Offset < int64(size) || r.Size < 0 || r.Offset+r.Size > int64(len(b)) {
				t.Errorf("a record at %#x of %#x bytes in a file of %#x", r.Offset, r.Size, len(b))
			}
		}
	})
}

// Behind the pages of full dumps of every storage; and not where there are none.
func TestBlobsOfFullDumps(t *testing.T) {
	display := [16]byte{0xfd, 0x33, 0x0a, 0x27, 0xa6, 0x3d, 0x0d, 0x46, 0xba, 0x89, 0x3c, 0x1b, 0xae, 0x21, 0xe3, 0x9b}
	for _, kind := range []machine.Kind{machine.Full, machine.Summary, machine.BitmapFull, machine.BitmapKernel, machine.KernelRange, machine.CompleteRange} {
		m := machine.Build(machine.Windows22H2)
		plain := m.Dump(kind)
		if f := openBytes(t, plain); len(f.Blobs()) != 0 {
			t.Errorf("kind %d: %+v where nothing is", kind, f.Blobs())
		}
		m.Secondary = []machine.Blob{{GUID: display, Data: []byte("twelve bytes")}, {}, {GUID: [16]byte{1}, Data: make([]byte, 0x20)}}
		f := openBytes(t, m.Dump(kind))
		b := f.Blobs()
		// The head has 16 bytes, each record's header 32; the first record's data are padded to 16.
		if at := int64(len(plain)) + 16 + 32; len(b) != 3 || b[0] != (Blob{display, at, 12}) || b[1] != (Blob{Offset: at + 16 + 32}) || b[2].Size != 0x20 {
			t.Errorf("kind %d: %+v, file of %#x bytes", kind, b, len(plain))
		}
		s := f.Sections()
		if last := s[len(s)-1]; last != (Section{"SecondaryData", int64(len(plain)), 16 + 32 + 16 + 32 + 32 + 0x20, 3}) {
			t.Errorf("kind %d: %+v", kind, last)
		}
		if e := f.Damage(); len(e) != 0 {
			t.Errorf("kind %d: %v", kind, e)
		}
	}
}
