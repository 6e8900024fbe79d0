package unwind

import (
	"bufio"
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
	"dumptriage/pdata"
)

// armImage is a fakeImage whose functions are ARM64's.
type armImage struct {
	*fakeImage
	functions []armFunction
}

type armFunction struct {
	fn    pdata.ARM64Function
	xdata []byte
}

func (im *armImage) HasFunctionTable() bool { return false }
func (im *armImage) HasARM64Table() bool    { return true }

func (im *armImage) LookupARM64(rva uint32) (pdata.ARM64Function, bool, error) {
	for _, f := range im.functions {
		if rva >= f.fn.Begin && rva < f.fn.End() {
			return f.fn, true, nil
		}
	}
	return pdata.ARM64Function{}, false, nil
}

func (im *armImage) ARM64Info(fn pdata.ARM64Function) (*pdata.ARM64Info, error) {
	for _, f := range im.functions {
		if f.fn == fn && f.xdata != nil {
			return pdata.DecodeARM64Xdata(f.xdata)
		}
	}
	return pdata.DecodeARM64Packed(fn.Word)
}

// armSpace is a process of one ARM64 image of 0x1000 bytes of brk.
type armSpace struct {
	*space
	im *armImage
}

func newARMSpace() *armSpace {
	s := newSpace(0x1000)
	return &armSpace{s, &armImage{fakeImage: s.image}}
}

func (s *armSpace) walker() *Walker {
	return newWalker(s.space, dump.ARM64, func(va uint64) (Table, uint64) {
		if va >= s.base && va-s.base < 0x10000 {
			return s.im, s.base
		}
		return nil, 0
	})
}

// function adds a function of a number of instructions with an .xdata record
// that has no epilogs.
func (s *armSpace) function(begin, instructions uint32, codes ...byte) {
	codes = append(codes, 0xe4)
	for len(codes)%4 != 0 {
		codes = append(codes, 0xe3)
	}
	x := binary.LittleEndian.AppendUint32(nil, instructions|uint32(len(codes)/4)<<27)
	s.im.functions = append(s.im.functions, armFunction{pdata.ARM64Function{Begin: begin, Length: 4 * instructions, Word: 0x8000 + begin}, append(x, codes...)})
}

// bl makes the instruction before an RVA a bl and returns the RVA's address.
func (s *armSpace) bl(rva uint32) uint64 {
	s.put(rva-4, 0, 0, 0, 0x94)
	return s.base + uint64(rva)
}

func (s *armSpace) walk(regs dump.Registers) Stack { return s.walker().Walk(regs, stackBounds) }

const armSP = stackLow + 0x1000

func wantARM(t *testing.T, f Frame, ip, lookup, sp uint64, m Method) {
	t.Helper()
	if f.IP != ip || f.Lookup != lookup || f.SP != sp || f.Method != m {
		t.Errorf("%+v, want ip %#x, lookup %#x, sp %#x, %v", f, ip, lookup, sp, m)
	}
}

// stp fp, lr, [sp, #-32]!; stp x19, x20, [sp, #16]; mov fp, sp: stopped in the
// body, called from a function whose call is its last instruction, so that the
// return address is another function's first. Only pc-4 finds the caller.
func TestARM64CallIsTheLastInstruction(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xe1, 0xc8, 0x02, 0x83)
	s.function(0x1200, 8, 0x81)       // stp fp, lr, [sp, #-16]!
	s.function(0x1220, 8, 0xc7, 0xff) // would add 32752 to sp
	ret := s.bl(0x1220)
	s.poke(armSP, armSP+0x100, ret, 0x19, 0x20)
	s.poke(armSP+32, 0, 0) // the caller's record: the thread's start
	st := s.walk(regsARM64(imageBase+0x1120, armSP, armSP))
	if len(st.Frames) != 2 || st.Stop.Reason != StopEndOfStack {
		t.Fatalf("%+v", st)
	}
	wantARM(t, st.Frames[1], ret, ret-4, armSP+32, MethodPdata)
	if f := st.Frames[1]; !f.HasFP || f.FP != armSP+0x100 || f.Trust != TrustCFI {
		t.Errorf("%+v", f)
	}
}

