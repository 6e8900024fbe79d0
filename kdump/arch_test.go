package kdump

import (
	"bytes"
	"testing"

	"dumptriage/dump"
)

// TestTriage32 reads a 32-bit triage dump by the layout that is believed: it
// shows that reader and belief agree, not that the belief is right.
func TestTriage32(t *testing.T) {
	const (
		nt, prcb, proc, thread, kd = 0x81800000, 0x81c00120, 0x84000040, 0x85000040, 0x81900b78
		base                       = 0x8e008000
		sp                         = base - 0x1000
	)
	f := &bin{bytes.Repeat([]byte("PAGE"), 0x1000/4)}
	f.put(0, []byte("PAGEDUMP"))
	f.u32(8, 15)
	f.u32(0xc, 9600)
	f.u32(0x10, 0x1a8018)
	f.u32(0x20, 0x14c)
	f.u32(0x24, 1)
	f.u32(0x28, 0xd1)
	for i := range 4 {
		f.u32(0x2c+4*i, uint32(i+1))
	}
	f.u32(0x60, kd)
	f.u32(0xf88, 4)
	f.u32(0xf8c, 0xcff)
	f.u64(0xfb8, 10_000_000)
	f.u64(0xfc0, 0x01d707f23dbb3399)
	ctx := &bin{make([]byte, 0x2cc)}
	ctx.u32(0, 0x00010007)
	ctx.u32(0xb4, sp+0x20)
	ctx.u32(0xb8, nt+0x1000)
	ctx.u32(0xc4, sp)
	f.put(0x320, ctx.b)

	const tri = 0x1000
	f.grow(tri + 0x68)
	slot := func(off int, b []byte) { f.u32(tri+off, uint32(f.append(b))) }
	k := &bin{make([]byte, 0x360)}
	k.u32(0x10, 0x4742444b)
	k.u32(0x14, 0x360)
	k.u64(0x18, 0xffffffff00000000|nt) // sign-extended
	for off, v := range map[int]uint16{0x29a: 0xa8, 0x29c: 0x48, 0x29e: 0x20, 0x2a0: 0x80, 0x2a2: 0x90, 0x2a8: 0x300, 0x2aa: 0x140,
		0x2ac: 0x134, 0x2ae: 0x18, 0x2b0: 0x4000, 0x2b4: 4, 0x2be: 0x3cc, 0x2c0: 0x400, 0x2e6: 0x120, 0x350: 0xc, 0x35c: 0x18b} {
		k.u16(off, v)
	}
	k.u32(0x340, 0x24)
	k.u32(0x344, 0x28)
	slot(0x58, k.b)
	f.u32(tri+0x5c, 0x360)
	p := &bin{make([]byte, 0x4000)}
	p.u32(4, thread)
	slot(0x1c, p.b)
	e := &bin{make([]byte, 0x300)}
	e.u8(0, 3)
	e.u32(0x18, 0x3f8a0020)
	e.u32(0xb4, 1236)
	e.u32(0xb8, proc+0x100)
	e.u32(0xbc, proc+0x200)
	e.u32(0x134, 900)
	e.u32(0x140, 0x7ffdf000)
	e.put(0x170, []byte("old.exe"))
	slot(0x20, e.b)
	th := &bin{make([]byte, 0x400)}
	th.u8(0, 6)
	th.u32(0x20, base)
	th.u32(0x24, base-0x3000)
	th.u32(0x28, base)
	th.u32(0x6c, base-0x8c)
	th.u32(0x80, proc)
	th.u32(0xa8, 0x7ffde000)
	th.u8(0x90, 2)
	th.u32(0x150, proc)
	th.u32(0x364, 1236)
	th.u32(0x368, 5680)
	slot(0x24, th.b)
	st := &bin{make([]byte, base-sp)}
	tf := int(base - 0x8c - sp)
	st.u32(tf+0x60, 0x12f000)
	st.u32(tf+0x68, 0x77001236)
	st.u32(tf+0x6c, 0x1b)
	st.u32(tf+0x70, 0x202)
	st.u32(tf+0x74, 0x12eff0)
	st.u32(tf+0x78, 0x23)
	slot(0x28, st.b)
	f.u32(tri+0x2c, uint32(len(st.b)))
	f.u32(tri+0x48, sp)
	d := &bin{make([]byte, 0x4c)}
	d.u32(0x1c, nt)
	d.u32(0x24, 0x600000)
	d.u32(0x40, 0xabc)
	d.u32(0x48, 0x5318055b)
	list := f.append(d.b)
	name := len(f.b)
	f.u32(list, uint32(name))
	f.u32(name, 12)
	f.text(name+4, "ntkrnlpa.exe")
	f.u32(tri+0x30, uint32(list))
	f.u32(tri+0x34, 1)
	f.u32(tri+0x38, uint32(name))
	f.u32(tri+0x3c, uint32(len(f.b)-name))
	u := &bin{make([]byte, 4+0x28)}
	u.u32(0, 1)
	u.u16(4, 10)
	u.text(4+8, "a.sys")
	u.u32(4+0x20, 0x90000000)
	u.u32(4+0x24, 0x90004000)
	slot(0x18, u.b)
	table := f.append(make([]byte, 16))
	f.u32(tri+0x60, uint32(table))
	f.u32(tri+0x64, 1)
	f.u64(table, 0xffffffff00000000|prcb)
	f.u32(table+8, f.word(tri+0x1c))
	f.u32(table+12, 0x4000)
	f.u32(tri+8, uint32(f.append([]byte("TRGD"))))
	f.u32(tri+4, uint32(len(f.b)))

	o := openBytes(t, f.b)
	if o.Format() != dump.FormatKernel32 || o.System().Arch != dump.X86 || o.System().Major != 6 || o.System().Minor != 3 {
		t.Errorf("%s %+v", o.Format(), *o.System())
	}
	if bc := o.BugCheck(); bc.Code != 0xd1 || bc.Parameters != [4]uint64{1, 2, 3, 4} {
		t.Errorf("bugcheck %+v", *bc)
	}
	if p := o.Process(); p.PID != 1236 || p.ParentPID != 900 || p.Name != "old.exe" || p.EPROCESS != proc || p.DirBase != 0x3f8a0020 || p.PEB != 0x7ffdf000 {
		t.Errorf("process %+v", *p)
	}
	if m := o.Modules(); len(m) != 1 || m[0].Base != nt || m[0].Size != 0x600000 || m[0].TimeDateStamp != 0x5318055b || m[0].Path != "ntkrnlpa.exe" {
		t.Errorf("modules %+v", m)
	}
	if m := o.UnloadedModules(); len(m) != 1 || m[0].Base != 0x90000000 || m[0].Size != 0x4000 || m[0].Path != "a.sys" {
		t.Errorf("unloaded %+v", m)
	}
	ts := o.Threads()
	if len(ts) != 1 || ts[0].ID != 5680 || ts[0].TEB != 0x7ffde000 || ts[0].ContextSource != dump.ContextHeader || ts[0].Kernel.CPU != 0 ||
		pcsp(&ts[0].Context) != [2]uint64{nt + 0x1000, sp} || ts[0].StackBase != base {
		t.Fatalf("threads %+v %+v cpus %+v", ts, *ts[0].Kernel, o.CPUs())
	}
	if kt := ts[0].Kernel; kt.TrapFrameRule != "kthread_trap_frame" || pcsp(&kt.User) != [2]uint64{0x77001236, 0x12eff0} {
		t.Errorf("trap frame %#x %q %#x", kt.TrapFrame, kt.TrapFrameRule, pcsp(&kt.User))
	}
	wantNoDamage(t, o)
}

