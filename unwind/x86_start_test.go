package unwind

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// exportingImage is an image with one export.
type exportingImage struct {
	*fakeImage
	rva uint32
}

func (im exportingImage) NearestExport(rva uint32) (pdata.Symbol, bool) {
	return pdata.Symbol{Name: "Export", RVA: im.rva}, rva >= im.rva
}

// Behind an indirect call only an export is known to be the function's start, and
// it is not where another function seems to begin behind it.
func TestExportBehindIndirectCall86(t *testing.T) {
	for name, c := range map[string]struct {
		between []byte // at 0x130c, behind the return
		depth   uint64 // of the return address by running from the export
		fpo     bool
	}{
		"one function": {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 0x10, true},
		"another":      {[]byte{0xcc, 0xcc, 0xcc, 0xcc, 0x53, 0x83, 0xec, 8}, 0x1c, false}, // push ebx; sub esp, 8
	} {
		s := space86()
		s.put(0x1300, 0x83, 0xec, 0x10, 0xe8, 0, 0, 0, 0, 0x83, 0xc4, 0x10, 0xc3) // sub esp, 16; call; add esp, 16; ret
		s.put(0x130c, c.between...)
		s.put(0x1314, 0x90, 0x90)
		s.put(0x153e, 0xff, 0xd0) // call eax
		s.poke32(esp0+c.depth, exeBase+0x1540)
		w := newWalker(s, dump.X86, func(va uint64) (Table, uint64) {
			if va >= exeBase && va-exeBase < 0x10000 {
				return exportingImage{s.image, 0x1300}, exeBase
			}
			return nil, 0
		})
		r, opt := regs86(exeBase+0x1316, esp0, 0), stackBounds
		f, _, _ := w.first(&r, &opt)
		stop, ok := w.Step(&r, &f, &opt)
		if !ok || f.IP != exeBase+0x1540 || (f.Method == MethodFPO) != c.fpo || (f.Trust == TrustScan) == c.fpo {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}
