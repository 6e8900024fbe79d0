package minidump

import (
	"bytes"
	"testing"
	"time"

	"dumptriage/dump"
)

func TestThreads(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	ctx := w.blob(amd64Context(0x7ff612341234, 0x5fe80))
	stack := w.blob(make([]byte, 0x180))
	// A TEB: StackBase at 8, StackLimit at 0x10, Self at 0x30, PEB at 0x60,
	// LastErrorValue at 0x68.
	teb := zeros(0x100)
	at(teb, 8, u64(0x60000), u64(0x5c000))
	at(teb, 0x30, u64(0x2f0000))
	at(teb, 0x68, u32(5))
	tebAt := w.blob(teb)
	w.stream(3, u32(2),
		thread(100, 0x2f0000, 0x5fe80, 0x180, stack, 0x4d0, ctx),
		thread(200, 0x2f2000, 0x6fe80, 0x180, stack, 0x4d0, ctx)) // no TEB in memory
	w.stream(5, u32(1), u64(0x2f0000), u32(0x100), tebAt)
	name := w.text("worker ☃")
	w.stream(24, u32(1), u32(100), uint64(name)) // 12-byte records: the structure is packed to 4
	// Header of 16 and records of 72 bytes: both larger than documented.
	w.stream(17, u32(16), u32(72), u32(2), u32(0xdead),
		u32(100), u32(0), u32(0), u32(259), u64(132537600000000000), u64(0), u64(150000), u64(20000000), u64(0x7ff612340000), u64(0xff), zeros(8),
		u32(200), u32(8), u32(0), u32(0), u64(1), u64(1), u64(1), u64(1), u64(1), u64(1), zeros(8)) // flag 8: invalid info
	f := w.open(t)
	wantClean(t, f)
	th := f.Threads()
	if len(th) != 2 {
		t.Fatalf("%d threads", len(th))
	}
	a, b := th[0], th[1]
	if a.ID != 100 || a.SuspendCount != 1 || a.PriorityClass != 0x20 || a.Priority != 2 || a.TEB != 0x2f0000 || a.Name != "worker ☃" {
		t.Errorf("thread %+v", a)
	}
	if a.StackBase != 0x60000 || a.StackLimit != 0x5c000 || a.LastError != 5 || !a.HasLastError {
		t.Errorf("from the TEB: stack %#x-%#x, last error %d %v", a.StackLimit, a.StackBase, a.LastError, a.HasLastError)
	}
	if pc, _ := a.Context.PC(); pc != 0x7ff612341234 || a.ContextSource != dump.ContextThread {
		t.Errorf("pc %#x from %v", pc, a.ContextSource)
	}
	// 132537600000000000 x 100 ns after 1601 is 2020-12-30 00:00:00 UTC.
	if a.Times == nil || !a.Times.Created.Equal(time.Date(2020, 12, 30, 0, 0, 0, 0, time.UTC)) || a.Times.Kernel != 15*time.Millisecond ||
		a.Times.User != 2*time.Second || a.StartAddress != 0x7ff612340000 || a.Times.ExitStatus != 259 || a.Times.HasExit {
		t.Errorf("times %+v start %#x", a.Times, a.StartAddress)
	}
	if b.StackBase != 0x70000 || b.StackLimit != 0x6fe80 || b.HasLastError || b.Times != nil || b.Name != "" {
		t.Errorf("without TEB and info: %+v", b)
	}
	var p [8]byte
	if n, err := f.Memory().ReadAt(p[:], 0x6fe80); n != 8 || err != nil {
		t.Errorf("a thread's stack is memory too: %d %v", n, err)
	}
}

func TestThreadListAlignedTo8(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onX86, 0))
	ctx := w.blob(x86Context(0x401000, 0x12f000))
	w.stream(3, u32(1), u32(0), thread(9, 0, 0, 0, 0, 0x2cc, ctx)) // 4 bytes of padding after the count
	f := w.open(t)
	wantClean(t, f)
	if th := f.Threads(); len(th) != 1 || th[0].ID != 9 {
		t.Fatalf("threads %+v", th)
	} else if sp, ok := th[0].Context.SP(); !ok || sp != 0x12f000 {
		t.Errorf("esp %#x", sp)
	}
}

func TestThreadExList(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onARM64, 0))
	ctx := zeros(0x390)
	at(ctx, 0, u32(0x400003))
	at(ctx, 0x100, u64(0x8000), u64(0x7ff700001000)) // Sp, Pc
	rva := w.blob(ctx)
	w.stream(8, u32(1), thread(3, 0, 0x8000, 0, 0, 0x390, rva), u64(0x9000), u32(0), u32(0))
	f := w.open(t)
	wantClean(t, f)
	th := f.Threads()
	if pc, _ := th[0].Context.PC(); len(th) != 1 || pc != 0x7ff700001000 {
		t.Errorf("pc %#x", pc)
	}
}

