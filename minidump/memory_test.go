package minidump

import (
	"bytes"
	"strings"
	"testing"

	"dumptriage/dump"
)

func readAll(t *testing.T, m dump.Memory, va uint64, n int) string {
	t.Helper()
	p := make([]byte, n)
	k, _ := m.ReadAt(p, va)
	return string(p[:k])
}

func TestMemoryLists(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	stack, list := w.blob([]byte("STACK...")), w.blob([]byte("listlist"))
	w.stream(3, u32(1), thread(1, 0, 0x1000, 8, stack, 0, 0))
	w.stream(5, u32(2), u64(0x1004), u32(8), list, u64(0x3000), u32(16), u32(0)) // offset 0 is no place
	base := w.blob([]byte("aaaaaaaabbbbbbbb"))
	w.stream(9, u64(2), uint64(base), u64(0x1008), u64(8), u64(0x2000), u64(8))
	f := w.open(t)
	wantClean(t, f)
	// The stack wins over MemoryList, that over Memory64List.
	if got := readAll(t, f.Memory(), 0x1000, 32); got != "STACK..."+"list"+"aaaa" {
		t.Errorf("memory %q", got)
	}
	if got := readAll(t, f.Memory(), 0x2000, 8); got != "bbbbbbbb" {
		t.Errorf("second range %q", got)
	}
	if got := readAll(t, f.Memory(), 0x3000, 8); got != "" {
		t.Errorf("the file's header was served as memory: %q", got)
	}
	if f.Kind() != "stacks" {
		t.Errorf("kind %q", f.Kind())
	}
}

// Full-memory dumps give a thread's stack the offset 0: its bytes are in
// Memory64List.
func TestFullMemoryStacks(t *testing.T) {
	w := newWriter()
	w.flags = 2
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(3, u32(1), thread(1, 0, 0x5000, 8, 0, 0, 0))
	base := w.blob([]byte("realdata"))
	w.stream(9, u64(1), uint64(base), u64(0x5000), u64(8))
	f := w.open(t)
	wantClean(t, f)
	if got := readAll(t, f.Memory(), 0x5000, 8); got != "realdata" {
		t.Errorf("stack %q", got)
	}
	if th := f.Threads()[0]; th.StackBase != 0x5008 || th.StackLimit != 0x5000 {
		t.Errorf("bounds %#x-%#x", th.StackLimit, th.StackBase)
	}
	if f.Kind() != "full memory" {
		t.Errorf("kind %q", f.Kind())
	}
}

func truncatedMemory64(wine bool) (file []byte, base int) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(4, u32(2),
		module(0x20000, 0x1000, 1, w.text("a.exe"), zeros(52), 0, 0, 0, 0),
		module(0x40000, 0x1000, 1, w.text("b.dll"), zeros(52), 0, 0, 0, 0))
	if wine {
		w.stream(0xfff0, u32(0))
	}
	list := le(u64(5), u64(0))
	for i := range uint64(5) {
		list = append(list, le(u64(0x10000+i*0x10000), u64(16))...)
	}
	w.stream(9, list)
	b := w.bytes()
	at(b, int(w.entries[len(w.entries)-1].rva)+8, uint64(len(b))) // the memory follows the directory
	b = append(b, "range1..........MZ..range2......range3..........XXrange4.."...)
	return b, len(b) - 58
}

func TestMemory64BeyondTheFile(t *testing.T) {
	b, base := truncatedMemory64(false)
	f := mustOpen(t, b)
	if got := readAll(t, f.Memory(), 0x40000, 16); got != "XXrange4.." {
		t.Errorf("the part in the file: %q", got)
	}
	e := wantDamage(t, f, dump.Truncated, "Memory64List")
	// 5 x 16 bytes promised, 58 there: 6 of range 4 and 16 of range 5 are lost.
	if e.Size != 22 || e.Offset != int64(base+48) || !strings.Contains(e.Msg, "22 bytes of memory in 2 ranges") {
		t.Errorf("%v", e)
	}
}

// The same file from Wine: range 4 should begin with the MZ of b.dll and does
// not, so only what a.exe's MZ proves is used.
func TestMisplacedWineMemory(t *testing.T) {
	b, _ := truncatedMemory64(true)
	f := mustOpen(t, b)
	if got := readAll(t, f.Memory(), 0x20000, 16); got != "MZ..range2......" {
		t.Errorf("the proven part: %q", got)
	}
	if got := readAll(t, f.Memory(), 0x40000, 16); got != "" {
		t.Errorf("misplaced bytes were served: %q", got)
	}
	wantDamage(t, f, dump.BadRecord, "Memory64List")
}

