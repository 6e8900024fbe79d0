package crash

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// pages is memory by address; reads do not cross from one page to the next.
type pages map[uint64][]byte

func (p pages) ReadAt(b []byte, va uint64) (int, error) {
	for base, data := range p {
		if va >= base && va-base < uint64(len(data)) {
			return copy(b, data[va-base:]), nil
		}
	}
	return 0, dump.Errorf(dump.OutOfRange, "memory", "not there")
}

func regs(arch dump.Arch, pc, sp uint64) dump.Registers {
	r := dump.Registers{Arch: arch}
	r.SetPC(pc)
	r.SetSP(sp)
	return r
}

// The second overflow of a stack meets no guard page: it is an access violation
// below what is left of the stack.
func TestOutgrownStack(t *testing.T) {
	const limit, base = 0x100000, 0x200000
	for _, c := range []struct {
		sp, address uint64
		want        Class
	}{
		{limit + 0x20, limit - 0x18, StackOverflow}, // push
		{limit + 0x20, limit - 0x4000, StackOverflow},
		{limit + 0x80000, limit - 0x18, WildPointer}, // the stack is half empty
		{limit + 0x20, 0x50000, WildPointer},         // far below
	} {
		inc := incident(codeAccessViolation, frameIn(`C:\demo\app.exe`, "f"))
		inc.Crash.Parameters = []uint64{1, c.address}
		inc.Crash.Context = regs(dump.AMD64, 0x1010, c.sp)
		inc.Threads[0].StackBase, inc.Threads[0].StackLimit = base, limit
		if v := Of(inc, nil); v.Class != c.want {
			t.Errorf("sp %#x, address %#x: %s, want %s", c.sp, c.address, v.Class, c.want)
		}
	}
}

// 32-bit patterns, and addresses that a dump stores sign-extended.
func TestX86(t *testing.T) {
	for _, c := range []struct {
		address uint64
		want    Class
		at      uint64
	}{
		{0xdddddde1, UseAfterFree, 0xdddddde1},
		{0xffffffffdddddde1, UseAfterFree, 0xdddddde1},
		{0xcccccccc, Uninitialized, 0xcccccccc},
		{0xfffffff8, NullPointer, 0xfffffff8},
		{0x45, NullPointer, 0x45},
		{0xffffffff, NullPointer, 0xffffffff},
		{0xbbadbeef, Deliberate, 0xbbadbeef},
	} {
		inc := incident(codeAccessViolation)
		inc.System.Arch, inc.Crash.Context.Arch = dump.X86, dump.X86
		inc.Crash.Parameters = []uint64{0, c.address}
		if v := Of(inc, nil); v.Class != c.want || v.Address != c.at {
			t.Errorf("%#x: %s at %#x, want %s at %#x", c.address, v.Class, v.Address, c.want, c.at)
		}
	}
}

func TestPatternWins(t *testing.T) {
	for va, want := range map[uint64]Class{
		0xdddddddddddddddd: UseAfterFree, 0xddddddddddddddd5: UseAfterFree, // eight below
		0xddddddddddd00000: "", 0xfeeefeeefeef0000: UseAfterFree, 0xbaadf00dbaadf00d: Uninitialized,
		0xabababababababab: OutOfBounds, 0x00000000dddddddd: "", 0xbbadbeef: Deliberate, 0xe5e5e5e5e5e5e5f5: UseAfterFree,
	} {
		p := patternAt(va, dump.AMD64)
		if (p == nil) != (want == "") || p != nil && p.Class != want {
			t.Errorf("%#x: %+v, want %q", va, p, want)
		}
	}
}