func (m *bin) word(off int) uint32 {
	return uint32(m.b[off]) | uint32(m.b[off+1])<<8 | uint32(m.b[off+2])<<16 | uint32(m.b[off+3])<<24
}

// TestARM64 puts the measured ARM64 offsets of build 22000 under the same code: a
// CONTEXT within the KPRCB, a waiting thread by KTHREAD.SwitchFrame, then by its
// frame record.
func TestARM64(t *testing.T) {
	const base2 = uint64(0xffffa00000108000)
	ks := base2 - 0x500
	arm := func(pc, sp uint64) []byte {
		c := &bin{make([]byte, 0x390)}
		c.u32(0, 0x00400007)
		c.u64(0xf0, sp+0x40)
		c.u64(0xf8, ntBase+0x777)
		c.u64(0x100, sp)
		c.u64(0x108, pc)
		return c.b
	}
	thread := func(base uint64, state uint8, ks, tid uint64) *bin {
		th := &bin{make([]byte, 0x910)}
		th.u8(0, 6)
		th.u64(0x28, base-0x250)
		th.u64(0x30, base-0x8000)
		th.u64(0x38, base)
		th.u64(0x58, ks)
		th.u64(0xb0, eprocess)
		th.u8(0x17c, state)
		th.u64(0x240, eprocess)
		th.u64(0x4e8, 4)
		th.u64(0x4f0, tid)
		return th
	}
	h := header64Bytes(4, 0x1c8, [4]uint64{})
	h.u32(0xc, 22000)
	h.u32(0x30, 0xaa64)
	h.put(0x348, arm(ntBase+0x1000, stackBase-0x800))
	k := &bin{make([]byte, 0x380)}
	k.u32(0x10, 0x4742444b)
	k.u32(0x14, 0x380)
	k.u64(0x18, ntBase)
	for off, v := range map[int]uint16{0x298: 0x238, 0x29a: 0xe8, 0x29c: 0x58, 0x29e: 0x28, 0x2a0: 0xb0, 0x2a2: 0x17c, 0x2a8: 0xc80, 0x2aa: 0x508,
		0x2ac: 0x4f8, 0x2ae: 0x28, 0x2b0: 0x9680, 0x2b4: 8, 0x2b6: 0x6f4, 0x2be: 0x24, 0x2c0: 0x910, 0x2e6: 0x980, 0x338: 0x8a0, 0x350: 0x18, 0x35c: 0x2a3} {
		k.u16(off, v)
	}
	k.u32(0x340, 0x30)
	k.u32(0x344, 0x38)
	prcb := func(number uint32, va, current uint64) *bin {
		p := &bin{make([]byte, 0x9680)}
		p.u64(8, current)
		p.u32(0x24, number)
		p.u64(0x8a0, va+0x8b0)
		p.put(0x8b0, arm(ntBase+0x2000+uint64(number), 0xffffa00000500000))
		return p
	}
	proc := &bin{make([]byte, 0xc80)}
	proc.u8(0, 3)
	proc.u64(0x28, 0x1ad000)
	proc.u64(0x3f8, 4)
	proc.u64(0x400, eprocess+0x1000)
	proc.u64(0x408, eprocess+0x2000)
	proc.put(0x560, []byte("System"))
	waiting := thread(base2, 5, ks, 44)
	waiting.u64(0x220, ks+0x50)
	waiting.u64(0x228, ntBase+0x4444)
	other := thread(base2+0x100000, 5, ks+0x100000, 48) // KTHREAD laid out otherwise
	frame := &bin{make([]byte, 0x60)}
	frame.u64(0x50, ks+0x100000+0x90)
	frame.u64(0x58, ntBase+0x5555)

	s := &bugcheck64{header: h, thread: thread(stackBase, 2, 0, 32).b, process: proc.b, prcb: prcb(0, prcbVA, ethread).b,
		stack: block{stackBase - 0x800, make([]byte, 0x800)},
		blocks: []block{{prcbVA, prcb(0, prcbVA, ethread).b}, {prcb1VA, prcb(1, prcb1VA, 0xffffd00000900080).b}, {ethread2, waiting.b},
			{ethread2 + 0x1000, other.b}, {ks + 0x100000, frame.b}, {ntBase + 0xcfdc80, (&bin{}).pointers(prcbVA, prcb1VA)}}}
	b := s.bytes()
	copy(b[bytes.Index(b, []byte("KDBG"))-0x10:], k.b)
	// The processor number's array is not in this KDBG: the copy's address comes
	// from the block that has its bytes, or not at all.
	f := openBytes(t, b)
	if f.System().Arch != dump.ARM64 || len(f.Modules()) != 2 {
		t.Errorf("%+v", *f.System())
	}
	if p := f.Process(); p.PID != 4 || p.Name != "System" {
		t.Errorf("process %+v", *p)
	}
	ts := f.Threads()
	if len(ts) != 3 {
		t.Fatalf("%d threads", len(ts))
	}
	want := []struct {
		id     uint32
		source dump.ContextSource
		pcsp   [2]uint64
	}{
		{32, dump.ContextHeader, [2]uint64{ntBase + 0x1000, stackBase - 0x800}},
		{44, dump.ContextSwitchFrame, [2]uint64{ntBase + 0x4444, ks}},
		{48, dump.ContextSwitchFrame, [2]uint64{ntBase + 0x5555, ks + 0x100060}},
	}
	for i, w := range want {
		if ts[i].ID != w.id || ts[i].ContextSource != w.source || pcsp(&ts[i].Context) != w.pcsp {
			t.Errorf("thread %d: %d from %d %#x", i, ts[i].ID, ts[i].ContextSource, pcsp(&ts[i].Context))
		}
	}
	cpus := f.CPUs()
	if len(cpus) != 2 || cpus[1].Source != dump.ContextPRCB || pcsp(&cpus[1].Context) != [2]uint64{ntBase + 0x2001, 0xffffa00000500000} {
		t.Errorf("processors %+v", cpus)
	}
}
