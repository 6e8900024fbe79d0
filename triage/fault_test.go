package triage

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
)

const faultPC = 0x7ff7a0b2102a

// faulting is an access violation at faultPC with those registers.
func faulting(arch dump.Arch, accessed uint64, set map[dump.Reg]uint64) *Crash {
	c := &Crash{Exception: dump.Exception{Code: 0xc0000005, Address: faultPC, Parameters: []uint64{0, accessed}, Context: dump.Registers{Arch: arch}}}
	c.Context.SetPC(faultPC)
	for r, v := range set {
		c.Context.Set(r, v)
	}
	return c
}

// spaceOf is a space with some code at faultPC.
func spaceOf(arch dump.Arch, code []byte) *space {
	return newSpace(&fake{system: dump.System{Arch: arch}, memory: pages{faultPC: code}}, symbols.NewStore(nil))
}

// The processor reports an access to an address that is not canonical without
// the address, and Windows says ^0 for it. The instruction tells the address.
func TestNonCanonical(t *testing.T) {
	load := []byte{0x48, 0x8b, 0x41, 0x08} // mov rax, [rcx+8]
	const none = ^uint64(0)
	for _, x := range []struct {
		name     string
		code     []byte
		accessed uint64
		regs     map[dump.Reg]uint64
		want     uint64 // 0 not adjusted
	}{
		{"a freed block's fill", load, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0xdddddddddddddde5},
		{"just above the user half", load, none, map[dump.Reg]uint64{dump.RCX: 0x00007ffffffffff8}, 0x0000800000000000},
		{"just below the kernel half", load, none, map[dump.Reg]uint64{dump.RCX: 0xffff7ffffffffff7}, 0xffff7fffffffffff},
		{"the top of the user half", load, none, map[dump.Reg]uint64{dump.RCX: 0x00007ffffffffff7}, 0},
		{"the bottom of the kernel half", load, none, map[dump.Reg]uint64{dump.RCX: 0xffff7ffffffffff8}, 0},
		{"really ^0", load, none, map[dump.Reg]uint64{dump.RCX: none - 8}, 0},
		{"register not known", load, none, nil, 0},
		{"another address was reported", load, 0x1234567, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},
		{"index and scale", []byte{0x8b, 0x04, 0xd8}, none, map[dump.Reg]uint64{dump.RAX: 0x4141414141414141, dump.RBX: 2}, 0x4141414141414151}, // mov eax, [rax+8*rbx]
		{"the source of a copy", []byte{0xa4}, none, map[dump.Reg]uint64{dump.RDI: 0x10000, dump.RSI: 0xfeeefeeefeeefeee}, 0xfeeefeeefeeefeee},  // movsb
		{"the target of a call", []byte{0xff, 0x50, 0x18}, none, map[dump.Reg]uint64{dump.RAX: 0xbaadf00dbaadf00d}, 0xbaadf00dbaadf025},         // call [rax+18h]
		{"nothing is accessed", []byte{0x48, 0x8d, 0x41, 0x08}, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},                     // lea rax, [rcx+8]
		{"gs", []byte{0x65, 0x48, 0x8b, 0x01}, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},
		{"fs", []byte{0x64, 0x48, 0x8b, 0x01}, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},
		{"ds is flat", []byte{0x3e, 0x48, 0x8b, 0x01}, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0xdddddddddddddddd},
		{"code not in the dump", nil, none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},
		{"code cut short", load[:3], none, map[dump.Reg]uint64{dump.RCX: 0xdddddddddddddddd}, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := faulting(dump.AMD64, x.accessed, x.regs)
			explainFault(spaceOf(dump.AMD64, x.code), c, 0)
			if (c.Adjusted != nil) != (x.want != 0) {
				t.Fatalf("adjusted %+v", c.Adjusted)
			}
			if c.Adjusted != nil && (c.Adjusted.Kind != "non-canonical" || c.Adjusted.Address != x.want) {
				t.Errorf("%+v, want %#x", c.Adjusted, x.want)
			}
		})
	}
}

