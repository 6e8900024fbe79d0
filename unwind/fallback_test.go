package unwind

import (
	"encoding/binary"
	"strings"
	"testing"

	"dumptriage/dump"
)

const (
	noImageBase = 0x7ff700000000 // a module whose image is not at hand
	jitPage     = 0x1234_5000    // executable memory in no module
	dataPage    = 0x1234_7000    // memory known not to be executable
)

// bare is a space with the image module, a module without an image, and two
// pages outside modules.
func bare() *space {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1, 4, 1, 0, 4, 0x42}, nil)
	s.function(0x1500, 0x1600, []byte{1, 0, 0, 0}, nil)
	s.modules = append(s.modules, dump.Module{Base: noImageBase, Size: 0x10000, Path: `C:\other.dll`})
	s.exec = map[uint64]bool{jitPage: true, dataPage: false}
	return s
}

// Code of an image that no table entry covers is a leaf: [rsp] is its return
// address. KERNEL32 thunks, jmp stubs and system call stubs are of that kind.
func TestLeaf(t *testing.T) {
	s := bare()
	s.poke(sp0, s.callAt(0x1540))
	r := at(imageBase+0x1300, sp0)
	r.Set(dump.RBX, 5)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+8 || f.Method != MethodLeaf || f.Trust != TrustCFI {
		t.Errorf("%+v %+v", f, stop)
	}
	wantReg(t, &r, dump.RBX, 5)
}

