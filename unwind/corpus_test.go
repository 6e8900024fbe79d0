package unwind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
	"dumptriage/pdata"
)

// miniThread is a thread of a miniDump.
type miniThread struct {
	id          uint32
	regs        dump.Registers
	limit, base uint64
}

// miniDump is as much of a minidump as a walk needs, read by the few lines
// below so that these tests stand on no other package's reader.
type miniDump struct {
	*dump.FileMemory
	threads []miniThread
	modules []dump.Module
	images  map[string]*pdata.Image
}

func (d *miniDump) Module(va uint64) (*dump.Module, bool) {
	for i := range d.modules {
		if d.modules[i].Contains(va) {
			return &d.modules[i], true
		}
	}
	return nil, false
}

func (d *miniDump) Image(va uint64) (*pdata.Image, uint64) {
	if m, ok := d.Module(va); ok {
		return d.images[strings.ToLower(m.Name())], m.Base
	}
	return nil, 0
}

func (d *miniDump) Executable(va uint64) (bool, bool) {
	if im, base := d.Image(va); im != nil {
		return im.Executable(uint32(va - base)), true
	}
	return false, false
}

func (d *miniDump) thread(tb testing.TB, id uint32) miniThread {
	tb.Helper()
	for _, t := range d.threads {
		if t.id == id {
			return t
		}
	}
	tb.Fatalf("no thread %d", id)
	return miniThread{}
}

func openMini(tb testing.TB, path string, arch dump.Arch) *miniDump {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	seek := func(off uint64) *cursor.Cursor {
		c := cursor.New(b, "test", 0)
		c.Seek(int(off))
		return c
	}
	d := &miniDump{images: map[string]*pdata.Image{}}
	h := seek(8)
	count, dir := h.U32(), h.U32()
	var ranges []dump.Range
	var crashed uint32
	var crash dump.Registers
	for i := range count {
		c := seek(uint64(dir) + 12*uint64(i))
		kind, _, rva := c.U32(), c.U32(), c.U32()
		c = seek(uint64(rva))
		switch kind {
		case 3: // ThreadListStream: 48 bytes a thread
			for range c.U32() {
				t := miniThread{id: c.U32()}
				c.Skip(20)
				start, size, off := c.U64(), c.U32(), c.U32()
				ranges = append(ranges, dump.Range{VA: start, Size: uint64(size), Off: int64(off)})
				n, at := c.U32(), c.U32()
				t.regs, _ = threadcontext.Parse(arch, seek(uint64(at)).Bytes(int(n)), -1)
				t.limit, t.base = start, start+uint64(size)
				d.threads = append(d.threads, t)
			}
		case 4: // ModuleListStream: 108 bytes a module
			for range c.U32() {
				m := dump.Module{Base: c.U64(), Size: uint64(c.U32())}
				c.Skip(8)
				name := seek(uint64(c.U32()))
				m.Path = cursor.UTF16(name.Bytes(int(name.U32())))
				c.Skip(108 - 24)
				d.modules = append(d.modules, m)
			}
		case 6: // ExceptionStream: thread id, padding, record of 152 bytes, context
			crashed = c.U32()
			c.Skip(4 + 152)
			n, at := c.U32(), c.U32()
			crash, _ = threadcontext.Parse(arch, seek(uint64(at)).Bytes(int(n)), -1)
		case 5: // MemoryListStream
			for range c.U32() {
				start, size, off := c.U64(), c.U32(), c.U32()
				ranges = append(ranges, dump.Range{VA: start, Size: uint64(size), Off: int64(off)})
			}
		}
	}
	for i := range d.threads {
		if d.threads[i].id == crashed && !crash.Empty() {
			d.threads[i].regs = crash
		}
	}
	d.FileMemory = dump.NewFileMemory(bytes.NewReader(b), ranges)
	return d
}

// addImages opens the PE files in some folders.
func (d *miniDump) addImages(tb testing.TB, folders ...string) {
	tb.Helper()
	for _, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(folder, "*.[de][lx][le]"))
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), filepath.Base(file))
			if err != nil {
				tb.Fatal(err)
			}
			d.images[strings.ToLower(filepath.Base(file))] = im
		}
	}
}