func stepARM(t *testing.T, s *armSpace, regs *dump.Registers, opt Options) (Frame, Stop, bool) {
	t.Helper()
	w := s.walker()
	f, stop, ok := w.first(regs, &opt)
	if !ok {
		t.Fatal(stop)
	}
	stop, ok = w.Step(regs, &f, &opt)
	return f, stop, ok
}

// A function without an entry is a leaf: lr is the return address, with its
// authentication code off; sp stays.
func TestARM64Leaf(t *testing.T) {
	s := newARMSpace()
	ret := s.bl(0x1220)
	r := regsARM64(imageBase+0x1100, armSP, 0)
	r.Set(dump.ARM64LR, ret|0xab2a<<48)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok {
		t.Fatal(stop)
	}
	wantARM(t, f, ret, ret-4, armSP, MethodLeaf)
}

// With pc == lr a leaf would return to itself: the table is bad.
func TestARM64LeafReturningToItself(t *testing.T) {
	s := newARMSpace()
	r := regsARM64(imageBase+0x1100, armSP, 0)
	r.Set(dump.ARM64LR, imageBase+0x1100)
	if f, stop, ok := stepARM(t, s, &r, stackBounds); ok {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A caller is no leaf: it made a call, which overwrote lr.
func TestARM64CallerIsNoLeaf(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0x81)
	s.poke(armSP, 0x1, s.bl(0x1800), 0, 0)
	st := s.walk(regsARM64(imageBase+0x1120, armSP, 0x1))
	if len(st.Frames) != 2 || st.Stop.Reason != StopNoUnwindData {
		t.Errorf("%+v", st)
	}
}

// A jump through a null pointer leaves the return address in lr.
func TestARM64NullCall(t *testing.T) {
	s := newARMSpace()
	ret := s.bl(0x1220)
	s.exec = map[uint64]bool{0: false}
	r := regsARM64(0, armSP, 0)
	r.Set(dump.ARM64LR, ret)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok {
		t.Fatal(stop)
	}
	wantARM(t, f, ret, ret-4, armSP, MethodLeaf)
}

// In the prolog only what it has done is undone: after sub sp, sp, #32 and
// before stp x19, lr, [sp, #16] the return address is in lr.
func TestARM64Prolog(t *testing.T) {
	for at, sp := range map[uint64]uint64{0: armSP, 4: armSP + 32} {
		s := newARMSpace()
		s.function(0x1100, 16, 0xd6, 0x02, 0x02)
		ret := s.bl(0x1220)
		r := regsARM64(imageBase+0x1100+at, armSP, 0)
		r.Set(dump.ARM64LR, ret)
		f, stop, ok := stepARM(t, s, &r, stackBounds)
		if !ok {
			t.Fatal(stop)
		}
		wantARM(t, f, ret, ret-4, sp, MethodPdata)
	}
}

// Registers saved by each kind of code, values being their addresses.
// Undone in this order: save_next, save_regp x21 at 16 (so x21 to x24), then
// str x25, [sp, #48], then save_lrpair x27 at 64, then 96 bytes.
func TestARM64Registers(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xe6, 0xc8, 0x82, 0xd1, 0x86, 0xd7, 0x08, 0x06)
	ret := s.bl(0x1220)
	for off := uint64(0); off < 96; off += 8 {
		s.poke(armSP+off, armSP+off)
	}
	s.poke(armSP+72, ret)
	r := regsARM64(imageBase+0x1130, armSP, 0)
	r.Set(19, 0x19)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok {
		t.Fatal(stop)
	}
	wantARM(t, f, ret, ret-4, armSP+96, MethodPdata)
	wantReg(t, &r, 19, 0x19)
	for reg, off := range map[dump.Reg]uint64{21: 16, 22: 24, 23: 32, 24: 40, 25: 48, 27: 64} {
		wantReg(t, &r, reg, armSP+off)
	}
	if r.Known(dump.ARM64LR) || r.Known(0) {
		t.Error("lr and x0 do not survive the call")
	}
}