func TestNullPointer(t *testing.T) {
	for _, x := range []struct {
		name   string
		arch   dump.Arch
		change func(*Crash)
		offset int // -1 not adjusted
	}{
		{"a field", dump.AMD64, func(c *Crash) { c.Parameters[1] = 0x18 }, 0x18},
		{"the last byte that is never mapped", dump.AMD64, func(c *Crash) { c.Parameters[1] = 0xffff }, 0xffff},
		{"the first that may be mapped", dump.AMD64, func(c *Crash) { c.Parameters[1] = 0x10000 }, -1},
		{"null itself", dump.AMD64, func(c *Crash) { c.Parameters[1] = 0 }, 0},
		{"x86", dump.X86, func(c *Crash) { c.Parameters[1] = 0x45 }, 0x45},
		{"arm64", dump.ARM64, func(c *Crash) { c.Parameters[1] = 0x45 }, 0x45},
		{"another exception", dump.AMD64, func(c *Crash) { c.Code, c.Parameters[1] = 0xc0000409, 0x18 }, -1},
		{"no parameters", dump.AMD64, func(c *Crash) { c.Parameters = nil }, -1},
		{"one parameter", dump.AMD64, func(c *Crash) { c.Parameters = []uint64{0x18} }, -1},
		{"x86 at the top of memory", dump.X86, func(c *Crash) { c.Parameters[1] = 0xffffffff }, -1},
	} {
		c := faulting(x.arch, 0, nil)
		x.change(c)
		explainFault(spaceOf(x.arch, nil), c, 0)
		if (c.Adjusted != nil) != (x.offset >= 0) || c.Adjusted != nil && (c.Adjusted.Kind != "null-pointer" || c.Adjusted.Offset != uint64(x.offset)) {
			t.Errorf("%s: %+v, want offset %#x", x.name, c.Adjusted, x.offset)
		}
	}
	// An address that stands in the instruction is no pointer: mov dword [0], eax.
	constant := faulting(dump.AMD64, 0, nil)
	explainFault(spaceOf(dump.AMD64, []byte{0x89, 0x04, 0x25, 0, 0, 0, 0}), constant, 0)
	if constant.Adjusted != nil || constant.Instruction == nil {
		t.Errorf("%+v, %+v", constant.Adjusted, constant.Instruction)
	}
	c := faulting(dump.AMD64, 0x18, nil)
	c.Context = dump.Registers{Arch: dump.AMD64} // nothing is known, not even where it was
	explainFault(spaceOf(dump.AMD64, []byte{0x90}), c, 0)
	if c.Instruction != nil {
		t.Errorf("decoded %+v at an unknown address", c.Instruction)
	}
}