var (
	walkLine   = regexp.MustCompile(`(?m)^SW tid=(\d+) frame=\d+ pc=([0-9a-f]+) sp=([0-9a-f]+)`)
	insideLine = regexp.MustCompile(`(?m)^VU wait tid=(\d+) frame=\d+ rip=([0-9a-f]+) rsp=([0-9a-f]+) (.*)$`)
	jitLine    = regexp.MustCompile(`(?m)^JIT base=([0-9a-f]{13})`)
	inModule   = regexp.MustCompile(`\+0x[0-9a-f]{1,6}$`)
)

// The dumps were made by a debugger that wrote down what its own stack walker
// saw of every thread (the SW lines): each frame's pc and stack pointer.
func TestWineStacks(t *testing.T) {
	dlls := corpus.Need(t, "wine/winedlls")
	compared := 0
	for _, folder := range []string{"t64-clang-O1", "mini", "msvc"} {
		dumps, _ := filepath.Glob(filepath.Join(corpus.Need(t, "wine/"+folder), "*.dmp"))
		for _, path := range dumps {
			text, err := os.ReadFile(strings.TrimSuffix(path, ".dmp") + ".txt")
			if err != nil {
				continue
			}
			want := map[uint32][]string{}
			for _, m := range walkLine.FindAllStringSubmatch(string(text), -1) {
				var tid uint32
				fmt.Sscan(m[1], &tid)
				want[tid] = append(want[tid], m[2]+" "+m[3])
			}
			if len(want) == 0 {
				continue
			}
			continueInside(string(text), want)
			d := openMini(t, path, dump.AMD64)
			d.addImages(t, dlls, filepath.Dir(path))
			w := New(d, dump.AMD64)
			for tid, frames := range want {
				th := d.thread(t, tid)
				st := w.Walk(th.regs, Options{StackLimit: th.limit, StackBase: th.base})
				compareWalk(t, filepath.Base(path), tid, frames, st)
				compared++
			}
		}
	}
	t.Logf("%d stacks compared", compared)
	if compared == 0 {
		t.Error("no stack was compared")
	}
}

// continueInside completes the stacks that the debugger could not follow through
// code made at run time: the process's own unwinder (VU lines), which knew that
// code, did a moment before.
func continueInside(text string, want map[uint32][]string) {
	jit := jitLine.FindStringSubmatch(text)
	if jit == nil {
		return
	}
	for _, m := range insideLine.FindAllStringSubmatch(text, -1) {
		var tid uint32
		fmt.Sscan(m[1], &tid)
		if !strings.HasPrefix(m[2], jit[1]) && !inModule.MatchString(m[4]) {
			continue // what the unwinder made of code without a table
		}
		if frames := want[tid]; len(frames) > 0 && frames[len(frames)-1][17:] < m[3] {
			want[tid] = append(frames, m[2]+" "+m[3])
		}
	}
}

func compareWalk(t *testing.T, name string, tid uint32, want []string, st Stack) {
	t.Helper()
	var got []string
	for _, f := range st.Frames {
		got = append(got, fmt.Sprintf("%016x %016x", f.IP, f.SP))
	}
	// Frame 0's pc is the thread's own; one that spins had gone on between the
	// debugger's walk and the dump.
	if len(got) > 0 && len(want) > 0 && strings.HasSuffix(got[0], want[0][16:]) {
		got[0] = want[0]
	}
	if strings.Join(got, ",") == strings.Join(want, ",") {
		return
	}
	var b strings.Builder
	for i := range max(len(got), len(want)) {
		var g, w, how string
		if i < len(got) {
			g, how = got[i], st.Frames[i].Method.String()+" "+st.Frames[i].Detail
		}
		if i < len(want) {
			w = want[i]
		}
		fmt.Fprintf(&b, "\n%2d got %-33s want %-33s %s", i, g, w, how)
	}
	t.Errorf("%s thread %d: stop %+v%s", name, tid, st.Stop, b.String())
}

// The stack that LLDB prints for the same file (EBP chain, no code in the dump).
func TestFizzbuzzX86(t *testing.T) {
	d := openMini(t, filepath.Join(corpus.Need(t, "user/A04-lldb-fizzbuzz-x86"), "fizzbuzz_no_heap.dmp"), dump.X86)
	checkIPs(t, d, 8992, []uint64{0x164d14, 0x167c79, 0x167e6d, 0x7510336a, 0x77759882, 0x77759855})
}

