package kdump

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

func TestFullProcesses(t *testing.T) {
	f := openBytes(t, newSystem().build())
	ps := f.Processes()
	if got, want := names(ps), []string{"System", "notepad.exe"}; !slices.Equal(got, want) {
		t.Fatalf("processes %v, want %v; damage %v", got, want, f.Damage())
	}
	p := ps[1]
	if p.PID != 0x1a2c || p.ParentPID != 0x4d0 || p.PEB != appPEB || p.EPROCESS != appProcess || p.How != "list+cid_table" ||
		!p.HasSession || p.Session != 1 || !p.Created.Equal(time.Date(2021, 2, 21, 1, 29, 50, 352895180, time.UTC).Truncate(100)) && p.Created.IsZero() {
		t.Errorf("%+v", p)
	}
	if cmd := f.CommandLine(&p); cmd != `"C:\Windows\System32\notepad.exe" C:\notes.txt` {
		t.Errorf("command line %q", cmd)
	}
	if env := f.Environment(&p); !slices.Equal(env, []string{"Path=C:\\Windows", "TEMP=C:\\Temp"}) {
		t.Errorf("environment %q", env)
	}
	if cur := f.Process(); cur.PID != 0x1a2c || cur.Name != "notepad.exe" {
		t.Errorf("current process %+v", cur)
	}
	if f.KDBGFound() != "header" || f.Layout() != "table" {
		t.Errorf("kdbg by %q, layout by %q", f.KDBGFound(), f.Layout())
	}
	if mode, how := f.PageTables(); mode != "x64, 4 levels" || how != "header" {
		t.Errorf("page tables %q by %q", mode, how)
	}
	wantNoDamage(t, f)
}

func TestFullModules(t *testing.T) {
	f := openBytes(t, newSystem().build())
	ms := f.Modules()
	if len(ms) != 2 {
		t.Fatalf("%d modules; damage %v", len(ms), f.Damage())
	}
	nt := ms[0]
	if nt.Base != ntBase || nt.Size != ntSize || nt.Path != `\SystemRoot\system32\ntoskrnl.exe` || nt.TimeDateStamp != ntStamp || nt.CheckSum != 0xabcd || !nt.Kernel {
		t.Errorf("%+v", nt)
	}
	// The GUID's fields are little-endian, its last eight bytes are not.
	if id := nt.CodeView.DebugID(); id != "0403020106050807090A0B0C0D0E0F103" || nt.CodeView.PDB != "ntkrnlmp.pdb" {
		t.Errorf("debug id %s of %s", id, nt.CodeView.PDB)
	}
	if s := f.System(); s.NTVersion != "10.0.19041.804" {
		t.Errorf("version %q", s.NTVersion)
	}
	v := f.View(&f.Processes()[1])
	um := v.Modules()
	if len(um) != 1 || um[0].Base != appBase || um[0].Path != `C:\Windows\System32\notepad.exe` || um[0].TimeDateStamp != 0x5eadbeef || um[0].Kernel {
		t.Errorf("user modules %+v", um)
	}
	if v.UserMemory() != PageValid {
		t.Errorf("user memory %v", v.UserMemory())
	}
}

func TestFullThreads(t *testing.T) {
	f := openBytes(t, newSystem().build())
	type thread struct {
		pid, tid uint32
		source   dump.ContextSource
		cpu      int
		user     uint64 // rip at the seam
	}
	var got []thread
	for _, th := range f.Threads() {
		pc, _ := th.Kernel.User.PC()
		got = append(got, thread{th.Kernel.PID, th.ID, th.ContextSource, th.Kernel.CPU, pc})
	}
	want := []thread{
		{0x1a2c, 0x1b30, dump.ContextHeader, 0, appBase + 0x1014}, // the crashing one first
		{4, 8, dump.ContextSwitchFrame, -1, 0},
		{0x1a2c, 0x1b34, dump.ContextSwitchFrame, -1, appBase + 0x1014},
	}
	if !slices.Equal(got, want) {
		t.Errorf("threads\n%v, want\n%v; damage %v", got, want, f.Damage())
	}
	if c := f.CPUs(); len(c) != 1 || c[0].ThreadID != 0x1b30 || c[0].Context.Empty() {
		t.Errorf("processors %+v", c)
	}
	if v := f.View(&f.Processes()[0]); len(v.Threads()) != 1 || v.Threads()[0].ID != 8 {
		t.Errorf("threads of System %+v", v.Threads())
	}
}