// add_fp: sp comes from x29, wherever alloca has moved it.
func TestARM64FrameRegister(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xe2, 0x02, 0x42, 0x03) // add fp, sp, #16; stp fp, lr, [sp, #16]; sub sp, sp, #48
	ret := s.bl(0x1220)
	s.poke(armSP+0x210, 0x77, ret)
	r := regsARM64(imageBase+0x1130, armSP, armSP+0x210)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok {
		t.Fatal(stop)
	}
	wantARM(t, f, ret, ret-4, armSP+0x230, MethodPdata)
}

// The frames that the system lays: pc need not follow a call, so it is looked
// up itself, and lr is known again.
func TestARM64SystemFrames(t *testing.T) {
	const pc, sp = imageBase + 0x1300, armSP + 0x800
	for name, c := range map[string]struct {
		code byte
		at   map[uint64]uint64 // offsets from sp
		lr   bool
	}{
		"machine frame": {0xe9, map[uint64]uint64{0: sp, 8: pc}, false},
		"trap frame":    {0xe8, map[uint64]uint64{0x90: 0, 0x98: sp, 0x138: 0x30, 0x148: pc}, true},
		"context":       {0xea, map[uint64]uint64{0: 0x400007, 0xf8: 0x30, 0x100: sp, 0x108: pc}, true},
		"EC context":    {0xeb, map[uint64]uint64{0x98: sp, 0xf8: pc, 0x120: 0x30, 0xd8: 0x19}, true},
	} {
		s := newARMSpace()
		s.function(0x1100, 16, c.code)
		for off, v := range c.at {
			s.poke(armSP+off, v)
		}
		r := regsARM64(imageBase+0x1110, armSP, 0)
		f, stop, ok := stepARM(t, s, &r, stackBounds)
		if !ok {
			t.Errorf("%s: %+v", name, stop)
			continue
		}
		wantARM(t, f, pc, pc, sp, MethodMachineFrame)
		if lr, known := r.Get(dump.ARM64LR); known != c.lr || known && lr != 0x30 {
			t.Errorf("%s: lr %#x %v", name, lr, known)
		}
	}
}

// In a kernel walk a trap frame whose Spsr says user mode is the seam.
func TestARM64KernelSeam(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xe8)
	s.poke(armSP+0x90, 0x6000_0000)
	s.poke(armSP+0x98, 0x50000, 0xaa)
	s.poke(armSP+0x138, 0x30, 0x29, 0x7ff812345678)
	r := regsARM64(imageBase+0x1110, armSP, 0)
	r.Set(20, 0x20)
	st := s.walker().Walk(r, Options{Kernel: true})
	if st.Stop.Reason != StopTrapFrame || st.TrapFrame != armSP {
		t.Fatalf("%+v", st)
	}
	st.User.Arch = dump.ARM64
	if sp, _ := st.User.SP(); sp != 0x50000 {
		t.Errorf("sp %#x", sp)
	}
	wantReg(t, &st.User, 0, 0xaa)
	wantReg(t, &st.User, 20, 0x20)
	wantReg(t, &st.User, dump.ARM64PC, 0x7ff812345678)
}

// clear_unwound_to_call: the caller is looked up at its pc itself.
func TestARM64ClearUnwoundToCall(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xec, 0x81)
	s.poke(armSP, 0, imageBase+0x1200)
	r := regsARM64(imageBase+0x1110, armSP, 0)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok {
		t.Fatal(stop)
	}
	wantARM(t, f, imageBase+0x1200, imageBase+0x1200, armSP+16, MethodPdata)
}