// Encodings that the decoder does not know or misreads are not decoded at all.
// The bytes are from the processor manuals' opcode tables.
func TestDecodeRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		arch    dump.Arch
		code    []byte
		decoded bool
	}{
		"endbr64":                        {dump.AMD64, []byte{0xf3, 0x0f, 0x1e, 0xfa}, false},
		"endbr32":                        {dump.X86, []byte{0xf3, 0x0f, 0x1e, 0xfb}, false},
		"vmovups ymm0,[rcx]":             {dump.AMD64, []byte{0xc5, 0xfc, 0x10, 0x01}, true},
		"vmovups ymm0,[r9]":              {dump.AMD64, []byte{0xc4, 0xc1, 0x7c, 0x10, 0x01}, true},
		"vmovups zmm0,[rcx]":             {dump.AMD64, []byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x01}, true},
		"vmovups with a prefix":          {dump.AMD64, []byte{0x67, 0xc5, 0xfc, 0x10, 0x01}, true},
		"vmovups with 66, which faults":  {dump.AMD64, []byte{0x66, 0xc5, 0xfc, 0x10, 0x01}, false},
		"vmovups with two sources":       {dump.AMD64, []byte{0xc5, 0xf4, 0x10, 0x01}, false},
		"vmovups [bx], 16-bit addresses": {dump.X86, []byte{0x67, 0xc5, 0xfc, 0x10, 0x07}, false},
		"vaddps ymm0,ymm1,[rcx]":         {dump.AMD64, []byte{0xc5, 0xf4, 0x58, 0x01}, false},
		"vaddps zmm0,zmm1,[rcx]":         {dump.AMD64, []byte{0x62, 0xf1, 0x74, 0x48, 0x58, 0x01}, false},
		"vmovups zmm0,[r17]":             {dump.AMD64, []byte{0x62, 0xf9, 0x7c, 0x48, 0x10, 0x01}, false},
		"REX2 mov":                       {dump.AMD64, []byte{0xd5, 0x48, 0x8b, 0x01}, false},
		"vmovups ymm0,[ecx], 32-bit":     {dump.X86, []byte{0xc5, 0xfc, 0x10, 0x01}, true},
		"vmovups zmm0,[ecx], 32-bit":     {dump.X86, []byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x01}, true},
		"VEX of three bytes, 32-bit":     {dump.X86, []byte{0xc4, 0xe2, 0x79, 0x18, 0x01}, false},
		"vmovups with a prefix, 32-bit":  {dump.X86, []byte{0x64, 0xc5, 0xfc, 0x10, 0x01}, true},
		"lds eax,[ecx]":                  {dump.X86, []byte{0xc5, 0x01}, true},
		"les eax,[ecx]":                  {dump.X86, []byte{0xc4, 0x01}, true},
		"bound eax,[ecx]":                {dump.X86, []byte{0x62, 0x01}, true},
		"aad 48h":                        {dump.X86, []byte{0xd5, 0x48}, true},
		"nothing":                        {dump.AMD64, nil, false},
		"prefixes alone":                 {dump.AMD64, []byte{0x66, 0x66, 0x66}, false},
		"an opcode that does not exist":  {dump.AMD64, []byte{0x06}, false},
		"32-bit arm code":                {dump.ARM, []byte{0x8b, 0x01, 0x90, 0x90}, false},
		"unknown architecture":           {dump.ArchUnknown, []byte{0x8b, 0x01, 0x90, 0x90}, false},
		"an immediate that is not there": {dump.AMD64, []byte{0xc7, 0x00, 0x05, 0x00}, false},
		"ud2":                            {dump.AMD64, []byte{0x0f, 0x0b}, true},
	} {
		regs := dump.Registers{Arch: x.arch}
		if in := decode(&regs, x.code, faultPC); (in != nil) != x.decoded {
			t.Errorf("%s: %+v, want decoded %v", name, in, x.decoded)
		}
	}
}