// TestCalibration changes the kernel's layout so that no table fits: an EPROCESS
// of 0xa48 bytes, in which the fields still can be found.
func TestCalibration(t *testing.T) {
	s := newSystem()
	s.kdbg.u16(0x2a8, 0xa48)
	f := openBytes(t, s.build())
	if got := names(f.Processes()); !slices.Equal(got, []string{"System", "notepad.exe"}) {
		t.Fatalf("processes %v; damage %v", got, f.Damage())
	}
	if f.Layout() != "calibrated" {
		t.Errorf("layout by %q", f.Layout())
	}
	if n := len(f.Threads()); n != 3 {
		t.Errorf("%d threads, want 3", n)
	}
}

// encode is the encoding as it is described in public: swap bytes, xor, rotate
// back, xor.
func encode(b []byte, never, always, address uint64) []byte {
	out := bytes.Clone(b)
	for i := 0; i+8 <= len(out); i += 8 {
		v := binary.LittleEndian.Uint64(out[i:])
		v = bits.ReverseBytes64(v ^ always)
		v = bits.RotateLeft64(v^address, -int(never&0x3f)) ^ never
		binary.LittleEndian.PutUint64(out[i:], v)
	}
	return out
}

func TestEncodedKDBG(t *testing.T) {
	for _, never := range []uint64{0x9e3779b97f4a7c15, 0xfedcba9876543240, 0x8000000000000001} {
		s := newSystem()
		s.kdbg.b = encode(s.kdbg.b, never, 0x0123456789abcdef, ntBase+0xd01a30)
		f := openBytes(t, s.build())
		if f.KDBGFound() != "header, decoded" || len(f.Processes()) != 2 {
			t.Errorf("key %#x: found by %q, %d processes; damage %v", never, f.KDBGFound(), len(f.Processes()), f.Damage())
		}
	}
}

// TestKDBGByScan: the header names another place, the block is in the image.
func TestKDBGByScan(t *testing.T) {
	s := newSystem()
	s.header.u64(0x80, ntBase+0x5000)
	f := openBytes(t, s.build())
	if f.KDBGFound() != "scan" || len(f.Processes()) != 2 {
		t.Errorf("found by %q; damage %v", f.KDBGFound(), f.Damage())
	}
}

// TestKDBGOfAnotherKernel: a block that names another base is of another boot.
func TestKDBGOfAnotherKernel(t *testing.T) {
	s := newSystem()
	s.kdbg.u64(0x18, ntBase+0x1000000)
	f := openBytes(t, s.build())
	if f.KDBGFound() != "table" || len(f.Damage()) == 0 {
		t.Errorf("found by %q; damage %v", f.KDBGFound(), f.Damage())
	}
}

// TestLayoutOfBuild: the block is nowhere, so the layout of the build must do.
func TestLayoutOfBuild(t *testing.T) {
	s := newSystem()
	s.kdbg = &bin{make([]byte, 0x380)}
	f := openBytes(t, s.build())
	if f.KDBGFound() != "table" || len(f.Processes()) != 2 || len(f.Threads()) != 3 {
		t.Fatalf("found by %q, %d processes, %d threads; damage %v", f.KDBGFound(), len(f.Processes()), len(f.Threads()), f.Damage())
	}
	if th := f.Threads()[0]; th.ID != 0x1b30 || th.ContextSource != dump.ContextHeader {
		t.Errorf("the thread that stopped the system: %+v", th)
	}
	if f.Process().Name != "notepad.exe" || len(f.Damage()) != 1 {
		t.Errorf("process %+v, damage %v", f.Process(), f.Damage())
	}
	s = newSystem()
	s.kdbg = &bin{make([]byte, 0x380)}
	s.header.u32(0xc, 12345) // a build that no table knows
	if f := openBytes(t, s.build()); f.KDBGFound() != "" || len(f.Modules()) != 2 || len(f.Damage()) == 0 {
		t.Errorf("unknown build: found by %q, %d modules, damage %v", f.KDBGFound(), len(f.Modules()), f.Damage())
	}
}

