package kdump

import (
	"math/rand"
	"testing"

	"dumptriage/fixtures/machine"
)

// TestWaitsOfDamagedDumps changes words of a machine's dump, pointers before all,
// to others that occur in it: lists then lead in circles and structures to each
// other. Nothing may panic or run away.
func TestWaitsOfDamagedDumps(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	whole := machine.Build(machine.Windows22H2).Dump(machine.BitmapKernel)
	r := rand.New(rand.NewSource(7))
	var pointers []int // offsets of words that look like kernel pointers
	for off := 0x3000; off+8 <= len(whole); off += 8 {
		if whole[off+7] == 0xff && whole[off+6] == 0xff {
			pointers = append(pointers, off)
		}
	}
	for range rounds {
		b := append([]byte(nil), whole...)
		for range 1 + r.Intn(200) {
			to, from := pointers[r.Intn(len(pointers))], pointers[r.Intn(len(pointers))]
			copy(b[to:to+8], whole[from:from+8])
			if r.Intn(4) == 0 {
				b[0x3000+r.Intn(len(b)-0x3000)] ^= byte(1 << r.Intn(8))
			}
		}
		f := openBytes(t, b)
		for _, th := range f.Threads() {
			if w := th.Kernel.Wait; w != nil {
				w.Owner()
			}
		}
		f.CPUs()
		for i := range f.Processes() {
			f.View(&f.Processes()[i]).Handles()
		}
		f.Damage()
	}
}
