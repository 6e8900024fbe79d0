package sym

import (
	"reflect"
	"sync"
	"testing"
)

// Many goroutines that ask at once get what one gets.
func TestConcurrent(t *testing.T) {
	want := map[uint32]Location{}
	f := open(t, written)
	for rva := uint32(0x1000); rva < 0x1500; rva += 8 {
		want[rva], _ = f.Lookup(rva)
	}
	f = open(t, written)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for rva, loc := range want {
				if got, _ := f.Lookup(rva); !reflect.DeepEqual(got, loc) {
					t.Errorf("%#x: %+v, want %+v", rva, got, loc)
				}
				f.WinFrame(rva)
				f.CFI(rva)
				f.Damage()
			}
		})
	}
	wg.Wait()
}
