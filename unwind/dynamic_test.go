package unwind

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// push rbp; mov rbp, rsp: version 1, prolog of 4 bytes, 2 codes, frame register
// rbp; SET_FPREG at 4, PUSH_NONVOL rbp at 1.
var framedInfo = []byte{1, 4, 2, 5, 4, 3, 1, 0x50}

// jitScene is a space with a page of three methods framed by rbp, and no code
// of them in the dump.
func jitScene() (dynamicSpace, *Walker) {
	s := bare()
	jit := newSpace(0x1000)
	jit.image.noBytes = true
	for i := range uint32(3) {
		jit.function(textRVA+0x100*i, textRVA+0x100*i+0xf0, framedInfo, nil)
	}
	d := dynamicSpace{s, jit.image}
	return d, newWalker(d, dump.AMD64, s.walker().find)
}

// Native code without an image calls back into a JIT's code: rbp is lost, and
// the frames are found again on the stack. A return address that a call left
// behind further in does not hide the live one.
func TestReentry(t *testing.T) {
	d, w := jitScene()
	d.poke(sp0+0x18, jitPage+0x23) // of a call that is over
	d.poke(sp0+0x38, jitPage+0x55) // the native code's return address
	d.poke(sp0+0x40, 0, 0, 0)      // locals of the first method
	d.poke(sp0+0x80, sp0+0xc0, jitPage+0x155)
	d.poke(sp0+0xc0, sp0+0x100, jitPage+0x255)
	d.poke(sp0+0x100, sp0+0x180, jitPage+0x1aa)
	d.poke(sp0+0x180, 0x1c, d.callAt(0x1540)) // the outermost method's caller used rbp as it liked
	st := w.Walk(at(noImageBase+0x2000, sp0), stackBounds)
	want := []struct {
		ip, sp uint64
		trust  Trust
		method Method
	}{
		{noImageBase + 0x2000, sp0, TrustContext, MethodContext},
		{jitPage + 0x55, sp0 + 0x40, TrustScan, MethodScan},
		{jitPage + 0x155, sp0 + 0x90, TrustCFIScan, MethodFunctionTable},
		{jitPage + 0x255, sp0 + 0xd0, TrustCFIScan, MethodFunctionTable},
		{jitPage + 0x1aa, sp0 + 0x110, TrustCFI, MethodFunctionTable},
		{imageBase + 0x1540, sp0 + 0x190, TrustCFI, MethodFunctionTable},
	}
	for i, f := range st.Frames {
		if i >= len(want) || f.IP != want[i].ip || f.SP != want[i].sp || f.Trust != want[i].trust || f.Method != want[i].method {
			t.Errorf("frame %d: %+v", i, f)
		}
	}
	if len(st.Frames) != len(want) {
		t.Errorf("%d frames, want %d: %+v", len(st.Frames), len(want), st.Stop)
	}
	if f := st.Frames[len(st.Frames)-1]; !f.HasFP || f.FP != 0x1c {
		t.Errorf("rbp of the outermost method's caller: %#x %v", f.FP, f.HasFP)
	}
}