// TestHeadIsProcess: the header names System's EPROCESS where the head of the
// list belongs, as a tool's dumps do.
func TestHeadIsProcess(t *testing.T) {
	s := newSystem()
	s.header.u64(0x28, sysProcess)
	s.kdbg.u64(0x50, sysProcess)
	s.kdbg.u64(0x58, 0)
	f := openBytes(t, s.build())
	ps := f.Processes()
	if got := names(ps); !slices.Equal(got, []string{"System", "notepad.exe"}) || ps[0].How != "list" || ps[1].How != "list" {
		t.Errorf("%+v; damage %v", ps, f.Damage())
	}
}

// TestAttachedThread: a thread that is attached to another process's memory still
// belongs to its own.
func TestAttachedThread(t *testing.T) {
	s := newSystem()
	s.ku64(appThread+0xb8, sysProcess) // ApcState.Process
	f := openBytes(t, s.build())
	if th := f.Threads()[0]; th.ID != 0x1b30 || th.Kernel.EPROCESS != appProcess || f.Process().EPROCESS != appProcess {
		t.Errorf("thread %+v of process %+v", th.Kernel, f.Process())
	}
}

// TestProcessByTables: no processor says whose thread was current, as in dumps of
// a system that went on; the page tables tell the process.
func TestProcessByTables(t *testing.T) {
	s := newSystem()
	s.header.put(0x348, make([]byte, 0x4d0))
	f := openBytes(t, s.build())
	if p := f.Process(); p.Name != "notepad.exe" || p.PID != 0x1a2c {
		t.Errorf("%+v", p)
	}
}

// TestSessionDriver: win32k is mapped in processes of a session only, not in the
// one that stopped the system.
func TestSessionDriver(t *testing.T) {
	s := newSystem()
	const win32k = 0xffffff8000000000 // an entry of the top table of its own
	root3 := s.page()
	for i := uint64(256); i < 512; i++ {
		s.setEntry(root3+8*i, s.entry(s.root+8*i))
	}
	const csrss, entry = 0xffffd00000180080, 0xffffd00000005000
	s.process(csrss, root3, 0x2a4, 0x4d0, "csrss.exe", 0x7ff600001000)
	s.u64(root3, 0x7ff6000012c0, 2) // SessionId
	s.list(s.root, sysProcs, sysProcess+0x448, appProcess+0x448, csrss+0x448)
	s.write(root3, win32k, peHeader(0x77777777, 0x9000, "win32kbase.pdb"))
	s.list(s.root, sysModules, 0xffffd00000001000, entry)
	s.ku64(entry+0x30, win32k)
	s.ku64(entry+0x40, 0x9000)
	s.unicode(s.root, entry+0x48, entry+0x100, `\SystemRoot\System32\win32kbase.sys`)
	s.u64(s.root2, 0x7ff600001000+0x2c0, 1)
	f := openBytes(t, s.build())
	if ms := f.Modules(); len(ms) != 2 || ms[1].TimeDateStamp != 0x77777777 || ms[1].CodeView.PDB != "win32kbase.pdb" {
		t.Errorf("%+v; damage %v", ms, f.Damage())
	}
	if _, err := dump.ReadUint64(f.Memory(), win32k+0x200000); pageStateOf(err) != PageInvalid {
		t.Errorf("what no session maps: %v", err)
	}
}