// A walk that was cut off counts what it saw and estimates the rest by the size
// of the stack.
func TestRecursionCutOff(t *testing.T) {
	var frames []triage.Frame
	const top, step = 0x100000, 0x100
	sp := uint64(top)
	for i := range 31 {
		f := frameIn(`C:\demo\app.exe`, []string{"parse", "parse_list", "parse_item"}[i%3])
		if i == 0 {
			f = frameIn(`C:\demo\app.exe`, "__chkstk")
		}
		f.SP = sp
		sp += step
		frames = append(frames, f)
	}
	share(frames)
	inc := incident(0xc00000fd, frames...)
	th := &inc.Threads[0]
	th.User.Truncated, th.StackBase, th.StackLimit = true, top+step+0x300*1000, top-0x1000
	r := Of(inc, nil).Recursion
	// Frames 1 to 30 are ten rounds of three, 0x300 bytes each.
	if r == nil || *r != (Recursion{From: 1, Frames: 3, Rounds: 10, AtLeast: true, Bytes: 0x300, Estimate: 1000}) {
		t.Errorf("%+v", r)
	}
	th.User.Truncated = false
	if r := Of(inc, nil).Recursion; r == nil || r.AtLeast || r.Estimate != 0 {
		t.Errorf("not cut off: %+v", r)
	}
}

func TestLargestFrame(t *testing.T) {
	frames := []triage.Frame{frameIn(`C:\demo\app.exe`, "read"), frameIn(`C:\demo\app.exe`, "big"), frameIn(`C:\demo\app.exe`, "main")}
	frames[0].SP, frames[1].SP, frames[2].SP = 0x10000, 0x10100, 0xf0000
	inc := incident(0xc00000fd, frames...)
	inc.Threads[0].StackBase, inc.Threads[0].StackLimit = 0x100000, 0x10000
	v := Of(inc, nil)
	if v.Recursion != nil || v.Largest == nil || *v.Largest != (Largest{1, 0xdff00}) || v.Blame.Index != 1 || v.Blame.Rule != BlameLargest {
		t.Errorf("%+v, %+v", v.Largest, v.Blame)
	}
}

func TestText(t *testing.T) {
	wide := func(s string) []byte {
		var b []byte
		for _, r := range s {
			b = binary.LittleEndian.AppendUint16(b, uint16(r))
		}
		return append(b, 0, 0)
	}
	for _, c := range []struct {
		memory []byte
		want   string
	}{
		{append([]byte("config.json"), 0, 0xff), "config.json"},
		{wide("C:\\Temp\\ä.txt"), "C:\\Temp\\ä.txt"},
		{[]byte{'a', 'b', 'c', 0}, ""},             // too short to be a text
		{[]byte{0x80, 0x81, 0x82, 0x83, 0x84}, ""}, // no UTF-8
		{[]byte{1, 2, 3, 4, 5, 6}, ""},
		{nil, ""},
	} {
		inc := incident(codeAccessViolation)
		inc.UserSpace = triage.NewView(pages{0x20000: c.memory}, nil, nil)
		inc.Crash.Context.Set(dump.RCX, 0x20000)
		v := Of(inc, nil)
		got := ""
		if len(v.Registers) > 0 && v.Registers[0].Target != nil {
			got = v.Registers[0].Target.Text
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.memory, got, c.want)
		}
	}
}

