package pdb

import (
	"bytes"
	"io"
	"reflect"
	"sync"
	"testing"
)

// Many goroutines get the answers that one gets. Run with -race it finds more.
func TestConcurrentUse(t *testing.T) {
	raw := readTestdata(t, "inline-x86.pdb")
	alone := openBytes(t, raw, "alone")
	f, err := Open(io.NewSectionReader(bytes.NewReader(raw), 0, int64(len(raw))), int64(len(raw)), "shared")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for rva := uint32(0x1000); rva < 0x1100; rva += 3 {
				got, _ := f.Lookup(rva)
				f.FrameData(rva)
				if want, _ := alone.Lookup(rva); !reflect.DeepEqual(got, want) {
					t.Errorf("%#x: %+v, want %+v", rva, got, want)
				}
			}
			if _, err := f.Struct("shapes::Box"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