// Where the leaf rule's return address cannot be one, it is not dressed as one.
func TestLeafImplausible(t *testing.T) {
	s := bare()
	s.poke(sp0, imageBase+0x1540) // in code, but no CALL before it
	s.poke(sp0+0x20, s.callAt(0x1580))
	r := at(imageBase+0x1300, sp0)
	r.Set(dump.RBP, sp0+0x100) // must not be used inside images with a table
	s.poke(sp0+0x100, sp0+0x200, s.callAt(0x1560))
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+0x28 || f.Trust != TrustScan || f.Detail == "" {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Outside images nothing is known to be a leaf: the top of the stack is only
// one candidate. Here it is stale data, not even code.
func TestNoLeafOutsideImages(t *testing.T) {
	for _, ip := range []uint64{noImageBase + 0x2000, jitPage + 0x10} {
		s := bare()
		s.poke(sp0, noImageBase+0x3000) // would be the leaf rule's answer
		r := at(ip, sp0)
		f, stop, ok := stepFrom(t, s, &r)
		if ok && (f.Trust != TrustScan || !strings.Contains(f.Detail, "unproven")) {
			t.Errorf("%#x: %+v %+v", ip, f, stop)
		}
		if !ok {
			t.Errorf("%#x: the unproven candidate was not offered: %+v", ip, stop)
		}
	}
}

// A call through a null pointer: the return address is on top of the stack.
func TestNullCall(t *testing.T) {
	for _, ip := range []uint64{0, 0x17, 0xdeadbeefdeadbeef, dataPage + 8} {
		s := bare()
		s.poke(sp0, s.callAt(0x1540))
		r := at(ip, sp0)
		r.Set(dump.RSI, 3)
		if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+8 || f.Method != MethodLeaf || f.Trust != TrustCFI {
			t.Errorf("%#x: %+v %+v", ip, f, stop)
		}
		wantReg(t, &r, dump.RSI, 3)
	}
}

// With no code bytes to prove the call the same frame is a guess, and one that
// no CALL precedes is none.
func TestNullCallUnproven(t *testing.T) {
	s := bare()
	s.poke(sp0, noImageBase+0x2345)
	r := at(0, sp0)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.Trust != TrustScan || f.Method != MethodLeaf {
		t.Errorf("unproven: %+v %+v", f, stop)
	}
	s = bare()
	s.poke(sp0, imageBase+0x1540)
	r = at(0, sp0)
	if f, _, ok := stepFrom(t, s, &r); ok {
		t.Errorf("no CALL: %+v", f)
	}
}

// rbp as a frame pointer: the saved rbp at rbp itself, or 16, 32 ... bytes above.
func TestFramePointer(t *testing.T) {
	for _, off := range []uint64{0, 16, 240} {
		s := bare()
		s.poke(sp0+0x40+off, sp0+0x400, s.callAt(0x1540))
		r := at(jitPage+0x10, sp0)
		r.Set(dump.RBP, sp0+0x40)
		r.Set(dump.RBX, 9)
		f, stop, ok := stepFrom(t, s, &r)
		if !ok || f.SP != sp0+0x50+off || f.Method != MethodRBP || f.Trust != TrustFramePointer || f.FP != sp0+0x400 {
			t.Errorf("offset %d: %+v %+v", off, f, stop)
		}
		if r.Known(dump.RBX) {
			t.Error("rbx is still known after a frame pointer step")
		}
	}
}

func TestFramePointerChecks(t *testing.T) {
	for name, spoil := range map[string]func(s *space, r *dump.Registers){
		"below rsp":              func(s *space, r *dump.Registers) { r.Set(dump.RBP, sp0-8) },
		"not aligned":            func(s *space, r *dump.Registers) { r.Set(dump.RBP, sp0+0x41) },
		"off the stack":          func(s *space, r *dump.Registers) { r.Set(dump.RBP, stackHigh+0x40) },
		"next not above":         func(s *space, r *dump.Registers) { s.poke(sp0+0x40, sp0+0x40) },
		"next off the stack":     func(s *space, r *dump.Registers) { s.poke(sp0+0x40, stackHigh+0x100) },
		"next not aligned":       func(s *space, r *dump.Registers) { s.poke(sp0+0x40, sp0+0x404) },
		"no CALL before":         func(s *space, r *dump.Registers) { s.poke(sp0+0x48, imageBase+0x1570) },
		"return not executable":  func(s *space, r *dump.Registers) { s.poke(sp0+0x48, dataPage+0x70) },
		"return not canonical":   func(s *space, r *dump.Registers) { s.poke(sp0+0x48, 0x8000_0000_0000_1540) },
		"return in kernel space": func(s *space, r *dump.Registers) { s.poke(sp0+0x48, 0xfffff800_00001540) },
		"rbp unknown":            func(s *space, r *dump.Registers) { r.Forget(dump.RBP) },
	} {
		s := bare()
		s.poke(sp0+0x40, sp0+0x400, s.callAt(0x1540))
		r := at(jitPage+0x10, sp0)
		r.Set(dump.RBP, sp0+0x40)
		spoil(s, &r)
		if f, _, ok := stepFrom(t, s, &r); ok && f.Method == MethodRBP {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// In code without a frame of its own rbp may be that of a caller far out: a
// frame of more than 128 KiB is not believed, neither this one nor the next.
func TestFramePointerGap(t *testing.T) {
	const far = stackHigh + 0x100000
	for _, c := range []struct {
		rbp, next uint64
		right     bool
	}{
		{sp0 + 0x20000, sp0 + 0x40000, true},
		{sp0 + 0x20008, sp0 + 0x20100, false},
		{sp0 + 0x40, sp0 + 0x20048, false},
	} {
		s := bare()
		s.bytesAt[c.rbp] = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.next), s.callAt(0x1540))
		s.bytesAt[c.next] = make([]byte, 16)
		r, opt := at(jitPage+0x10, sp0), Options{StackLimit: stackLow, StackBase: far}
		f := Frame{IP: jitPage + 0x10, Lookup: jitPage + 0x10, SP: sp0, FP: c.rbp, HasFP: true, Trust: TrustContext}
		r.Set(dump.RBP, c.rbp)
		if _, ok := s.walker().Step(&r, &f, &opt); (ok && f.Method == MethodRBP) != c.right {
			t.Errorf("rbp %#x next %#x: %+v", c.rbp, c.next, f)
		}
	}
}

// The scan takes only what a CALL precedes, by looking at the byte before the
// return address: a return address may be the first byte after its function.
func TestScan(t *testing.T) {
	s := bare()
	const wild = 0x5550_0000 // memory of which no protection is known, with a CALL in it
	s.bytesAt[wild] = []byte{0xcc, 0xcc, 0xcc, 0xe8, 0, 0, 0, 0}
	s.poke(sp0,
		imageBase+0x1580, // no CALL before it
		imageBase+0x40,   // the image's headers
		dataPage+0x10,    // not executable
		sp0+0x80,         // a stack address
		0x1540,           // no address
		noImageBase+0x40, // the headers of a module without image
		jitPage+0x30,     // outside modules, with no code to prove it
		wild+8,           // a CALL, but nothing says that it is code
		imageBase+0x1100, // a function, after a CALL that never returns
		s.callAt(0x2000)) // right: the last instruction of its function, and of the image's code
	s.callAt(0x1100)
	s.function(0x1f00, 0x2000, []byte{1, 0, 0, 0}, nil)
	s.poke(sp0+0x50, s.callAt(0x1540)) // where that function returns to
	r := at(jitPage+0x10, sp0)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+0x50 || f.Method != MethodScan || f.Trust != TrustScan || strings.Contains(f.Detail, "unproven") {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A thread that was captured from inside has its own CONTEXT on its stack, and
// in it the program counter of frame 0. It returns to nobody.
func TestScanPassesStoredContext(t *testing.T) {
	s := bare()
	s.poke(sp0+0xf8, noImageBase+0x2000)
	s.poke(sp0+0x200, noImageBase+0x3000)
	r := at(noImageBase+0x2000, sp0)
	opt := stackBounds
	f := Frame{IP: noImageBase + 0x2000, Lookup: noImageBase + 0x2000, SP: sp0, Trust: TrustContext}
	if stop, ok := s.walker().Step(&r, &f, &opt); !ok || f.SP != sp0+0x208 || f.IP != noImageBase+0x3000 {
		t.Errorf("%+v %+v", f, stop)
	}
}

// From registers 160 words are scanned, from a scanned frame 40.
func TestScanReach(t *testing.T) {
	for _, c := range []struct {
		trust Trust
		word  uint64
		found bool
	}{{TrustContext, 159, true}, {TrustContext, 160, false}, {TrustScan, 39, true}, {TrustScan, 40, false}} {
		s := bare()
		s.poke(sp0+8*c.word, s.callAt(0x1540))
		r, opt := at(jitPage+0x10, sp0), stackBounds
		f := Frame{IP: jitPage + 0x10, Lookup: jitPage + 0xf, SP: sp0, Trust: c.trust}
		if stop, ok := s.walker().Step(&r, &f, &opt); ok != c.found {
			t.Errorf("%v word %d: %v %+v", c.trust, c.word, ok, stop)
		}
	}
}

// A stale return address whose own frame has been overwritten is passed over.
func TestScanPassesStaleFrames(t *testing.T) {
	s := bare()
	s.image.table = s.image.table[:0]
	s.function(0x1100, 0x1200, []byte{1, 4, 1, 0, 4, 0x42}, nil) // frame of 0x28 bytes
	s.function(0x1500, 0x1600, []byte{1, 0, 0, 0}, nil)
	s.poke(sp0+0x10, s.callAt(0x1180), 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa)
	s.poke(sp0+0x80, s.callAt(0x1190), 0, 0, 0, 0, 0, s.callAt(0x1540)) // its frame leads on
	r := at(jitPage+0x10, sp0)
	if f, stop, ok := stepFrom(t, s, &r); !ok || f.SP != sp0+0x88 {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A stack full of pointers into a module without code: the walk gives up after
// 32 frames that nothing proves.
func TestUnprovenScanLimit(t *testing.T) {
	s := bare()
	for va := uint64(sp0); va < stackHigh; va += 8 {
		s.poke(va, noImageBase+0x2000+va&0xfff)
	}
	st := s.walker().Walk(at(noImageBase+0x2000, sp0), stackBounds)
	if st.Stop.Reason != StopLimit || len(st.Frames) != 1+maxUnproven || !strings.Contains(st.Stop.Detail, "without proof") {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
}

// System call stubs and other code at its very end need no unwind data when
// the instructions are at hand. A jump is not such an end: without unwind data
// nothing tells a tail call from a branch.
func TestReturnWithoutUnwindData(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte
		sp   uint64 // of the caller, from sp0; 0 when the code is no end
	}{
		"ret":           {[]byte{0xc3}, 8},
		"rep ret":       {[]byte{0xf3, 0xc3}, 8},
		"ret 0x10":      {[]byte{0xc2, 0x10, 0}, 0x18},
		"pause; ret":    {[]byte{0xf3, 0x90, 0xc3}, 0},
		"jmp [rip]":     {[]byte{0xff, 0x25, 0, 0, 0, 0}, 0},
		"REX.W jmp rax": {[]byte{0x48, 0xff, 0xe0}, 0},
	} {
		s := bare()
		s.bytesAt[noImageBase+0x2000] = append([]byte{0x0f, 0x05}, c.code...) // syscall
		s.poke(sp0, s.callAt(0x1540))
		r := at(noImageBase+0x2002, sp0)
		r.Set(dump.RBP, 7)
		f, stop, ok := stepFrom(t, s, &r)
		if c.sp == 0 {
			if ok && f.Method == MethodEpilog {
				t.Errorf("%s: %+v", name, f)
			}
			continue
		}
		if !ok || f.SP != sp0+c.sp || f.Method != MethodEpilog || f.Detail == "" {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
		wantReg(t, &r, dump.RBP, 7)
	}
}

// Running on from a frame that is a guess itself makes no certain frame.
func TestReturnFromGuess(t *testing.T) {
	for trust, want := range map[Trust]Trust{TrustScan: TrustCFIScan, TrustFramePointer: TrustCFI, TrustCFI: TrustCFI} {
		s := bare()
		s.bytesAt[noImageBase+0x2000] = []byte{0xff, 0xd0, 0x48, 0x83, 0xc4, 0x28, 0xc3} // call rax; add rsp, 0x28; ret
		s.poke(sp0+0x28, s.callAt(0x1540))
		r, opt := at(noImageBase+0x2002, sp0), stackBounds
		f := Frame{IP: noImageBase + 0x2002, Lookup: noImageBase + 0x2001, SP: sp0, Trust: trust}
		if stop, ok := s.walker().Step(&r, &f, &opt); !ok || f.SP != sp0+0x30 || f.Method != MethodEpilog || f.Trust != want {
			t.Errorf("from %v: %+v %+v, want %v", trust, f, stop, want)
		}
	}
}

// In the range of an entry for many functions push rbp is a function's first
// instruction only where a return address lies on top of the stack.
func TestCoarsePushWithin(t *testing.T) {
	d, w := v8Space(framedInfo)
	copy(d.table.code[0x100:], []byte{0x55, 0x48, 0x89, 0xe5})
	d.poke(sp0, imageBase+0x1555) // code, but no CALL before it
	d.poke(sp0+0x20, d.callAt(0x1540))
	st := w.Walk(at(jitPage+0x100, sp0), stackBounds)
	if len(st.Frames) != 2 || st.Frames[1].SP != sp0+0x28 || st.Frames[1].Trust != TrustScan {
		t.Errorf("%+v", st)
	}
}

// How walks end.
func TestStops(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(s *space)
		ip     uint64
		reason Reason
		detail string
	}{
		"return address 0":            {func(s *space) {}, imageBase + 0x1540, StopEndOfStack, ""},
		"no image":                    {func(s *space) {}, noImageBase + 0x2000, StopNoUnwindData, "other.dll"},
		"no module":                   {func(s *space) {}, jitPage + 0x10, StopNoUnwindData, "no module"},
		"image without table":         {func(s *space) { s.image.noTable = true }, imageBase + 0x1540, StopNoUnwindData, "app.exe: the image has no function table"},
		"image without its table":     {func(s *space) { s.image.noTable, s.image.partial = true, true }, imageBase + 0x1540, StopNoUnwindData, "app.exe: no image at hand but parts"},
		"return address is not code":  {func(s *space) { s.poke(sp0, dataPage+0x10) }, imageBase + 0x1540, StopBadUnwindInfo, "0x12347010"},
		"return address in no half":   {func(s *space) { s.poke(sp0, 1<<63) }, imageBase + 0x1540, StopBadUnwindInfo, "0x8000000000000000"},
		"stack cut off":               {func(s *space) { s.bytesAt[stackLow] = s.bytesAt[stackLow][:sp0-stackLow] }, imageBase + 0x1540, StopStackMissing, "0x101000"},
		"unwind data of unknown kind": {func(s *space) { s.image.infos[0x8100] = []byte{1, 0, 1, 0, 0, 0x0f} }, imageBase + 0x1540, StopBadUnwindInfo, "app.exe"},
		"unwind data not there":       {func(s *space) { delete(s.image.infos, 0x8100) }, imageBase + 0x1540, StopBadUnwindInfo, "app.exe"},
	} {
		s := bare()
		c.spoil(s)
		st := s.walker().Walk(at(c.ip, sp0), stackBounds)
		if len(st.Frames) != 1 || st.Stop.Reason != c.reason || !strings.Contains(st.Stop.Detail, c.detail) {
			t.Errorf("%s: %d frames, %+v", name, len(st.Frames), st.Stop)
		}
	}
}

// The frame at the very top of the stack has no caller.
func TestStackBaseEndsWalk(t *testing.T) {
	s := bare()
	s.poke(stackHigh-8, s.callAt(0x1540))
	st := s.walker().Walk(at(imageBase+0x1540, stackHigh-8), stackBounds)
	if len(st.Frames) != 2 || st.Stop.Reason != StopEndOfStack {
		t.Errorf("%+v", st)
	}
}

// A frame that allocates nothing and returns to itself makes progress by 8
// bytes a frame, up to the cap.
func TestFrameCap(t *testing.T) {
	s := bare()
	self := s.callAt(0x1540)
	for va := uint64(sp0); va < stackHigh; va += 8 {
		s.poke(va, self)
	}
	opt := stackBounds
	opt.MaxFrames = 100
	st := s.walker().Walk(at(self, sp0), opt)
	if len(st.Frames) != 100 || !st.Truncated || st.Stop.Reason != StopLimit {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
}

// A frame register that points down the stack would walk in a circle.
func TestNoProgress(t *testing.T) {
	s := bare()
	s.image.infos[0x8100] = []byte{1, 4, 2, 0x05, 4, 0x03, 1, 0x50}
	s.poke(sp0-0x100, sp0-0x100, s.callAt(0x1540))
	r := at(imageBase+0x1540, sp0)
	r.Set(dump.RBP, sp0-0x100)
	st := s.walker().Walk(r, stackBounds)
	if len(st.Frames) != 1 || st.Stop.Reason != StopNoProgress {
		t.Errorf("%d frames, %+v", len(st.Frames), st.Stop)
	}
}

// Registers that are not there give no frame, and say so.
func TestNoRegisters(t *testing.T) {
	if st := bare().walker().Walk(dump.Registers{}, Options{}); len(st.Frames) != 0 || st.Stop.Reason != StopNoUnwindData {
		t.Errorf("%+v", st)
	}
	if st := New(bare(), dump.ARM).Walk(at(1, 2), Options{}); len(st.Frames) != 0 || st.Stop.Detail == "" {
		t.Errorf("%+v", st)
	}
}

// The bytes before a return address, by hand from the instruction manual.
func TestEndsInCall(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		arch dump.Arch
		want bool
	}{
		{"call rel32", []byte{0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4}, dump.AMD64, true},
		{"call rax", []byte{0x90, 0xff, 0xd0}, dump.AMD64, true},
		{"call r10", []byte{0x41, 0xff, 0xd2}, dump.AMD64, true},
		{"call [rip+x]", []byte{0xff, 0x15, 1, 2, 3, 4}, dump.AMD64, true},
		{"call [rax+8]", []byte{0xff, 0x50, 8}, dump.AMD64, true},
		{"call [r9+rcx*8+0x100]", []byte{0x41, 0xff, 0x94, 0xc9, 0, 1, 0, 0}, dump.AMD64, true},
		{"jmp rax", []byte{0x90, 0x90, 0xff, 0xe0}, dump.AMD64, false},
		{"push [rax]", []byte{0x90, 0x90, 0xff, 0x30}, dump.AMD64, false},
		{"vaddsd, which some decoders take for pop", []byte{0x90, 0xc5, 0xfb, 0x58, 0xc1}, dump.AMD64, false},
		{"endbr64", []byte{0xf3, 0x0f, 0x1e, 0xfa}, dump.AMD64, false},
		{"EVEX", []byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x00}, dump.AMD64, false},
		{"call rel32", []byte{0xe8, 1, 2, 3, 4}, dump.X86, true},
		{"call [fs:0xc0]", []byte{0x64, 0xff, 0x15, 0xc0, 0, 0, 0}, dump.X86, true},
		{"call edx", []byte{0xff, 0xd2}, dump.X86, true},
		{"call [ebp-8]", []byte{0xff, 0x55, 0xf8}, dump.X86, true},
		{"call [eax+ecx*4+8]", []byte{0xff, 0x54, 0x88, 8}, dump.X86, true},
		{"call [mem]", []byte{0xff, 0x15, 1, 2, 3, 4}, dump.X86, true},
		{"call [eax*4+mem]", []byte{0xff, 0x14, 0x85, 1, 2, 3, 4}, dump.X86, true},
		{"call far", []byte{0x9a, 1, 2, 3, 4, 0x33, 0}, dump.X86, true},
		{"call far is not 64-bit", []byte{0x9a, 1, 2, 3, 4, 0x33, 0}, dump.AMD64, false},
		{"nothing", nil, dump.AMD64, false},
	} {
		if got := endsInCall(c.b, c.arch); got != c.want {
			t.Errorf("%s (%s): %v", c.name, c.arch, got)
		}
	}
}

// dynamicSpace has a function table for the page of code outside modules.
type dynamicSpace struct {
	*space
	table *fakeImage
}

func (s dynamicSpace) HasDynamicTables() bool { return true }

func (s dynamicSpace) DynamicTable(va uint64) (Table, uint64, Method) {
	if va&^0xfff == jitPage {
		return s.table, jitPage - textRVA, MethodFunctionTable
	}
	return nil, 0, MethodNone
}

// Code outside modules that a dynamic table covers is unwound by it; what it
// does not cover is no leaf.
func TestDynamicTable(t *testing.T) {
	s := bare()
	s.poke(sp0, imageBase+0x1555) // the leaf rule's answer, which no CALL precedes
	s.poke(sp0+0x28, s.callAt(0x1540))
	jit := newSpace(0x1000)
	jit.function(textRVA+0x100, textRVA+0x200, []byte{1, 4, 1, 0, 4, 0x42}, nil)
	d := dynamicSpace{s, jit.image}
	for ip, want := range map[uint64]struct {
		method Method
		trust  Trust
	}{jitPage + 0x140: {MethodFunctionTable, TrustCFI}, jitPage + 0x300: {MethodScan, TrustScan}} {
		w := newWalker(d, dump.AMD64, s.walker().find)
		r, opt := at(ip, sp0), stackBounds
		f, _, _ := w.first(&r, &opt)
		if stop, ok := w.Step(&r, &f, &opt); !ok || f.SP != sp0+0x30 || f.Method != want.method || f.Trust != want.trust {
			t.Errorf("%#x: %+v %+v", ip, f, stop)
		}
	}
}

// A fiber runs on another stack than the one whose bounds the thread has: they
// say nothing then, above or below.
func TestFiberStack(t *testing.T) {
	for _, bounds := range []Options{{StackLimit: 0x1000, StackBase: 0x5000}, {StackLimit: stackHigh + 0x1000, StackBase: stackHigh + 0x5000}} {
		s := bare()
		s.poke(sp0, s.callAt(0x1540))
		st := s.walker().Walk(at(imageBase+0x1540, sp0), bounds)
		if len(st.Frames) != 2 || st.Frames[1].SP != sp0+8 || st.Stop.Reason != StopEndOfStack {
			t.Errorf("%+v", st)
		}
	}
}
