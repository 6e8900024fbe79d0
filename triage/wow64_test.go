package triage

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// pages is memory made of pieces.
type pages map[uint64][]byte

func (m pages) ReadAt(p []byte, va uint64) (int, error) {
	for base, b := range m {
		if va >= base && va-base < uint64(len(b)) {
			if n := copy(p, b[va-base:]); n == len(p) {
				return n, nil
			} else {
				return n, &dump.MemoryError{VA: va + uint64(n), Size: len(p) - n}
			}
		}
	}
	return 0, &dump.MemoryError{VA: va, Size: len(p)}
}

func (m pages) u32(va uint64, v ...uint32) {
	for base, b := range m {
		if va >= base && va-base < uint64(len(b)) {
			for i, x := range v {
				binary.LittleEndian.PutUint32(b[va-base+4*uint64(i):], x)
			}
		}
	}
}

// stub is a source of just what a space asks for.
type stub struct {
	dump.Source
	mem  dump.Memory
	mods []dump.Module
}

func (s stub) Memory() dump.Memory    { return s.mem }
func (s stub) System() *dump.System   { return &dump.System{Arch: dump.AMD64} }
func (s stub) Modules() []dump.Module { return s.mods }
func (s stub) Regions() []dump.Region { return nil }

const (
	testTEB   = 0x5dc000
	testArea  = 0x3bfd20 // where TlsSlots[1] points
	testStack = 0xb60000 // 32-bit
	testTop   = testStack + 0x4000
	testESP   = testTop - 0x200
)

// wow64Scene is a thread that left 32-bit code for a system call: its 32-bit
// registers are in the area that TlsSlots[1] points to, and its 32-bit stack is
// one EBP frame deep.
func wow64Scene() (pages, *walker, *Thread) {
	m := pages{testTEB: make([]byte, 0x3000), testArea: make([]byte, 0x2d0), testStack: make([]byte, 0x4000)}
	m.u32(testTEB, testTEB+0x2000)             // TEB64.NtTib.ExceptionList: the 32-bit TEB
	m.u32(testTEB+0x1480+8, testArea)          // TlsSlots[1]
	m.u32(testTEB+0x2000+4, testTop)           // TEB32.NtTib.StackBase
	m.u32(testTEB+0x2000+8, testStack)         // StackLimit
	m.u32(testTEB+0x2000+0x18, testTEB+0x2000) // Self
	m.u32(testArea, 0x014c_0000)               // flags 0, machine i386
	ctx := uint64(testArea + 4)
	m.u32(ctx, 0x0001_007f)            // CONTEXT_ALL of x86
	m.u32(ctx+0xb4, testESP+0x10)      // Ebp
	m.u32(ctx+0xb8, 0x77d5bf1c)        // Eip
	m.u32(ctx+0xc4, testESP)           // Esp
	m.u32(testESP+0x10, 0, 0x75448484) // saved ebp: the last; return address
	w := newWalker(newSpace(stub{mem: m, mods: []dump.Module{
		{Base: 0x77cf0000, Size: 0x190000, Path: `C:\Windows\SysWOW64\ntdll.dll`},
		{Base: 0x75430000, Size: 0xe0000, Path: `C:\Windows\SysWOW64\kernel32.dll`},
		{Base: 0x77ce0000, Size: 0xa000, Path: `C:\Windows\System32\wow64cpu.dll`},
	}}, symbols.NewStore(nil)), nil, 0, newFrameBudget(0))
	return m, w, &Thread{Thread: dump.Thread{TEB: testTEB}}
}

func regs64(ip, sp, cs uint64) dump.Registers {
	r := dump.Registers{Arch: dump.AMD64}
	r.SetPC(ip)
	r.SetSP(sp)
	r.Set(dump.RegCS, cs)
	return r
}

func TestWow64Saved(t *testing.T) {
	_, w, th := wow64Scene()
	user, wow64 := w.halves(th, regs64(0x77ce1913, 0x3bedc0, 0x33), unwind.Options{First: unwind.MethodContext})
	if wow64 == nil || wow64.Frames[0].IP != 0x77ce1913 || wow64.Registers.Arch != dump.AMD64 {
		t.Errorf("64-bit half %+v", wow64)
	}
	if user == nil || len(user.Frames) != 2 || user.Registers.Arch != dump.X86 {
		t.Fatalf("32-bit half %+v", user)
	}
	f := user.Frames
	if f[0].IP != 0x77d5bf1c || f[0].SP != testESP || f[1].IP != 0x75448484 || f[1].SP != testESP+0x18 || f[1].Module.Name() != "kernel32.dll" {
		t.Errorf("%+v", f)
	}
}