// One instruction in its parts: bytes of it alone, text, operand sizes.
func TestDecode(t *testing.T) {
	regs := dump.Registers{Arch: dump.AMD64}
	regs.Set(dump.R15, 0x1000)
	regs.Set(dump.RCX, 0x20000)
	in := decode(&regs, []byte{0x43, 0x0f, 0xb6, 0x44, 0x7f, 0x05, 0xcc, 0xcc}, faultPC) // movzx eax, byte [r15+2*r15+5]
	if in == nil || len(in.Accesses) != 1 {
		t.Fatalf("%+v", in)
	}
	if a := in.Accesses[0]; a != (MemoryAccess{Address: 0x3005, Size: 1, Known: true}) {
		t.Errorf("%+v", a)
	}
	if !bytes.Equal(in.Bytes, []byte{0x43, 0x0f, 0xb6, 0x44, 0x7f, 0x05}) || in.Text != "movzx eax, byte ptr [r15+2*r15+0x5]" {
		t.Errorf("% x %q", in.Bytes, in.Text)
	}
	for name, x := range map[string]struct {
		code    []byte
		address uint64
		size    int
		write   bool
	}{
		"mov qword [rcx],5":    {[]byte{0x48, 0xc7, 0x01, 5, 0, 0, 0}, 0x20000, 8, true},
		"inc word [rcx]":       {[]byte{0x66, 0xff, 0x01}, 0x20000, 2, true},
		"cmp byte [rcx],0":     {[]byte{0x80, 0x39, 0}, 0x20000, 1, false},
		"test [rcx],eax":       {[]byte{0x85, 0x01}, 0x20000, 4, false},
		"call [rcx+8]":         {[]byte{0xff, 0x51, 0x08}, 0x20008, 8, false},
		"jmp [rcx-8]":          {[]byte{0xff, 0x61, 0xf8}, 0x1fff8, 8, false},
		"push [rcx]":           {[]byte{0xff, 0x31}, 0x20000, 8, false},
		"pop [rcx]":            {[]byte{0x8f, 0x01}, 0x20000, 8, true},
		"div dword [rcx]":      {[]byte{0xf7, 0x31}, 0x20000, 4, false},
		"not dword [rcx]":      {[]byte{0xf7, 0x11}, 0x20000, 4, true},
		"movups [rcx],xmm0":    {[]byte{0x0f, 0x11, 0x01}, 0x20000, 16, true},
		"lock xadd [rcx],eax":  {[]byte{0xf0, 0x0f, 0xc1, 0x01}, 0x20000, 4, true},
		"verr [rcx]":           {[]byte{0x0f, 0x00, 0x21}, 0x20000, 2, false},
		"mov eax,[20000h]":     {[]byte{0x8b, 0x04, 0x25, 0, 0, 2, 0}, 0x20000, 4, false},
		"mov eax,[-8]":         {[]byte{0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff}, 0xfffffffffffffff8, 4, false},
		"mov eax,[rip-10h]":    {[]byte{0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff}, faultPC + 6 - 0x10, 4, false},
		"mov eax,[eip-10h]":    {[]byte{0x67, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff}, (faultPC + 7 - 0x10) & 0xffffffff, 4, false},
		"mov dword [rip+8],5":  {[]byte{0xc7, 0x05, 8, 0, 0, 0, 5, 0, 0, 0}, faultPC + 10 + 8, 4, true}, // counts from behind the immediate
		"mov eax,[rcx+4*rcx]":  {[]byte{0x8b, 0x04, 0x89}, 0x20000 * 5, 4, false},
		"mov eax,[rcx+80h]":    {[]byte{0x8b, 0x81, 0x80, 0, 0, 0}, 0x20080, 4, false},
		"mov eax,[rcx-1]":      {[]byte{0x8b, 0x41, 0xff}, 0x1ffff, 4, false},
		"mov al,[moffs]":       {[]byte{0xa0, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201, 1, false},
		"mov eax,[ecx+80000h]": {[]byte{0x67, 0x8b, 0x81, 0, 0, 8, 0}, 0xa0000, 4, false},
	} {
		in := decode(&regs, x.code, faultPC)
		if in == nil || len(in.Accesses) != 1 {
			t.Errorf("%s: %+v", name, in)
			continue
		}
		both := slices.Contains([]string{"inc word [rcx]", "not dword [rcx]", "lock xadd [rcx],eax"}, name)
		if want := (MemoryAccess{Address: x.address, Size: x.size, Write: x.write, Read: both, Known: true}); in.Accesses[0] != want {
			t.Errorf("%s: %+v, want %+v", name, in.Accesses[0], want)
		}
	}
	x86 := dump.Registers{Arch: dump.X86}
	x86.Set(dump.RAX, 0xfffffff0)
	x86.Set(dump.RDI, 0x45)
	for name, x := range map[string]struct {
		code []byte
		want MemoryAccess
	}{
		"mov eax,[eax+20h]":   {[]byte{0x8b, 0x40, 0x20}, MemoryAccess{Address: 0x10, Size: 4, Write: false, Known: true}}, // wraps at 4 GB
		"mov [edi],ecx":       {[]byte{0x89, 0x0f}, MemoryAccess{Address: 0x45, Size: 4, Write: true, Known: true}},
		"mov eax,[esi]":       {[]byte{0x8b, 0x06}, MemoryAccess{Address: 0, Size: 4, Write: false, Known: false}},
		"mov eax,fs:[18h]":    {[]byte{0x64, 0xa1, 0x18, 0, 0, 0}, MemoryAccess{Size: 4, inTEB: true, offset: 0x18}},
		"mov eax,[80000000h]": {[]byte{0xa1, 0, 0, 0, 0x80}, MemoryAccess{Address: 0x80000000, Size: 4, Write: false, Known: true}},
	} {
		in := decode(&x86, x.code, 0x401000)
		if in == nil || len(in.Accesses) != 1 || in.Accesses[0] != x.want {
			t.Errorf("%s: %+v, want %+v", name, in, x.want)
		}
	}
}

// Code that memory lacks comes from the module's image file.
func TestFaultCodeFromImage(t *testing.T) {
	c := fixtures.CrashAMD64()
	dir := imageDir(t, map[string][]byte{"crashdemo.exe": c.Image})
	store := symbols.NewStore([]string{dir})
	t.Cleanup(func() { store.Close() })
	sp := newSpace(&fake{system: dump.System{Arch: dump.AMD64}, memory: pages{},
		modules: []dump.Module{{Base: 0x7ff7a0b20000, Size: 0x6000, TimeDateStamp: 0x7e57ab60, Path: "crashdemo.exe"}}}, store)
	crash := faulting(dump.AMD64, 0x10, nil) // faultPC is the scene's mov eax, [rcx+10h]
	explainFault(sp, crash, 0)
	if crash.Instruction == nil || crash.Instruction.Text != "mov eax, dword ptr [rcx+0x10]" {
		t.Errorf("%+v", crash.Instruction)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x48, 0x8b, 0x41, 0x08}, true, uint64(8))
	f.Add([]byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x01}, true, uint64(1<<63))
	f.Add([]byte{0x67, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff}, true, ^uint64(0))
	for _, moves := range []string{"\x62\xf1\x7c\x48\x28\x44\x91\x01", "\x65\xc4\xc1\x7d\x6f\x04\x25\x00\x00\x00\x00"} {
		f.Add([]byte(moves), true, uint64(0x10000))
	}
	f.Fuzz(func(t *testing.T, code []byte, wide bool, v uint64) {
		code = code[:min(len(code), maxInstruction)]
		regs := dump.Registers{Arch: dump.X86}
		if wide {
			regs.Arch = dump.AMD64
		}
		for r := dump.RAX; r <= dump.R15; r++ {
			regs.Set(r, v)
		}
		in := decode(&regs, code, faultPC)
		if in == nil {
			return
		}
		if !bytes.HasPrefix(code, in.Bytes) || len(in.Bytes) == 0 || in.Text == "" {
			t.Fatalf("% x: %+v", code, in)
		}
	})
}