// The stack that Breakpad's stackwalk prints for its own test dump.
func TestBreakpadX86(t *testing.T) {
	d := openMini(t, filepath.Join(corpus.Need(t, "user/A03-breakpad-minidump2-x86"), "minidump2.dmp"), dump.X86)
	checkIPs(t, d, 3060, []uint64{0x40429e, 0x404200, 0x4053ec, 0x7c816fd7})
}

func checkIPs(t *testing.T, d *miniDump, tid uint32, want []uint64) {
	t.Helper()
	th := d.thread(t, tid)
	st := New(d, dump.X86).Walk(th.regs, Options{StackLimit: th.limit, StackBase: th.base})
	for i, f := range st.Frames {
		t.Logf("%d %08x sp %08x fp %08x %s %s %s", i, f.IP, f.SP, f.FP, f.Trust, f.Method, f.Detail)
		if i >= len(want) || f.IP != want[i] || (i > 0 && f.Method != MethodEBP) {
			t.Errorf("frame %d: %+v", i, f)
		}
	}
	if len(st.Frames) != len(want) || st.Stop.Reason != StopEndOfStack {
		t.Errorf("%d frames, want %d; %+v", len(st.Frames), len(want), st.Stop)
	}
}

// A triage dump of Windows 10 whose stack WinDbg prints (kv): no image at hand,
// the trap frame's place known. The stack page is read straight from the file.
func TestTriageKernelSeam(t *testing.T) {
	path := filepath.Join(corpus.Need(t, "kernel/k02-triage-x64-user-seam"), "083125-14875-01.dmp")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := kernelSeam(t, b)
	regs := at(0xfffff8075c00b6f0, 0xffffa704eeb6bc88)
	st := s.walker().Walk(regs, Options{Kernel: true, TrapFrame: 0xffffa704eeb6be40, EntryProved: "KeBugCheckEx"})
	want := [][2]uint64{{0xfffff8075c00b6f0, 0xffffa704eeb6bc88}, {0xfffff8075c01faa9, 0xffffa704eeb6bc90}, {0xfffff8075c01f951, 0xffffa704eeb6bdd0}}
	if len(st.Frames) != len(want) || st.Stop.Reason != StopTrapFrame {
		t.Fatalf("%+v", st)
	}
	for i, f := range st.Frames {
		if f.IP != want[i][0] || f.SP != want[i][1] {
			t.Errorf("frame %d: %x %x", i, f.IP, f.SP)
		}
	}
	if f := st.Frames[2]; f.Method != MethodTrapSlot || f.Trust != TrustCFI || f.FP != 0xffffa704eeb6bec0 {
		t.Errorf("%+v", f)
	}
	wantReg(t, &st.User, dump.RIP, 0x7ffe7350d0c4)
	wantReg(t, &st.User, dump.RSP, 0x7d488fe9b8)
	if st.TrapFrame != 0xffffa704eeb6be40 || st.UserMethod != MethodTrapFrame {
		t.Errorf("%x %v", st.TrapFrame, st.UserMethod)
	}
}

// kernelSeam lays the stack block of the triage dump in a space. The block is
// found by the words that WinDbg prints: the return addresses at their distance.
func kernelSeam(t *testing.T, file []byte) *space {
	t.Helper()
	ret0 := binary.LittleEndian.AppendUint64(nil, 0xfffff8075c01faa9) // at bc88
	for i := range file {
		if !bytes.HasPrefix(file[i:], ret0) || i+0x1b8+0x190 > len(file) {
			continue
		}
		if binary.LittleEndian.Uint64(file[i+0x140:]) == 0xfffff8075c01f951 { // at bdc8
			return &space{
				bytesAt: bytesAt{0xffffa704eeb6bc88: file[i : i+0x348]}, // to be40+0x190
				modules: []dump.Module{{Base: 0xfffff8075bc00000, Size: 0x1046000, Path: "ntoskrnl.exe"}},
			}
		}
	}
	t.Fatal("the stack block is not in the file")
	return nil
}