// TestSelfReferences: page tables whose every entry leads back to the top table
// translate everything to something, in bounded time.
func TestSelfReferences(t *testing.T) {
	s := newSystem()
	for i := range uint64(512) {
		s.setEntry(s.root2+8*i, s.root2|0x67)
	}
	begun := time.Now()
	f := openBytes(t, s.build())
	f.Threads()
	f.Modules()
	if len(f.Damage()) == 0 {
		t.Error("no damage")
	}
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

func FuzzDecodeKDBG(f *testing.F) {
	plain := kdbg64()
	f.Add(encode(plain, 0x9e3779b97f4a7c15, 0x0123456789abcdef, ntBase+0xd01a30), uint64(ntBase))
	f.Add(plain, uint64(ntBase))
	f.Fuzz(func(t *testing.T, b []byte, base uint64) {
		if out := decodeKDBG(b, base); out != nil && binary.LittleEndian.Uint64(out[0x18:]) != base {
			t.Errorf("base %#x", base)
		}
	})
}

// TestWrongRoot: DirectoryTableBase leads nowhere, so the tables that map
// themselves are taken.
func TestWrongRoot(t *testing.T) {
	s := newSystem()
	s.header.u64(0x10, 0x7777000)
	s.setEntry(s.root+8*0x1ed, s.root|0x63)
	f := openBytes(t, s.build())
	if _, how := f.PageTables(); how != "self_map" || len(f.Processes()) != 2 {
		t.Errorf("tables by %q, %d processes; damage %v", how, len(f.Processes()), f.Damage())
	}
}

// TestBrokenLists: what a damaged list leaves is shown, and the damage said.
func TestBrokenLists(t *testing.T) {
	for name, c := range map[string]struct {
		edit      func(*system)
		code      dump.Code
		processes int
	}{
		"cycle":             {func(s *system) { s.ku64(appProcess+0x448, appProcess+0x448) }, dump.Cycle, 2},
		"into nowhere":      {func(s *system) { s.ku64(sysProcess+0x448, 0xffffdead00000000) }, dump.OutOfRange, 2},
		"head into nowhere": {func(s *system) { s.ku64(sysProcs, 0xffffdead00000000); s.ku64(sysProcs+8, 0) }, dump.OutOfRange, 2}, // by the table of ids
		"threads cycle":     {func(s *system) { s.ku64(appThread2+0x4e8, appThread+0x4e8) }, dump.Cycle, 2},
	} {
		s := newSystem()
		c.edit(s)
		f := openBytes(t, s.build())
		ps := f.Processes()
		if len(ps) != c.processes {
			t.Errorf("%s: %d processes, want %d", name, len(ps), c.processes)
		}
		if name == "into nowhere" && ps[1].How != "list+cid_table" {
			t.Errorf("%s: what the list's end leads to was found by %q", name, ps[1].How)
		}
		if n := len(f.Threads()); n != 3 {
			t.Errorf("%s: %d threads, want 3", name, n)
		}
		if !slices.ContainsFunc(f.Damage(), func(e *dump.Error) bool { return e.Code == c.code }) {
			t.Errorf("%s: no %s in %v", name, c.code, f.Damage())
		}
	}
}

// TestHiddenProcess is unlinked from the list of processes and still in the table
// of ids.
func TestHiddenProcess(t *testing.T) {
	s := newSystem()
	s.list(s.root, sysProcs, sysProcess+0x448)
	f := openBytes(t, s.build())
	ps := f.Processes()
	if len(ps) != 2 || ps[1].Name != "notepad.exe" || ps[1].How != "cid_table" {
		t.Errorf("%+v", ps)
	}
}

// TestScannedProcesses: neither list nor table, so memory is searched.
func TestScannedProcesses(t *testing.T) {
	s := newSystem()
	s.kdbg.u64(0x58, 0)
	s.kdbg.u64(0x50, 0)
	s.header.u64(0x28, 0)
	f := openBytes(t, s.build())
	got := names(f.Processes())
	slices.Sort(got)
	if !slices.Equal(got, []string{"System", "notepad.exe"}) || f.Processes()[0].How != "scan" {
		t.Errorf("%v; damage %v", got, f.Damage())
	}
}

// TestKernelMemoryOnly: a dump of kernel memory has the page tables of a process
// and none of its pages.
func TestKernelMemoryOnly(t *testing.T) {
	s := newSystem()
	for va := uint64(0x7ff600000000); va < 0x7ff600020000; va += 0x1000 {
		if e := s.entry(s.pte(s.root2, va)); e != 0 {
			delete(s.pages, e&0x000ffffffffff000>>12)
		}
	}
	f := openBytes(t, s.build())
	v := f.View(&f.Processes()[1])
	if v.UserMemory() != PageNotInDump || len(v.Modules()) != 0 || f.CommandLine(v.Process()) != "" {
		t.Errorf("user memory %v, %d modules", v.UserMemory(), len(v.Modules()))
	}
	if n := len(f.Threads()); n != 3 {
		t.Errorf("%d threads", n)
	}
	wantNoDamage(t, f)
}

// TestCutFull opens the dump cut in the middle of its pages: an answer and the
// damage, no panic.
func TestCutFull(t *testing.T) {
	b := newSystem().build()
	for cut := 0x2000; cut < len(b); cut += 0x2b00 {
		f := openBytes(t, b[:cut])
		f.Threads()
		f.Modules()
		f.CPUs()
		for i := range f.Processes() {
			f.View(&f.Processes()[i]).Modules()
		}
		if len(f.Damage()) == 0 {
			t.Errorf("cut at %#x of %#x: no damage", cut, len(b))
		}
	}
}

// TestUnloadedList: entries {name, start, end, time} of 0x28 bytes.
func TestUnloadedList(t *testing.T) {
	s := newSystem()
	const array = 0xffffd00000009000
	s.kdbg.u64(0x220, ntBase+0xd02000)
	s.ku64(ntBase+0xd02000, array)
	s.unicode(s.root, array, array+0x800, "dump_storport.sys")
	s.ku64(array+0x10, 0xfffff80030000000)
	s.ku64(array+0x18, 0xfffff80030008000)
	f := openBytes(t, s.build())
	u := f.UnloadedModules()
	if len(u) != 1 || u[0].Base != 0xfffff80030000000 || u[0].Size != 0x8000 || u[0].Path != "dump_storport.sys" {
		t.Errorf("%+v", u)
	}
}

func FuzzFullLists(f *testing.F) {
	base := newSystem()
	f.Add(uint64(sysProcs), uint64(sysProcs))
	f.Add(uint64(appProcess+0x448), uint64(appProcess+0x448))
	f.Add(uint64(cidHandles+0x2008), uint64(cidHandles|2))
	f.Add(uint64(cidHandles), uint64(cidHandles))
	f.Add(uint64(kdbgVA+0x2a8), uint64(0xffff))
	f.Add(uint64(sysModules), uint64(ntBase))
	file := base.build()
	f.Fuzz(func(t *testing.T, va, value uint64) {
		b := bytes.Clone(file)
		clean, err := Open(bytes.NewReader(b), int64(len(b)), "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		off, perr := clean.full.system.page(va)
		if perr != nil || va&0xfff > 0xff8 {
			return
		}
		binary.LittleEndian.PutUint64(b[off+int64(va&0xfff):], value)
		d, err := Open(bytes.NewReader(b), int64(len(b)), "fuzz")
		if err != nil {
			return
		}
		d.Threads()
		d.Modules()
		d.UnloadedModules()
		d.CPUs()
		for i := range d.Processes() {
			v := d.View(&d.Processes()[i])
			v.Modules()
			d.CommandLine(v.Process())
		}
		for _, e := range d.Damage() {
			if strings.Contains(e.Error(), "%!") {
				t.Error(e)
			}
		}
	})
}
