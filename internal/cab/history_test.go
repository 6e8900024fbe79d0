package cab

import (
	"bytes"
	"compress/flate"
	"testing"
)

// TestPaddingAcrossFrames: an odd uncompressed block ends where its frame does.
// Its padding byte may end that frame's CFDATA or begin the next: readers that
// take the stream as one accept both.
func TestPaddingAcrossFrames(t *testing.T) {
	data := testData(6, 40000)
	plan := []testBlock{{1, 1}, {3, 32767}, {1, 40000 - 32768}}
	for _, moved := range []bool{false, true} {
		folder := lzxFolder(data, 15, plan, 0)
		if moved {
			first := folder.packed[0]
			folder.packed[0] = first[:len(first)-1]
			folder.packed[1] = append([]byte{0}, folder.packed[1]...)
		}
		c := open(t, testCab{folders: []testFolder{folder}, files: []testFile{{name: "a", size: 40000}}}.build())
		if got := extract(t, c, 0); got != string(data) {
			t.Errorf("moved %v: differs at %d", moved, firstDifference([]byte(got), data))
		}
	}
}

// TestShortMSZIPBlocks: history is the last 32 KB however they were cut into
// blocks. The fourth block of 12,000 bytes repeats what lies 32,000 bytes back.
func TestShortMSZIPBlocks(t *testing.T) {
	const size = 12000
	data := make([]byte, 3*size)
	for i, x := 0, uint32(1); i < len(data); i++ { // noise: only the repeat packs
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	data = append(data, data[4000:4000+size]...)
	folder := testFolder{method: 1}
	for at := 0; at < len(data); at += size {
		out := bytes.NewBufferString("CK")
		w, err := flate.NewWriterDict(out, 9, data[max(0, at-32768):at])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data[at : at+size]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		folder.packed = append(folder.packed, out.Bytes())
		folder.plain = append(folder.plain, size)
	}
	if n := len(folder.packed[3]); n > 1000 {
		t.Fatalf("the last block does not refer back: %d bytes", n)
	}
	c := open(t, testCab{folders: []testFolder{folder}, files: []testFile{{name: "a", size: uint32(len(data))}}}.build())
	if got := extract(t, c, 0); got != string(data) {
		t.Errorf("differs at %d", firstDifference([]byte(got), data))
	}
}