// Unwind data that cannot be right falls back to the chain of frame records,
// marked, and says why.
func TestARM64BadDataFallsBack(t *testing.T) {
	for name, codes := range map[string][]byte{
		"sp would leave the stack":       {0xc7, 0xff, 0x81},
		"sp would not be aligned":        {0x82},
		"registers past x30":             {0xe6, 0xe6, 0x81},
		"a reserved code":                {0xf8},
		"save_next before a single save": {0xe6, 0xd2, 0xc0},
	} {
		s := newARMSpace()
		s.function(0x1100, 16, codes...)
		ret := s.bl(0x1220)
		s.poke(armSP+0x40, armSP+0x100, ret)
		r := regsARM64(imageBase+0x1130, armSP, armSP+0x40)
		f, stop, ok := stepARM(t, s, &r, stackBounds)
		if !ok || f.IP != ret || f.Method != MethodRBP || f.Trust != TrustFramePointer || f.Detail == "" {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
	}
}

// Where the chain is broken too the stack is scanned, and a frame record is
// preferred to a lone return address below it.
func TestARM64Scan(t *testing.T) {
	s := newARMSpace()
	lone, ret := s.bl(0x1240), s.bl(0x1220)
	s.poke(armSP+0x18, lone)
	s.poke(armSP+0x40, armSP+0x100, ret)
	r := regsARM64(imageBase+0x1130, armSP, 0x3)
	r.Set(dump.ARM64LR, 0)
	s.function(0x1100, 16, 0xf8)
	f, stop, ok := stepARM(t, s, &r, stackBounds)
	if !ok || f.IP != ret || f.SP != armSP+0x50 || f.FP != armSP+0x100 || f.Trust != TrustScan {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A call is bl, blr, or blr with authentication: 0x94.., 0xd63f.., and blraa x8,
// x9 and blrabz x8 as llvm-mc assembles them.
func TestARM64Calls(t *testing.T) {
	for in, want := range map[uint32]proof{
		0x94000040: proofYes, 0xd63f0100: proofYes, 0xd73f0909: proofYes, 0xd63f0d1f: proofYes,
		0x14000040: proofNo, 0xd65f03c0: proofNo, 0xd61f0100: proofNo, 0xd503201f: proofNo,
	} {
		s := newARMSpace()
		s.put(0x121c, byte(in), byte(in>>8), byte(in>>16), byte(in>>24))
		w := s.walker()
		if got := w.callBefore(w.site(s.base+0x121c), s.base+0x1220); got != want {
			t.Errorf("%#x: %v, want %v", in, got, want)
		}
	}
}

// A walk over tables that never move sp ends.
func TestARM64NoProgress(t *testing.T) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xec)
	s.function(0x1200, 16, 0xe9)
	r := regsARM64(imageBase+0x1110, armSP, 0)
	r.Set(dump.ARM64LR, imageBase+0x1208)
	s.poke(armSP, armSP, imageBase+0x1208) // a machine frame that leads to itself
	st := s.walk(r)
	if st.Stop.Reason != StopLimit || len(st.Frames) > 40 {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
}

// hashMemory holds at each address a value that only that address has.
type hashMemory struct{}

func (hashMemory) ReadAt(p []byte, va uint64) (int, error) {
	for i := range p {
		p[i] = byte(hashOf((va+uint64(i))&^7) >> (8 * ((va + uint64(i)) & 7)))
	}
	return len(p), nil
}

func hashOf(va uint64) uint64 { return va*0x9e3779b97f4a7c15 | 1 }

var cfiRule = regexp.MustCompile(`\.(x\d+|ra|cfa): (\.[a-z0-9]+)(?: (-?\d+) \+)?( \^)?`)

// The unwind data of a real program leads where another implementation's
// reading of it says: its rows give, after the instruction at an address, the
// caller's sp (cfa) and where each register is saved.
func TestARM64AgainstCFI(t *testing.T) {
	dir := corpus.Need(t, "user/A15-pe-unwind-fixtures")
	f, err := os.Open(dir + "/test.exe")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	im, err := pdata.OpenFile(f, info.Size(), "test.exe")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.Open(dir + "/test_cfi__cfi_pe_arm64.snap")
	if err != nil {
		t.Skip(err)
	}
	defer rows.Close()
	n := 0
	var rules map[string][2]string
	for lines := bufio.NewScanner(rows); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "STACK CFI ")
		if !ok {
			continue
		}
		text, initial := strings.CutPrefix(text, "INIT ")
		fields := strings.Fields(text)
		at, _ := strconv.ParseUint(fields[0], 16, 32)
		if initial {
			rules = map[string][2]string{}
		}
		for _, m := range cfiRule.FindAllStringSubmatch(text, -1) {
			rules[m[1]] = [2]string{m[2], m[3]}
		}
		n += compareCFI(t, im, uint32(at), rules)
	}
	if n < 500 {
		t.Errorf("only %d rows compared", n)
	}
	t.Logf("%d rows", n)
}

