package kdump

import (
	"bytes"
	"testing"

	"dumptriage/dump"
)

// live64 builds a file in the shape of the live triage writer: everything that
// is captured is a data block rounded up to 8 bytes; the table grows downwards
// and stands last, so that it is in reverse order of capture; the first block of
// a kind is also named in the header.
type live64 struct {
	f      *bin
	blocks []block
	offs   []int
}

func newLive() *live64 {
	h := header64Bytes(4, 0x161, [4]uint64{})
	h.u32(0xc, 19045)
	h.u32(0x1050, 0x10)
	h.grow(0x2080)
	l := &live64{f: h}
	l.f.u32(0x2070, uint32(l.f.append(kdbg64())))
	l.f.u32(0x2074, 0x380)
	l.f.drivers64()
	l.f.u32(0x2040, 0)
	return l
}

func (l *live64) snap(va uint64, data []byte) int {
	l.f.grow((len(l.f.b) + 7) &^ 7)
	off := l.f.append(data)
	l.blocks, l.offs = append(l.blocks, block{va, data}), append(l.offs, off)
	return off
}

func (l *live64) slot(at, off int) {
	if len(l.f.b) < at+4 || bytes.Equal(l.f.b[0x2000+at:0x2000+at+4], make([]byte, 4)) {
		l.f.u32(0x2000+at, uint32(off))
	}
}

func (l *live64) finish() []byte {
	l.f.grow((len(l.f.b) + 7) &^ 7)
	l.f.u32(0x2078, uint32(len(l.f.b)))
	l.f.u32(0x207c, uint32(len(l.blocks)))
	for i := len(l.blocks) - 1; i >= 0; i-- {
		e := &bin{}
		e.u64(0, l.blocks[i].va)
		e.u32(8, uint32(l.offs[i]))
		e.u32(12, uint32(len(l.blocks[i].data)))
		l.f.append(e.b)
	}
	l.f.u32(0x2008, uint32(l.f.append([]byte("TRGD"))))
	l.f.u32(0x2004, uint32(len(l.f.b)))
	l.f.u64(0xfa0, uint64(len(l.f.b)))
	l.f.u32(0x1038, 0xcff)
	return l.f.b
}

const (
	livePID = 15068
	liveRip = ntBase + 0x888b51
)

func liveStack(i int) (base, rsp uint64) {
	base = 0xffffe10d62388000 + uint64(i)*0x10000
	return base, base - 0x1050
}

// system builds KPRCBs, EPROCESS and n threads. The registers of thread 2 are
// spoiled so that its CONTEXT does not agree with its switch frame.
func (l *live64) system(n int) {
	cpu0 := l.snap(prcbVA, prcb64(0, 0, 0, 0))
	l.slot(0x1c, cpu0)
	l.snap(prcb1VA, prcb64(1, 0, 0, 0))
	l.slot(0x20, l.snap(eprocess, eprocess64(livePID, 19584)))
	for i := range n {
		l.thread(i, cpu0)
	}
}

func (l *live64) thread(i, cpu0 int) {
	base, rsp := liveStack(i)
	va := uint64(ethread) + 0x10000*uint64(i)
	spec := threadSpec{base: base, state: 5, kernelStack: rsp - 0x800, teb: 0xd67cb98000 + 0x2000*uint64(i), pid: livePID, tid: 1000 + 4*uint64(i)}
	if i > 0 {
		spec.state, spec.kernelStack = 0xff, rsp-0x40
	}
	l.slot(0x24, l.snap(va, ethread64(spec)))
	ctx := &bin{amd64Context(liveRip, rsp)}
	if i == 0 {
		l.f.u64(cpu0+8, va)
		l.f.put(0x348, ctx.b)
	} else {
		if i == 2 {
			ctx.u64(0x98, rsp+8)
		}
		l.snap(rsp+0x40, ctx.b)
	}
	stack := &bin{make([]byte, base-rsp)}
	userTrapFrame(stack, int(base-0x370-0x190-rsp), 0x7ffe6390d184, 0xd67c9fe328+0x100000*uint64(i))
	off := l.snap(rsp, stack.b)
	if i == 0 {
		l.slot(0x28, off)
		l.f.u32(0x202c, uint32(len(stack.b)))
		l.f.u64(0x2048, rsp)
		return
	}
	l.snap(rsp-0x40, switchFrame64(rsp+0x80, liveRip))
}

func TestLive(t *testing.T) {
	l := newLive()
	l.system(4)
	f := openBytes(t, l.finish())
	if !f.Live() || f.Kind() != "triage (live, procdump -mk)" {
		t.Fatalf("kind %q", f.Kind())
	}
	if p := f.Process(); p.PID != livePID || p.ParentPID != 19584 || p.Name != "ConsoleApp1.ex" || p.EPROCESS != eprocess {
		t.Errorf("process %+v", *p)
	}
	ts := f.Threads()
	if len(ts) != 4 {
		t.Fatalf("%d threads", len(ts))
	}
	sources := []dump.ContextSource{dump.ContextHeader, dump.ContextLiveBlock, dump.ContextSwitchFrame, dump.ContextLiveBlock}
	for i, th := range ts {
		base, rsp := liveStack(i)
		k := th.Kernel
		if th.ID != uint32(1000+4*i) || th.TEB != 0xd67cb98000+0x2000*uint64(i) || k.PID != livePID || k.ETHREAD != uint64(ethread)+0x10000*uint64(i) || !k.Live || k.CPU != -1 {
			t.Errorf("thread %d: %+v %+v", i, th, *k)
		}
		if th.ContextSource != sources[i] || pcsp(&th.Context) != [2]uint64{liveRip, rsp} {
			t.Errorf("thread %d: context from %v: %#x", i, th.ContextSource, pcsp(&th.Context))
		}
		if _, ok := th.Context.Get(dump.RBX); ok != (i != 2) {
			t.Errorf("thread %d: rbx known %v", i, ok)
		}
		if k.TrapFrame != base-0x370-0x190 || k.TrapFrameRule != "initial_stack" ||
			pcsp(&k.User) != [2]uint64{0x7ffe6390d184, 0xd67c9fe328 + 0x100000*uint64(i)} {
			t.Errorf("thread %d: trap frame %#x %q %#x", i, k.TrapFrame, k.TrapFrameRule, pcsp(&k.User))
		}
	}
	for _, c := range f.CPUs() {
		if c.ETHREAD != 0 || c.Source != dump.ContextNone || !c.Context.Empty() {
			t.Errorf("a live dump knows nothing of what processor %d ran: %+v", c.Number, c)
		}
	}
	if f.BugCheckEntry() || f.Exception() != nil {
		t.Error("a live dump has no bugcheck to enter and no exception")
	}
	wantNoDamage(t, f)
}