// An operand of the segment that is the thread's TEB has the TEB's address; in 64-bit
// code that is GS, in 32-bit code FS, which has the 32-bit TEB under WoW64.
func TestFaultInTEB(t *testing.T) {
	const code, teb, teb32, id = 0x401000, 0x7ffde000, 0x7ffdf000, 0x1204
	gs, fs := []byte{0x65, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0x16, 0, 0}, []byte{0x64, 0xa1, 0xb4, 0x0f, 0, 0} // gs:[16e8h], fs:[0fb4h]
	self := make([]byte, 0x20)
	binary.LittleEndian.PutUint32(self[4:], 0x200000)    // StackBase
	binary.LittleEndian.PutUint32(self[8:], 0x1f0000)    // StackLimit
	binary.LittleEndian.PutUint32(self[0x18:], teb32)    // Self
	head := binary.LittleEndian.AppendUint64(nil, teb32) // ExceptionList of the 64-bit one
	for _, x := range []struct {
		name         string
		system, arch dump.Arch
		code         []byte
		thread       uint32
		want         uint64 // 0 not known
	}{
		{"64-bit", dump.AMD64, dump.AMD64, gs, id, teb + 0x16e8},
		{"64-bit, fs", dump.AMD64, dump.AMD64, append([]byte{0x64}, gs[1:]...), id, 0},
		{"32-bit", dump.X86, dump.X86, fs, id, teb + 0xfb4},
		{"32-bit, gs", dump.X86, dump.X86, append([]byte{0x65}, fs[1:]...), id, 0},
		{"WoW64", dump.AMD64, dump.X86, fs, id, teb32 + 0xfb4},
		{"a thread that is not there", dump.AMD64, dump.AMD64, gs, id + 1, 0},
	} {
		c := faulting(x.arch, 0xffffffffffffffff, nil)
		c.Context.SetPC(code)
		c.ThreadID = x.thread
		if x.system != x.arch { // what a CONTEXT of WoW64 holds
			c.Context.Arch = dump.AMD64
			c.Context.Set(dump.RegCS, wow64CS)
		}
		src := &fake{system: dump.System{Arch: x.system}, exception: &c.Exception, threads: []dump.Thread{{ID: id, TEB: teb}},
			memory: pages{code: x.code, teb: head, teb32: self}}
		inc := analyze(t, src.at(t, "teb.dmp"), nil, Options{})
		in := inc.Crash.Instruction
		if in == nil || len(in.Accesses) != 1 {
			t.Errorf("%s: %+v", x.name, in)
			continue
		}
		if a := in.Accesses[0]; a.Known != (x.want != 0) || a.Address != x.want {
			t.Errorf("%s: %+v, want %#x", x.name, a, x.want)
		}
	}
}

