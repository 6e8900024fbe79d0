package kdump

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"strings"
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

// FuzzWaits changes one word of a machine's kernel memory.
func FuzzWaits(f *testing.F) {
	m := machine.Build(machine.Windows22H2)
	file := m.Dump(machine.BitmapKernel)
	p := m.Processes[2]
	for _, th := range p.Threads {
		f.Add(th.ETHREAD+0xd0, th.ETHREAD+0x140)  // WaitBlockList
		f.Add(th.ETHREAD+0x160, th.ETHREAD)       // a wait block's object
		f.Add(th.ETHREAD+0x4b0, th.ETHREAD+0x4b0) // IrpList
		f.Add(th.ETHREAD+0x530, p.EPROCESS)       // AlpcMessage
		f.Add(th.InitialStack+0x28, th.InitialStack)
	}
	f.Add(p.EPROCESS+0x570, p.EPROCESS) // ObjectTable
	f.Add(m.NT.Base+0xcfd700, m.NT.Base)
	f.Add(m.NT.Base+0xc16980, m.NT.Base+0xc16980)
	f.Fuzz(func(t *testing.T, va, value uint64) {
		clean := openBytes(t, file)
		off, perr := clean.full.system.page(va)
		if perr != nil || va&0xfff > 0xff8 {
			return
		}
		at := off + int64(va&0xfff)
		was := binary.LittleEndian.Uint64(file[at:])
		defer binary.LittleEndian.PutUint64(file[at:], was)
		binary.LittleEndian.PutUint64(file[at:], value)
		d, err := Open(bytes.NewReader(file), int64(len(file)), "fuzz")
		if err != nil {
			return
		}
		d.Threads()
		d.CPUs()
		for i := range d.Processes() {
			d.View(&d.Processes()[i]).Handles()
		}
		for _, e := range d.Damage() {
			if strings.Contains(e.Error(), "%!") {
				t.Error(e)
			}
		}
	})
}