// KTHREAD.TrapFrame serves when nothing from user mode lies below InitialStack;
// a kernel-mode frame (a Zw call) there must not.
func TestTrapFrameRules(t *testing.T) {
	base, rsp := liveStack(0)
	for name, c := range map[string]struct {
		cs   uint16
		want string
	}{"user": {0x33, "kthread_trap_frame"}, "kernel": {0x10, ""}} {
		l := newLive()
		l.slot(0x1c, l.snap(prcbVA, prcb64(0, ethread, 0, 0)))
		l.slot(0x20, l.snap(eprocess, eprocess64(livePID, 8)))
		l.slot(0x24, l.snap(ethread, ethread64(threadSpec{base: base, state: 2, teb: 0x1000, trapFrame: base - 0xa00, pid: livePID, tid: 8})))
		stack := &bin{make([]byte, base-rsp)}
		userTrapFrame(stack, int(base-0xa00-rsp), 0x7ffe6390d184, 0xd67c9fe328)
		stack.u16(int(base-0xa00-rsp)+0x170, c.cs)
		l.snap(rsp, stack.b)
		k := openBytes(t, l.finish()).Threads()[0].Kernel
		if k.TrapFrameRule != c.want || (c.want != "") != (k.TrapFrame == base-0xa00) || k.User.Empty() != (c.want == "") {
			t.Errorf("%s: rule %q at %#x", name, k.TrapFrameRule, k.TrapFrame)
		}
	}
}

// The status array says which requested threads are missing.
func TestThreadStatus(t *testing.T) {
	l := newLive()
	l.system(2)
	s := (&bin{}).pointers()
	m := &bin{s}
	for i, v := range []uint32{0, 0xc000010a, 0, 0x42534354} { // 0xc000010a: the process is terminating
		m.u32(4*i, v)
	}
	l.snap(0xffffd00000700000, m.b)
	f := openBytes(t, l.finish())
	if got := f.ThreadStatus(); len(got) != 3 || got[1] != 0xc000010a || got[2] != 0 {
		t.Errorf("status %#x", got)
	}
	d := f.Damage()
	if len(d) != 1 || !d[0].Warning || d[0].Code != dump.Limit {
		t.Errorf("damage %v", d)
	}
}

// With the table lost the header's own pointers still give the first thread.
func TestLiveTruncated(t *testing.T) {
	l := newLive()
	l.system(3)
	b := l.finish()
	f := openBytes(t, b[:len(b)-0x40])
	if !f.Live() {
		t.Error("not recognised as live")
	}
	ts := f.Threads()
	if len(ts) == 0 || ts[0].ID != 1000 || ts[0].ContextSource != dump.ContextHeader {
		t.Errorf("threads %+v", ts)
	}
	if d := f.Damage(); len(d) == 0 || d[0].Code != dump.Truncated {
		t.Errorf("damage %v", d)
	}
}

// Ids are found by scanning when the sizes are of no known kernel.
func TestIdentityByScan(t *testing.T) {
	thread := &record{va: ethread, b: ethread64(threadSpec{base: stackBase, pid: livePID, tid: 22816}), ptr: 8}
	process := &record{va: eprocess, b: eprocess64(livePID, 19584), ptr: 8}
	if got := scanIdentity(thread, process, 0x540); got != (identity{cid: 0x478, pid: 0x440}) {
		t.Errorf("%+v", got)
	}
	if got := imageName(process, 0, 0x540); got != "ConsoleApp1.ex" {
		t.Errorf("name %q", got)
	}
	// Nothing is made up when the process says otherwise.
	other := &record{va: eprocess, b: eprocess64(4444, 19584), ptr: 8}
	if got := scanIdentity(thread, other, 0x540); got != (identity{}) {
		t.Errorf("%+v", got)
	}
}

// Windows 8 keeps UniqueProcessId 0xf0 before the parent's id, not 0x100: the
// distance is only a hint.
func TestIdentityElsewhere(t *testing.T) {
	p := &bin{make([]byte, 0x660)}
	p.u64(0x2e0, livePID)
	p.u64(0x2e8, eprocess+0x1000)
	p.u64(0x2f0, eprocess+0x2000)
	process := &record{va: eprocess, b: p.b, ptr: 8}
	thread := &record{va: ethread, b: ethread64(threadSpec{base: stackBase, pid: livePID, tid: 22816}), ptr: 8}
	if got := scanIdentity(thread, process, 0x3d0); got != (identity{cid: 0x478, pid: 0x2e0}) {
		t.Errorf("%+v", got)
	}
}
