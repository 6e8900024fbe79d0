package cab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPublishedExample unpacks the example of [MS-PATCH] 3: "abc" as one
// uncompressed block, E8 translation off, R0 to R2 one. (The chunk size that
// LZX DELTA puts in front is the cabinet's CFDATA.cbData.)
func TestPublishedExample(t *testing.T) {
	src := []byte{0x00, 0x30, 0x30, 0x00, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'a', 'b', 'c', 0}
	dst := make([]byte, 3)
	if err := newLZX(15, 1).decode(dst, src); err != nil || string(dst) != "abc" {
		t.Fatalf("%q, %v", dst, err)
	}
}

// lzxCases are cabinets over all windows, block kinds and E8 settings.
func lzxCases() map[string]func() (cabinet, data []byte) {
	cases := map[string]func() ([]byte, []byte){}
	for window := 15; window <= 21; window++ {
		for kind := range uint(4) { // 0: mixed
			for _, e8 := range []int32{0, 300000, 12000000} {
				size := 250001 + 7*window
				if kind == 0 && window > 17 && e8 == 0 {
					size = 3<<window - 77 // matches reach back the whole window, which wraps
				}
				cases[fmt.Sprintf("window%d-kind%d-e8-%d", window, kind, e8)] = func() ([]byte, []byte) {
					seed := uint64(window)*100 + uint64(kind)*10 + uint64(e8)
					data := testData(seed, size)
					plan := testPlan(seed, size)
					for i := range plan {
						if kind != 0 {
							plan[i].kind = kind
						}
					}
					c := testCab{
						folders: []testFolder{lzxFolder(data, window, plan, e8)},
						files:   []testFile{{name: "data.bin", size: uint32(size), date: 0x5c21, clock: 0x6000}},
					}
					return c.build(), data
				}
			}
		}
	}
	return cases
}

func TestLZX(t *testing.T) {
	for name, make := range lzxCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cabinet, want := make()
			c, err := Open(bytes.NewReader(cabinet), int64(len(cabinet)))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if _, err := c.Extract(c.Files()[0], &got, 1<<30); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("differs at %d of %d", firstDifference(got.Bytes(), want), len(want))
			}
		})
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestAgainstCabextract holds the test encoder to an independent decoder: what
// it calls LZX must be what others call so.
func TestAgainstCabextract(t *testing.T) {
	tool, err := exec.LookPath("cabextract")
	if err != nil {
		t.Skip("cabextract is not installed")
	}
	for name, make := range lzxCases() {
		t.Run(name, func(t *testing.T) {
			cabinet, want := make()
			path := filepath.Join(t.TempDir(), "x.cab")
			if err := os.WriteFile(path, cabinet, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := exec.Command(tool, "-q", "-p", path).Output()
			if err != nil {
				t.Fatalf("cabextract: %v: %s", err, stderr(err))
			}
			if !bytes.Equal(got, want) {
				t.Errorf("cabextract differs at %d of %d", firstDifference(got, want), len(want))
			}
		})
	}
}

func stderr(err error) []byte {
	if e, ok := err.(*exec.ExitError); ok {
		return e.Stderr
	}
	return nil
}
