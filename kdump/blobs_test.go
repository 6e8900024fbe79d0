package kdump

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/fixtures"
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