func TestHostileMemory64(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(9, ^uint64(0), ^uint64(0)-4, u64(0x1000), ^uint64(0), u64(0x2000), u64(8))
	f := w.open(t)
	if got := readAll(t, f.Memory(), 0x2000, 8); got != "" {
		t.Errorf("an offset that wrapped: %q", got)
	}
	wantDamage(t, f, dump.BadCount, "Memory64List")
	wantDamage(t, f, dump.Truncated, "Memory64List")
}

func TestMemoryInfoList(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	info := func(base, size uint64, protect int) []byte {
		return le(base, u64(0x10000), u32(0x80), u32(0), size, u32(0x1000), u32(protect), u32(0x1000000), u32(0))
	}
	w.stream(16, u32(24), u32(56), u64(2), zeros(8), info(0x10000, 0x1000, 2), zeros(8), info(0x11000, 0x5000, 0x20), zeros(8))
	f := w.open(t)
	wantClean(t, f)
	r := f.Regions()
	want := dump.Region{Base: 0x11000, Size: 0x5000, AllocationBase: 0x10000, State: 0x1000, Protect: 0x20, AllocProtect: 0x80, Type: 0x1000000}
	if len(r) != 2 || r[1] != want || !r[1].Executable() || r[0].Executable() {
		t.Errorf("regions %+v", r)
	}
	w.stream(16, u32(16), u32(48), ^uint64(0))
	b := w.bytes()
	g := mustOpen(t, bytes.Clone(b))
	if len(g.Regions()) != 2 { // the first of two streams counts
		t.Errorf("%d regions", len(g.Regions()))
	}
}

func TestException(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onX86, 0))
	ctx := w.blob(x86Context(0x404040, 0x12f000))
	record := le(u32(77), u32(0), u32(0xc0000005), u32(1), u64(0x99), u64(0x404040), u32(2), u32(0), u64(1), u64(0x45), zeros(13*8), u32(0x2cc), ctx)
	w.stream(6, record)
	f := w.open(t)
	wantClean(t, f)
	e := f.Exception()
	if e == nil || e.ThreadID != 77 || e.Code != 0xc0000005 || e.Flags != 1 || e.Record != 0x99 || e.Address != 0x404040 || len(e.Parameters) != 2 || e.Parameters[1] != 0x45 {
		t.Fatalf("exception %+v", e)
	}
	if pc, _ := e.Context.PC(); pc != 0x404040 {
		t.Errorf("eip %#x", pc)
	}
	b := newWriter()
	b.stream(7, systemInfo(onX86, 0))
	b.stream(6, at(bytes.Clone(record), 32, u32(16))) // one parameter more than there can be
	g := b.open(t)
	if e := g.Exception(); e == nil || len(e.Parameters) != 15 {
		t.Errorf("exception %+v", e)
	}
	wantDamage(t, g, dump.BadCount, "Exception")
	c := newWriter()
	c.stream(7, systemInfo(onX86, 0))
	c.stream(6, record[:60])
	g = c.open(t)
	if e := g.Exception(); e == nil || e.Code != 0xc0000005 || len(e.Parameters) != 2 {
		t.Errorf("a cut record keeps its code and parameters: %+v", e)
	}
	wantDamage(t, g, dump.Truncated, "Exception")
}

// PEB at TEB+0x60; ImageBaseAddress at PEB+0x10, ProcessParameters at +0x20;
// CommandLine, a UNICODE_STRING, at +0x70 of the parameters.
func TestProcessFromPEB(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	mem := zeros(0x400)
	at(mem, 0x30, u64(0x2f0000))
	at(mem, 0x60, u64(0x2f0100))
	at(mem, 0x110, u64(0x140000000))
	at(mem, 0x120, u64(0x2f0200))
	at(mem, 0x270, u16(14), u16(16), u32(0), u64(0x2f0300))
	at(mem, 0x300, wide("app /x!"))
	rva := w.blob(mem)
	w.stream(3, u32(1), thread(1, 0x2f0000, 0, 0, 0, 0, 0))
	w.stream(4, u32(2),
		module(0x180000000, 0x1000, 1, w.text("other.exe"), zeros(52), 0, 0, 0, 0),
		module(0x140000000, 0x1000, 1, w.text(`C:\app.dat`), zeros(52), 0, 0, 0, 0))
	w.stream(5, u32(1), u64(0x2f0000), u32(0x400), rva)
	w.stream(15, u32(24), u32(3), u32(4242), u32(1700000000), u32(5), u32(6))
	f := w.open(t)
	wantClean(t, f)
	p := f.Process()
	if p.PEB != 0x2f0100 || p.Name != "app.dat" || p.CommandLine != "app /x!" || !p.HasPID || p.PID != 4242 || p.UserTime.Seconds() != 5 || p.KernelTime.Seconds() != 6 || p.Created.Unix() != 1700000000 {
		t.Errorf("process %+v", p)
	}
}