func TestItaniumTypes(t *testing.T) {
	for in, want := range map[string]string{
		"St13runtime_error": "std::runtime_error", "N3app10ParseErrorE": "app::ParseError", "5Error": "Error",
		"NSt3__112basic_stringE": "std::__1::basic_string", "i": "i", "PKc": "PKc", "99x": "99x", "": "",
	} {
		if got := itaniumType(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What GCC's runtime throws, laid out by the Itanium ABI: the type 80 bytes in
// front of the unwind header, the object 64 bytes behind its start.
func TestItaniumObject(t *testing.T) {
	mem := make([]byte, 0x200)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(mem[at:], v) }
	const base, header = 0x30000, 0x100
	put(header-80, base+0x10) // type_info
	put(0x18, base+0x20)      // its name
	copy(mem[0x20:], "St11logic_error\x00")
	put(header+64+8, base+0x40) // the object's message
	copy(mem[0x40:], "index 7 of 3\x00")
	inc := incident(codeGCC)
	inc.Crash.Parameters = []uint64{base + header}
	inc.UserSpace = triage.NewView(pages{base: mem}, nil, nil)
	if o := Of(inc, nil).Thrown; o == nil || len(o.Types) != 1 || o.Types[0] != "std::logic_error" || o.Message != "index 7 of 3" {
		t.Errorf("%+v", o)
	}
}

// DelayLoadInfo by delayimp.h: the module's name is its fourth word, then a flag
// and the procedure's name.
func TestDelayLoad(t *testing.T) {
	mem := make([]byte, 0x100)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(mem[at:], v) }
	const base = 0x40000
	put(24, base+0x80)
	put(32, 1)
	put(40, base+0x90)
	copy(mem[0x80:], "extra.dll\x00")
	copy(mem[0x90:], "Frobnicate\x00")
	for code, want := range map[uint32]string{codeDelayModule: "extra.dll", codeDelayProcedure: "extra.dll!Frobnicate"} {
		inc := incident(code)
		inc.Crash.Parameters = []uint64{base}
		inc.UserSpace = triage.NewView(pages{base: mem}, nil, nil)
		if v := Of(inc, nil); v.Class != DelayLoad || v.Detail != want {
			t.Errorf("%#x: %s, %q", code, v.Class, v.Detail)
		}
	}
}

// On x86 the description of a thrown object holds addresses: ThrowInfo,
// CatchableTypeArray, CatchableType, TypeDescriptor, by ehdata.h.
func TestThrownX86(t *testing.T) {
	mem := make([]byte, 0x200)
	put := func(at int, v uint32) { binary.LittleEndian.PutUint32(mem[at:], v) }
	const base = 0x60000
	put(0x0c, base+0x20)                    // ThrowInfo at 0: the array
	put(0x20, 2)                            // two types
	put(0x24, base+0x40)                    //
	put(0x28, base+0x60)                    //
	put(0x44, base+0x80)                    // the first's descriptor
	put(0x64, base+0xa0)                    // the second's,
	put(0x68, 8)                            // which lies 8 bytes into the object
	copy(mem[0x88:], ".?AUError@app@@\x00") // behind two pointers
	copy(mem[0xa8:], ".?AVexception@std@@\x00")
	put(0x100+8+4, base+0x180) // the object's std::exception: its message
	copy(mem[0x180:], "no such port\x00")
	inc := incident(codeCxx)
	inc.System.Arch, inc.Crash.Context.Arch = dump.X86, dump.X86
	inc.Crash.Parameters = []uint64{0x19930520, base + 0x100, base}
	inc.UserSpace = triage.NewView(pages{base: mem}, nil, nil)
	o := Of(inc, nil).Thrown
	if o == nil || len(o.Types) != 2 || o.Types[0] != "app::Error" || o.Types[1] != "std::exception" || o.Message != "no such port" {
		t.Errorf("%+v", o)
	}
}

func TestReadableType(t *testing.T) {
	for in, want := range map[string]string{
		".H": "int", ".PEAD": "char *", ".PEBD": "char const *", ".?AVbad_alloc@std@@": "std::bad_alloc", ".?AW4Reason@app@@": "app::Reason",
		".?AV?$Box@H@app@@": "app::Box<int>", "H": "", ".": "", ".?AV": "", "": "",
	} {
		if got := readableType(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestStackPointerAway(t *testing.T) {
	inc := incident(0xc0000094)
	inc.Crash.Context = regs(dump.AMD64, 0x1010, 0x900000)
	inc.Threads[0].StackBase, inc.Threads[0].StackLimit = 0x200000, 0x100000
	has := func(rs ...dump.Region) bool {
		inc.UserSpace = triage.NewView(nil, rs, nil)
		for _, i := range Of(inc, nil).Inconsistencies {
			if i == StackPointerAway {
				return true
			}
		}
		return false
	}
	if !has(dump.Region{Base: 0x10000, Size: 0x1000, State: memCommit}) {
		t.Error("nothing is mapped at the stack pointer")
	}
	if has(dump.Region{Base: 0x8f0000, Size: 0x20000, State: memCommit, Type: memPrivate, Protect: 4}) {
		t.Error("a fiber's stack is private memory")
	}
	if has() {
		t.Error("without a list of memory nothing is known")
	}
}

// No incident at all makes a judge fail, and none costs more than its size.
func FuzzOf(f *testing.F) {
	f.Add(uint32(codeAccessViolation), uint64(0), ^uint64(0), uint64(3), "mov eax, dword ptr [rcx+0x10]", []byte("text in memory"))
	f.Add(uint32(codeCxx), uint64(0x19930520), uint64(0x50000), uint64(0x50000), "", make([]byte, 64))
	f.Add(uint32(codeGCC), uint64(0x50050), uint64(0), uint64(0), "", make([]byte, 256))
	f.Add(uint32(codeDelayProcedure), uint64(0x50000), uint64(0), uint64(0), "", make([]byte, 256))
	f.Add(uint32(0xc00000fd), uint64(1), uint64(2), uint64(3), "push rax", []byte{1})
	f.Fuzz(func(t *testing.T, code uint32, p0, p1, p2 uint64, text string, mem []byte) {
		for _, arch := range []dump.Arch{dump.AMD64, dump.X86, dump.ARM64, dump.ArchUnknown} {
			a, b := frameIn(`C:\demo\app.exe`, "f"), frameIn(`C:\demo\app.exe`, "")
			a.SP, b.SP = p1, p2
			inc := incident(code, a, b, a, b, a, b, a, b)
			inc.System.Arch, inc.Crash.Context.Arch = arch, arch
			inc.Crash.Parameters = []uint64{p0, p1, p2, p0}
			for r := range dump.Reg(dump.NumRegs) {
				inc.Crash.Context.Set(r, p0+uint64(r)*p2)
			}
			inc.Crash.Instruction = &triage.Instruction{Text: text, Accesses: []triage.MemoryAccess{{Address: p1, Size: int(int8(p0)), Known: true}}}
			inc.Threads[0].StackBase, inc.Threads[0].StackLimit, inc.Threads[0].User.Truncated = p2, p1, true
			inc.Threads[0].User.Frames[3].Trust = unwind.Trust(p0 & 7)
			inc.UserSpace = triage.NewView(pages{0x50000: mem}, []dump.Region{{Base: p1, Size: p2, State: uint32(p0), Protect: uint32(p1)}}, nil)
			v := Of(inc, nil)
			if v.Class == "" || v.Blame != nil && (v.Blame.Index >= 8 || v.Blame.Confidence == "") || len(v.BitFlips) > maxFlips {
				t.Errorf("%+v", v)
			}
		}
	})
}

// On ARM64 every fault has its address: one of ^0 is that address, a little below 0.
func TestHighestAddress(t *testing.T) {
	for arch, want := range map[dump.Arch]Class{dump.AMD64: NonCanonical, dump.ARM64: NullPointer} {
		inc := incident(codeAccessViolation)
		inc.System.Arch, inc.Crash.Context.Arch = arch, arch
		inc.Crash.Parameters = []uint64{0, ^uint64(0)}
		if v := Of(inc, nil); v.Class != want {
			t.Errorf("%v: %s, want %s", arch, v.Class, want)
		}
	}
}

// Only a thrown pointer to characters leads to a text: not a character, nor a class
// whose name begins alike.
func TestThrownText(t *testing.T) {
	const base = 0x50000
	for name, want := range map[string]string{".PAD": "no such port", ".PBD": "no such port", ".D": "", ".?AVcharset_error@@": ""} {
		mem := make([]byte, 0x1000)
		put := func(at, v uint32) { binary.LittleEndian.PutUint32(mem[at:], v) }
		put(0x0c, base+0x20) // ThrowInfo: the types
		put(0x20, 1)
		put(0x24, base+0x30)
		put(0x34, base+0x60) // the type's descriptor
		copy(mem[0x68:], name+"\x00")
		put(0x100, base+0x180)
		copy(mem[0x180:], "no such port\x00")
		inc := incident(codeCxx)
		inc.System.Arch, inc.Crash.Context.Arch = dump.X86, dump.X86
		inc.Crash.Parameters = []uint64{0x19930520, base + 0x100, base}
		inc.UserSpace = triage.NewView(pages{base: mem}, nil, nil)
		if o := Of(inc, nil).Thrown; o == nil || len(o.Types) != 1 || o.Message != want {
			t.Errorf("%s: %+v, want the text %q", name, o, want)
		}
	}
}
