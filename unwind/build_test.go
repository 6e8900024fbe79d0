package unwind

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// The address space that the hand-built tests share.
const (
	imageBase = 0x7ff600000000
	stackLow  = 0x10_0000
	stackHigh = 0x10_4000
)

// bytesAt is memory made of a few pieces.
type bytesAt map[uint64][]byte

func (m bytesAt) ReadAt(p []byte, va uint64) (int, error) {
	for base, b := range m {
		if va >= base && va-base < uint64(len(b)) {
			n := copy(p, b[va-base:])
			if n == len(p) {
				return n, nil
			}
			return n, &dump.MemoryError{VA: va + uint64(n), Size: len(p) - n}
		}
	}
	return 0, &dump.MemoryError{VA: va, Size: len(p)}
}

// fakeImage is an image whose code and unwind data a test writes by hand. The
// unwind data goes through pdata's decoder, in the format's own bytes.
type fakeImage struct {
	code    []byte // from RVA 0x1000, executable
	table   []pdata.RuntimeFunction
	infos   map[uint32][]byte
	noTable bool
	noBytes bool
	partial bool // the headers tell of a table that is not there
}

const textRVA = 0x1000

func (im *fakeImage) ReadRVA(p []byte, rva uint32) (int, error) {
	if im.noBytes || rva < textRVA || int(rva-textRVA) >= len(im.code) {
		return 0, &dump.MemoryError{VA: uint64(rva), Size: len(p)}
	}
	return copy(p, im.code[rva-textRVA:]), nil
}

func (im *fakeImage) Executable(rva uint32) bool {
	return rva >= textRVA && int(rva-textRVA) < len(im.code)
}

func (im *fakeImage) HasFunctionTable() bool { return !im.noTable }

func (im *fakeImage) LacksFunctionTable() bool { return im.partial }

func (im *fakeImage) Lookup(rva uint32) (pdata.RuntimeFunction, bool, error) {
	for _, rf := range im.table {
		if rva >= rf.Begin && rva < rf.End {
			return rf, true, nil
		}
	}
	return pdata.RuntimeFunction{}, false, nil
}

func (im *fakeImage) Primary(rf pdata.RuntimeFunction) pdata.RuntimeFunction {
	for range 32 {
		u, err := im.UnwindInfo(rf.UnwindInfo)
		if err != nil || !u.Chained {
			break
		}
		rf = u.Chain
	}
	return rf
}

func (im *fakeImage) UnwindInfo(rva uint32) (*pdata.UnwindInfo, error) {
	return pdata.DecodeUnwindInfo(im.infos[rva])
}

// space is a Space around one fake image, with other modules by name.
type space struct {
	bytesAt
	image   *fakeImage
	base    uint64
	modules []dump.Module
	exec    map[uint64]bool // pages outside modules whose protection is known
}

func (s *space) Module(va uint64) (*dump.Module, bool) {
	for i := range s.modules {
		if s.modules[i].Contains(va) {
			return &s.modules[i], true
		}
	}
	return nil, false
}

func (s *space) Image(uint64) (*pdata.Image, uint64) { return nil, 0 }

func (s *space) Executable(va uint64) (bool, bool) {
	exec, known := s.exec[va&^0xfff]
	return exec, known
}

func (s *space) walker() *Walker { return s.walkerFor(dump.AMD64) }

func (s *space) walkerFor(arch dump.Arch) *Walker {
	return newWalker(s, arch, func(va uint64) (Table, uint64) {
		if s.image != nil && va >= s.base && va-s.base < 0x10000 {
			return s.image, s.base
		}
		return nil, 0
	})
}

// newSpace returns a space with an image of size bytes of code, all int3, and a
// stack of zeros.
func newSpace(size int) *space {
	code := make([]byte, size)
	for i := range code {
		code[i] = 0xcc
	}
	return &space{
		bytesAt: bytesAt{stackLow: make([]byte, stackHigh-stackLow)},
		image:   &fakeImage{code: code, infos: map[uint32][]byte{}},
		base:    imageBase,
		modules: []dump.Module{{Base: imageBase, Size: 0x10000, Path: `C:\app\app.exe`}},
	}
}

// function adds a table entry with its unwind data and code.
func (s *space) function(begin, end uint32, info, code []byte) {
	at := uint32(0x8000 + 0x100*len(s.image.table))
	s.image.table = append(s.image.table, pdata.RuntimeFunction{Begin: begin, End: end, UnwindInfo: at})
	s.image.infos[at] = append(info[:len(info):len(info)], 0, 0) // padding to an even number of slots
	s.put(begin, code...)
}

// put writes code at an RVA.
func (s *space) put(rva uint32, code ...byte) { copy(s.image.code[rva-textRVA:], code) }

// callAt makes the instruction that ends at the RVA a CALL, and returns the
// address that it returns to.
func (s *space) callAt(rva uint32) uint64 {
	s.put(rva-5, 0xe8, 0, 0, 0, 0)
	return s.base + uint64(rva)
}

// poke writes words to the stack.
func (s *space) poke(va uint64, words ...uint64) {
	for i, v := range words {
		binary.LittleEndian.PutUint64(s.bytesAt[stackLow][va-stackLow+8*uint64(i):], v)
	}
}

// poke32 writes 32-bit words to the stack.
func (s *space) poke32(va uint64, words ...uint32) {
	for i, v := range words {
		binary.LittleEndian.PutUint32(s.bytesAt[stackLow][va-stackLow+4*uint64(i):], v)
	}
}

// at returns registers with a program and a stack pointer.
func at(ip, sp uint64) dump.Registers {
	r := dump.Registers{Arch: dump.AMD64}
	r.SetPC(ip)
	r.SetSP(sp)
	return r
}

var stackBounds = Options{StackLimit: stackLow, StackBase: stackHigh}

// stepFrom takes one step from a frame that stands at an instruction.
func stepFrom(t *testing.T, s *space, regs *dump.Registers) (Frame, Stop, bool) {
	t.Helper()
	w := s.walker()
	opt := stackBounds
	f, stop, ok := w.first(regs, &opt)
	if !ok {
		t.Fatalf("no first frame: %v", stop)
	}
	stop, ok = w.Step(regs, &f, &opt)
	return f, stop, ok
}

func wantReg(t *testing.T, regs *dump.Registers, reg dump.Reg, want uint64) {
	t.Helper()
	if v, ok := regs.Get(reg); !ok || v != want {
		t.Errorf("%s = %#x (known %v), want %#x", regs.Arch.RegName(reg), v, ok, want)
	}
}