func compareCFI(t *testing.T, im *pdata.Image, rva uint32, rules map[string][2]string) int {
	fn, ok, err := im.LookupARM64(rva)
	if err != nil || !ok || rva+4 >= fn.End() {
		return 0
	}
	u, err := im.ARM64Info(fn)
	if err != nil {
		t.Errorf("%#x: %v", rva, err)
		return 0
	}
	for _, e := range u.Epilogs {
		if rva+4-fn.Begin >= e.Start {
			return 0 // the rows do not know of epilogs
		}
	}
	codes, err := u.At(nil, rva+4-fn.Begin)
	if err != nil {
		t.Errorf("%#x: %v", rva, err)
		return 0
	}
	r := dump.Registers{Arch: dump.ARM64}
	r.Set(dump.ARM64LR, 0x30)
	r.Set(dump.ARM64FP, armSP)
	w := newWalker(&space{}, dump.ARM64, nil)
	w.stack = dump.NewWindow(hashMemory{})
	x := arm64Undo{w: w, regs: &r, sp: armSP}
	later := uint64(0) // sp was lowered so much since fp was set
	for _, c := range codes {
		switch c.Op {
		case pdata.ARM64Alloc:
			later += uint64(c.Value)
		case pdata.ARM64AddFP, pdata.ARM64SetFP:
			r.Set(dump.ARM64FP, armSP+later+uint64(c.Value))
		}
		if why := x.one(c); why != "" {
			t.Errorf("%#x: %s", rva, why)
		}
	}
	off, _ := strconv.ParseInt(rules["cfa"][1], 10, 64)
	cfa := uint64(armSP + off)
	if rules["cfa"][0] != ".sp" || x.sp != cfa {
		t.Errorf("%#x: sp %#x, want %v", rva, x.sp, rules["cfa"])
	}
	for name, rule := range rules {
		num, err := strconv.Atoi(strings.TrimPrefix(name, "x"))
		if err != nil || rule[0] != ".cfa" {
			continue
		}
		off, _ := strconv.ParseInt(rule[1], 10, 64)
		if v, _ := r.Get(dump.Reg(num)); v != hashOf(cfa+uint64(off)) {
			t.Errorf("%#x: %s %#x is not the word at cfa%+d", rva, name, v, off)
		}
	}
	return 1
}

// BenchmarkARM64Step is one warm step by .pdata.
func BenchmarkARM64Step(b *testing.B) {
	s := newARMSpace()
	s.function(0x1100, 16, 0xe1, 0xc8, 0x02, 0x83)
	s.poke(armSP, armSP+0x100, s.bl(0x1220), 0x19, 0x20)
	w, opt := s.walker(), stackBounds
	start := regsARM64(imageBase+0x1120, armSP, armSP)
	first, _, _ := w.first(&start, &opt)
	b.ReportAllocs()
	for b.Loop() {
		regs, f := start, first
		if _, ok := w.Step(&regs, &f, &opt); !ok {
			b.Fatal("no step")
		}
	}
}