// Where a call, jump or return leads is what its register or operand holds.
func TestFollow(t *testing.T) {
	slot := binary.LittleEndian.AppendUint64(nil, 0x1122334455667788)
	for _, x := range []struct {
		asm  string
		arch dump.Arch
		code []byte
		want uint64 // 0 not known
	}{
		{"call rax", dump.AMD64, []byte{0xff, 0xd0}, 0xdddd},
		{"jmp rax", dump.AMD64, []byte{0xff, 0xe0}, 0xdddd},
		{"call [rcx+8]", dump.AMD64, []byte{0xff, 0x51, 0x08}, 0x1122334455667788},
		{"call [rdx]", dump.AMD64, []byte{0xff, 0x12}, 0}, // rdx is not known
		{"call [rax]", dump.AMD64, []byte{0xff, 0x10}, 0}, // nothing is there
		{"ret", dump.AMD64, []byte{0xc3}, 0x1122334455667788},
		{"call [ecx+8]", dump.X86, []byte{0xff, 0x51, 0x08}, 0x55667788},
		{"call next", dump.AMD64, []byte{0xe8, 0, 0, 0, 0}, 0}, // it stands there
		{"mov rax, [rcx+8]", dump.AMD64, []byte{0x48, 0x8b, 0x41, 0x08}, 0},
		{"blr x0", dump.ARM64, []byte{0x00, 0x00, 0x3f, 0xd6}, 0xdddd},
		{"ret", dump.ARM64, []byte{0xc0, 0x03, 0x5f, 0xd6}, 0x7777},
		{"ret x0", dump.ARM64, []byte{0x00, 0x00, 0x5f, 0xd6}, 0xdddd},
		{"ret x5", dump.ARM64, []byte{0xa0, 0x00, 0x5f, 0xd6}, 0}, // x5 is not known
		{"blr x30", dump.ARM64, []byte{0xc0, 0x03, 0x3f, 0xd6}, 0x7777},
		{"br x29", dump.ARM64, []byte{0xa0, 0x03, 0x1f, 0xd6}, 0x8888},
	} {
		c := faulting(x.arch, 0x10, map[dump.Reg]uint64{dump.RAX: 0xdddd, dump.RCX: 0x5ff8})
		c.Context.SetPC(0x401000)
		c.Context.SetSP(0x6000)
		if x.arch == dump.ARM64 {
			c.Context.Set(29, 0x8888)
			c.Context.Set(30, 0x7777)
		}
		sp := newSpace(&fake{system: dump.System{Arch: x.arch}, memory: pages{0x401000: x.code, 0x6000: slot}}, symbols.NewStore(nil))
		explainFault(sp, c, 0)
		if in := c.Instruction; in == nil || in.HasTarget != (x.want != 0) || in.HasTarget && in.Target != x.want {
			t.Errorf("%s: %+v, want %#x", x.asm, in, x.want)
		}
	}
}