// A context that is damaged leaves its thread in place, with no registers.
func TestBadContexts(t *testing.T) {
	for name, tc := range map[string]struct {
		size, rva uint32
		code      dump.Code
	}{
		"outside":     {0x4d0, 0xffff0000, dump.Truncated},
		"too short":   {0x80, 0, dump.BadRecord},
		"wrong flags": {0x4d0, 1, dump.BadRecord},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter()
			w.stream(7, systemInfo(onAMD64, 0))
			ctx := amd64Context(1, 2)
			at(ctx, 0x30, u32(0x10007)) // flags of x86
			rva := w.blob(ctx)
			if tc.rva > 1 {
				rva = tc.rva
			}
			w.stream(3, u32(1), thread(5, 0, 0, 0, 0, tc.size, rva))
			f := w.open(t)
			th := f.Threads()
			if len(th) != 1 || th[0].ID != 5 || !th[0].Context.Empty() || th[0].ContextSource != dump.ContextNone {
				t.Errorf("threads %+v", th)
			}
			wantDamage(t, f, tc.code, "ThreadList")
		})
	}
}

// Many faulty threads must not give as many errors.
func TestFaultsAreCounted(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	var list []byte
	for i := range 1000 {
		list = append(list, thread(uint32(i), 0, 0, 0, 0, 0x4d0, 0xffff0000)...)
	}
	w.stream(3, u32(1000), list)
	f := w.open(t)
	if n := len(f.Threads()); n != 1000 {
		t.Errorf("%d threads", n)
	}
	if n := len(f.Damage()); n != maxFaultsListed+1 {
		t.Errorf("%d entries of damage", n)
	}
}

func TestExtendedContext(t *testing.T) {
	// CONTEXT_EX behind the plain CONTEXT, no XSTATE in it: the registers count.
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	rva := w.blob(amd64Context(0x1111, 0x2220), zeros(0x67f-0x4d0))
	w.stream(3, u32(1), thread(5, 0, 0, 0, 0, 0x67f, rva))
	f := w.open(t)
	wantClean(t, f)
	if sp, _ := f.Threads()[0].Context.SP(); sp != 0x2220 {
		t.Errorf("rsp %#x", sp)
	}
}

// A 64-bit dump of a 32-bit process: the thread runs 32-bit code (CS 0x23) on
// the stack that its 32-bit TEB bounds, to which the 64-bit TEB's first field
// points. There StackBase is at 4, StackLimit at 8, Self at 0x18.
func TestWow64StackBounds(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	ctx := amd64Context(0x875f5d, 0x6ff478)
	wow := w.blob(at(bytes.Clone(ctx), 0x38, u16(0x23)))
	native := w.blob(at(bytes.Clone(ctx), 0x38, u16(0x33)))
	teb := zeros(0x400)
	at(teb, 0, u64(0x2f0200), u64(0x350000), u64(0x340000))
	at(teb, 0x30, u64(0x2f0000))
	at(teb, 0x204, u32(0x700000), u32(0x6f0000))
	at(teb, 0x218, u32(0x2f0200))
	w.stream(5, u32(1), u64(0x2f0000), u32(0x400), w.blob(teb))
	w.stream(3, u32(2), thread(1, 0x2f0000, 0x348000, 0, 0, 0x4d0, wow), thread(2, 0x2f0000, 0x348000, 0, 0, 0x4d0, native))
	f := w.open(t)
	wantClean(t, f)
	th := f.Threads()
	if th[0].StackBase != 0x700000 || th[0].StackLimit != 0x6f0000 {
		t.Errorf("in 32-bit code: %#x-%#x", th[0].StackLimit, th[0].StackBase)
	}
	if th[1].StackBase != 0x350000 || th[1].StackLimit != 0x340000 {
		t.Errorf("in 64-bit code: %#x-%#x", th[1].StackLimit, th[1].StackBase)
	}
}

// TestBlankContext: the zeros of a CONTEXT that nobody filled are not a program
// counter and a stack pointer of 0.
func TestBlankContext(t *testing.T) {
	for name, arch := range map[string]struct {
		info int
		size uint32
	}{"amd64": {onAMD64, 0x4d0}, "x86": {onX86, 0x2cc}} {
		t.Run(name, func(t *testing.T) {
			w := newWriter()
			w.stream(7, systemInfo(arch.info, 0))
			ctx := w.blob(zeros(int(arch.size)))
			w.stream(3, u32(1), thread(9, 0, 0, 0, 0, arch.size, ctx))
			f := w.open(t)
			th := f.Threads()
			if len(th) != 1 || !th[0].Context.Empty() || th[0].ContextSource != dump.ContextNone {
				t.Fatalf("%+v", th)
			}
			if d := f.Damage(); len(d) != 1 || !d[0].Warning || d[0].Offset != int64(ctx) || d[0].Stream != "ThreadList" {
				t.Errorf("damage %v, want one warning at %#x", d, ctx)
			}
		})
	}
}
