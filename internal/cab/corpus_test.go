package cab

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"dumptriage/internal/corpus"
)

const (
	realLZX = "user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab"
	// The size and hash of the dump as another unpacker extracted it.
	realLZXSize = 11244915
	realLZXHash = "b08bf92f29a4cf3040fae2032c2d421438f7ef8bc570bc0b1221a40900220197"
)

// TestRealLZX unpacks a cabinet that Microsoft's tools made: LZX, 2 MB window,
// 344 blocks, E8 translation on.
func TestRealLZX(t *testing.T) {
	c, err := openFile(t, corpus.Need(t, realLZX))
	if err != nil {
		t.Fatal(err)
	}
	files := c.Files()
	if len(files) != 1 || files[0].Name != "targetapp_stacktest_wow64.cab.dmp" || files[0].Size != realLZXSize {
		t.Fatalf("files: %+v", files)
	}
	h := sha256.New()
	n, err := c.Extract(files[0], h, realLZXSize)
	if err != nil || n != realLZXSize {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != realLZXHash {
		t.Errorf("sha256 %s, want %s", got, realLZXHash)
	}
}

func openFile(tb testing.TB, path string) (*Cabinet, error) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	fi, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return Open(f, fi.Size())
}