// What does not lead on is not taken for a frame.
func TestReentryRefused(t *testing.T) {
	for name, spoil := range map[string]func(d dynamicSpace){
		"the second step leads to no code": func(d dynamicSpace) { d.poke(sp0+0xc8, dataPage+0x55) },
		"the saved rbp leaves the stack":   func(d dynamicSpace) { d.poke(sp0+0x80, stackHigh+0x100) },
		"the saved rbp goes down":          func(d dynamicSpace) { d.poke(sp0+0x80, sp0) },
	} {
		d, w := jitScene()
		d.poke(sp0+0x38, jitPage+0x55)
		d.poke(sp0+0x80, sp0+0xc0, jitPage+0x155)
		d.poke(sp0+0xc0, sp0+0x100, jitPage+0x255)
		d.poke(sp0+0x100, 0, 0)
		spoil(d)
		for _, f := range w.Walk(at(noImageBase+0x2000, sp0), stackBounds).Frames[1:] {
			if f.Trust >= TrustCFIScan {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// Pointers into modules without images use up what a scan may guess. The next
// way into code made at run time is looked for beyond them.
func TestAnchor(t *testing.T) {
	d, w := jitScene()
	for i := range uint64(maxUnproven + 8) {
		d.poke(sp0+8*i, noImageBase+0x3000)
	}
	const jit = sp0 + 0x1000
	d.poke(jit, jitPage+0x55)
	d.poke(jit+0x40, jit+0x80, jitPage+0x155)
	d.poke(jit+0x80, jit+0xc0, jitPage+0x255)
	d.poke(jit+0xc0, 0x1c, d.callAt(0x1540))
	st := w.Walk(at(noImageBase+0x2000, sp0), stackBounds)
	n := len(st.Frames)
	if n != 1+maxUnproven+4 || st.Frames[n-1].IP != imageBase+0x1540 || st.Frames[n-4].SP != jit+8 {
		t.Errorf("%d frames, %+v: %+v", n, st.Stop, st.Frames[max(0, n-4):])
	}
}

// One frame alone proves nothing: any two words look like a saved rbp and a
// return address.
func TestReentryAlone(t *testing.T) {
	d, w := jitScene()
	d.poke(sp0+0x38, jitPage+0x55)
	d.poke(sp0+0x80, sp0+0xc0, d.callAt(0x1540))
	for _, f := range w.Walk(at(noImageBase+0x2000, sp0), stackBounds).Frames {
		if f.Trust == TrustCFIScan {
			t.Errorf("%+v", f)
		}
	}
}

// A function that by its unwind data takes no stack has called nothing: it
// would have had to make room for the callee's parameters.
func TestFramelessIsNoCaller(t *testing.T) {
	s := bare()
	jit := newSpace(0x1000)
	jit.image.noBytes = true
	jit.function(textRVA, textRVA+0x100, []byte{1, 0, 0, 0}, nil)
	s.poke(sp0+0x10, jitPage+0x55, s.callAt(0x1540))
	st := newWalker(dynamicSpace{s, jit.image}, dump.AMD64, s.walker().find).Walk(at(noImageBase+0x2000, sp0), stackBounds)
	if len(st.Frames) < 2 || st.Frames[1].IP != imageBase+0x1540 {
		t.Errorf("%+v", st)
	}
}

// A pointer into code made at run time from which a walk would end is no return
// address: no thread begins there.
func TestNoThreadBeginsInJIT(t *testing.T) {
	s := bare()
	jit := newSpace(0x1000)
	jit.image.noBytes = true
	jit.function(textRVA, textRVA+0x100, []byte{1, 4, 1, 0, 4, 0x42}, nil) // sub rsp, 0x28
	d := dynamicSpace{s, jit.image}
	s.poke(sp0+0x10, jitPage+0x55) // followed by zeros
	st := newWalker(d, dump.AMD64, s.walker().find).Walk(at(noImageBase+0x2000, sp0), stackBounds)
	if len(st.Frames) != 1 || st.Stop.Reason == StopEndOfStack {
		t.Errorf("%+v", st)
	}
}

// v8Space has one entry for a range of 512 MB, as V8 makes it.
func v8Space(info []byte) (dynamicSpace, *Walker) {
	s := bare()
	im := &fakeImage{code: make([]byte, 0x1000), infos: map[uint32][]byte{0xc: info},
		table: []pdata.RuntimeFunction{{Begin: 0, End: 512 << 20, UnwindInfo: 0xc}}}
	d := dynamicSpace{s, im}
	return d, newWalker(d, dump.AMD64, s.walker().find)
}

// An entry for a whole range says nothing of other registers than rip, rsp and
// rbp, and is wrong before a function has made its frame.
func TestCoarseEntry(t *testing.T) {
	for name, c := range map[string]struct {
		code   []byte
		frame  uint64 // where rbp points
		wantSP uint64
	}{
		"body":         {[]byte{0x90, 0x90, 0x90}, sp0 + 0x40, sp0 + 0x50},
		"push rbp":     {[]byte{0x55, 0x48, 0x89, 0xe5}, 0x1c, sp0 + 8},
		"mov rbp, rsp": {[]byte{0x48, 0x89, 0xe5}, 0x1c, sp0 + 0x10},
		"the other":    {[]byte{0x48, 0x8b, 0xec}, 0x1c, sp0 + 0x10},
	} {
		d, w := v8Space(framedInfo)
		copy(d.table.code[0x100:], c.code)
		ret := d.callAt(0x1540)
		d.poke(c.wantSP-8, ret)
		if c.wantSP != sp0+8 {
			d.poke(c.wantSP-16, 0x1234)
		}
		r, opt := at(jitPage+0x100, sp0), stackBounds
		r.Set(dump.RBP, c.frame)
		r.Set(dump.RBX, 7)
		f, _, _ := w.first(&r, &opt)
		if stop, ok := w.Step(&r, &f, &opt); !ok || f.IP != ret || f.SP != c.wantSP || f.Method != MethodFunctionTable {
			t.Errorf("%s: %+v %+v", name, f, stop)
		}
		want := uint64(0x1234)
		if name == "push rbp" {
			want = c.frame
		}
		wantReg(t, &r, dump.RBP, want)
		if r.Known(dump.RBX) {
			t.Errorf("%s: rbx is still known", name)
		}
	}
}

// Where the dump lacks the unwind data of such an entry there is but one thing
// that it can say. The frames are marked for it.
func TestPresumed(t *testing.T) {
	d, w := v8Space(framedInfo[:4])
	d.poke(sp0+0x40, sp0+0x100, d.callAt(0x1540))
	r, opt := at(jitPage+0x100, sp0), stackBounds
	r.Set(dump.RBP, sp0+0x40)
	f, _, _ := w.first(&r, &opt)
	if stop, ok := w.Step(&r, &f, &opt); !ok || f.SP != sp0+0x50 || f.Method != MethodRBP || f.Trust != TrustFramePointer || f.Detail != presumed {
		t.Errorf("%+v %+v", f, stop)
	}
	d, w = v8Space([]byte{7, 0, 0, 0}) // there, and of no known version
	d.poke(sp0+0x40, dataPage, 1)
	r = at(jitPage+0x100, sp0)
	r.Set(dump.RBP, sp0+0x40)
	st := w.Walk(r, stackBounds)
	if len(st.Frames) != 1 || st.Stop.Reason != StopBadUnwindInfo || !strings.Contains(st.Stop.Detail, "function table") {
		t.Errorf("%+v", st)
	}
}

// A stack full of pointers that each begin a search costs no more than the
// walk's effort allows.
func TestReentryEffort(t *testing.T) {
	d, w := jitScene()
	for va := uint64(sp0); va < stackHigh-0x20; va += 16 {
		d.poke(va, va+0x20, jitPage+0x55+(va&0x100))
	}
	d.poke(stackHigh-0x200, 1, 1, 1, 1, 1, 1, 1, 1)
	w.Walk(at(noImageBase+0x2000, sp0), stackBounds)
	if w.effort < -followed*tryEffort-tryEffort {
		t.Errorf("effort %d", w.effort)
	}
}