// 32-bit code is told by its selector; the upper halves of the registers mean
// nothing there, and there is no place in 64-bit code to walk from.
func TestWow64Live(t *testing.T) {
	_, w, th := wow64Scene()
	r := regs64(0x77d5bf1c, testESP|0xdead<<32, 0x23)
	r.Set(dump.RBP, testESP+0x10)
	r.Set(dump.R8, 1)
	user, wow64 := w.halves(th, r, unwind.Options{First: unwind.MethodException})
	if wow64 != nil || user == nil || len(user.Frames) != 2 || user.Frames[0].SP != testESP || user.Frames[0].Method != unwind.MethodException {
		t.Fatalf("%+v, %+v", user, wow64)
	}
	if user.Registers.Known(dump.R8) {
		t.Error("32-bit code has no r8")
	}
}

// Each thing that makes the saved registers unbelievable leaves the 64-bit
// stack in their place.
func TestWow64NotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(m pages){
		"the 32-bit TEB does not point to itself": func(m pages) { m.u32(testTEB+0x2018, 0x1234) },
		"esp is on another stack":                 func(m pages) { m.u32(testArea+4+0xc4, testTop+0x1000) },
		"the machine is ARM":                      func(m pages) { m.u32(testArea, 0x01c4_0000) },
		"flags of a 64-bit CONTEXT":               func(m pages) { m.u32(testArea+4, 0x0010_000f) },
		"no eip":                                  func(m pages) { m.u32(testArea+4+0xb8, 0) },
		"the area is not in the dump":             func(m pages) { m.u32(testTEB+0x1488, 0x666000) },
	} {
		m, w, th := wow64Scene()
		spoil(m)
		user, wow64 := w.halves(th, regs64(0x77ce1913, 0x3bedc0, 0x33), unwind.Options{})
		if wow64 != nil || user == nil || user.Registers.Arch != dump.AMD64 {
			t.Errorf("%s: %+v, %+v", name, user, wow64)
		}
	}
}

// The 32-bit TEB is found behind the 64-bit one where an exception frame took
// the place of the pointer to it.
func TestTEB32ByDistance(t *testing.T) {
	m, w, _ := wow64Scene()
	m.u32(testTEB, 0xffffffff, 0xffffffff)
	if limit, base := w.teb32Bounds(testTEB); limit != testStack || base != testTop {
		t.Errorf("%#x-%#x", limit, base)
	}
}

func TestEmulation(t *testing.T) {
	for name, want := range map[string]Emulation{
		"wow64cpu.dll": {dump.X86, dump.AMD64, "wow64cpu.dll"},
		"XTAJIT.dll":   {dump.X86, dump.ARM64, "xtajit.dll"},
		"xtajit64.dll": {dump.AMD64, dump.ARM64, "xtajit64.dll"},
		"wowarmhw.dll": {dump.ARM, dump.ARM64, "wowarmhw.dll"},
	} {
		mods := []*Module{{Module: &dump.Module{Path: `C:\Windows\System32\wow64.dll`}}, {Module: &dump.Module{Path: name}}}
		if e := emulation(mods); e == nil || *e != want {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if e := emulation([]*Module{{Module: &dump.Module{Path: "ntdll.dll"}}}); e != nil {
		t.Errorf("%+v", e)
	}
}

// A kernel half joins the 64-bit half: that is what entered the kernel.
func TestStitchWow64(t *testing.T) {
	at := func(ip, sp uint64) *Half {
		return &Half{Frames: []Frame{{Frame: unwind.Frame{IP: ip, SP: sp, Method: unwind.MethodContext}}}}
	}
	th := &Thread{User: at(0x77d5bf1c, testESP), Wow64: at(0x7ffc8d7a0000, 0x3be468)}
	stitch(th, &Seam{UserIP: 0x7ffc8d7a0000, UserSP: 0x3be468})
	if !th.Stitched || th.Wow64.Frames[0].Method != unwind.MethodStitch || th.User.Frames[0].Method != unwind.MethodContext {
		t.Errorf("%+v", th)
	}
}
