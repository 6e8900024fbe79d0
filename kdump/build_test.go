package kdump

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"dumptriage/dump"
)

// bin is a byte image under construction. Offsets are written out where they are
// used, so that the tests do not share a layout with the reader.
type bin struct{ b []byte }

func (m *bin) grow(n int) {
	if n > len(m.b) {
		m.b = append(m.b, make([]byte, n-len(m.b))...)
	}
}
func (m *bin) u8(off int, v uint8)   { m.grow(off + 1); m.b[off] = v }
func (m *bin) u16(off int, v uint16) { m.grow(off + 2); binary.LittleEndian.PutUint16(m.b[off:], v) }
func (m *bin) u32(off int, v uint32) { m.grow(off + 4); binary.LittleEndian.PutUint32(m.b[off:], v) }
func (m *bin) u64(off int, v uint64) { m.grow(off + 8); binary.LittleEndian.PutUint64(m.b[off:], v) }
func (m *bin) put(off int, b []byte) { m.grow(off + len(b)); copy(m.b[off:], b) }
func (m *bin) text(off int, s string) {
	for i, u := range utf16.Encode([]rune(s)) {
		m.u16(off+2*i, u)
	}
}

// append adds bytes at the end and returns where.
func (m *bin) append(b []byte) int {
	off := len(m.b)
	m.b = append(m.b, b...)
	return off
}

// Addresses of the built dumps.
const (
	ntBase    = 0xfffff80010000000
	ntSize    = 0x1046000
	ntStamp   = 0x0d8333e6 // with ntSize: 10.0.19041.804
	prcbVA    = 0xfffff80001000180
	prcb1VA   = 0xfffff80001100180
	eprocess  = 0xffffd00000100080
	ethread   = 0xffffd00000200080
	ethread2  = 0xffffd00000300080
	stackBase = 0xffffa00000008000 // limit: 0x6000 below
	kdbgVA    = ntBase + 0xc00b20
	contextVA = stackBase - 0x2000
	recordVA  = stackBase - 0x3000
)

// header64Bytes is a DUMP_HEADER64 as the kernel leaves it: filled with PAGE,
// then the fields that are written.
func header64Bytes(dumpType, code uint32, params [4]uint64) *bin {
	h := &bin{bytes.Repeat([]byte("PAGE"), 0x2000/4)}
	h.put(0, []byte("PAGEDU64"))
	h.u32(0x8, 15)
	h.u32(0xc, 19041)
	h.u64(0x10, 0x1aa002) // CR3 with a PCID
	h.u64(0x20, ntBase+0xc2a390)
	h.u64(0x28, ntBase+0xc1e200)
	h.u32(0x30, 0x8664)
	h.u32(0x34, 2)
	h.u32(0x38, code)
	for i, p := range params {
		h.u64(0x40+8*i, p)
	}
	h.u64(0x80, kdbgVA)
	h.u32(0xf98, dumpType)
	h.u64(0xfa8, 0x01d707f23dbb3399) // 2021-02-21 01:38:22.9877657 UTC
	h.u64(0x1030, 600*10_000_000)    // ten minutes
	h.u32(0x1040, 1)                 // VER_NT_WORKSTATION
	h.u32(0x1044, 0x110)
	return h
}

// amd64Context is a CONTEXT with flags CONTEXT_AMD64 | control | integer |
// segments.
func amd64Context(rip, rsp uint64) []byte {
	c := &bin{make([]byte, 0x4d0)}
	c.u32(0x30, 0x00100007)
	c.u16(0x38, 0x10)
	c.u16(0x42, 0x18)
	c.u32(0x44, 0x246)
	c.u64(0x90, 0xbbbb) // rbx
	c.u64(0x98, rsp)
	c.u64(0xa0, rsp+0x100)
	c.u64(0xf8, rip)
	return c.b
}

// kdbg64 carries the offsets that Windows 10 19041 x64 has.
func kdbg64() []byte {
	k := &bin{make([]byte, 0x380)}
	k.u32(0x10, 0x4742444b)
	k.u32(0x14, 0x380)
	k.u64(0x18, ntBase)
	k.u64(0x218, ntBase+0xcfdc80)
	for off, v := range map[int]uint16{0x298: 0x218, 0x29a: 0xf0, 0x29c: 0x58, 0x29e: 0x28, 0x2a0: 0xb8, 0x2a2: 0x184,
		0x2a8: 0xa40, 0x2aa: 0x550, 0x2ac: 0x540, 0x2ae: 0x28, 0x2b0: 0xaf00, 0x2b4: 8, 0x2b6: 0x44, 0x2b8: 0x40,
		0x2ba: 0x8590, 0x2be: 0x24, 0x2c0: 0x898, 0x2e6: 0x180, 0x338: 0x85c0, 0x350: 0x18, 0x35c: 0x283} {
		k.u16(off, v)
	}
	k.u32(0x340, 0x30)
	k.u32(0x344, 0x38)
	return k.b
}

func prcb64(number uint32, current, idle, context uint64) []byte {
	p := &bin{make([]byte, 0xaf00)}
	p.u64(8, current)
	p.u64(0x18, idle)
	p.u32(0x24, number)
	p.put(0x40, []byte{6, 0, 3, 0x9e}) // family 6, stepping 3, model 0x9e
	p.u32(0x44, 2400)
	p.u64(0x85c0, context)
	p.put(0x8590, []byte("GenuineIntel"))
	return p.b
}

func eprocess64(pid, parent uint64) []byte {
	e := &bin{make([]byte, 0xa40)}
	e.u8(0, 3)
	e.u64(0x28, 0x36795002)
	e.u64(0x440, pid)
	e.u64(0x448, eprocess+0x10000)
	e.u64(0x450, eprocess+0x20000)
	e.u64(0x468, 0x01d707f000000000)
	e.u64(0x540, parent)
	e.u64(0x550, 0x7ff000)
	e.put(0x5a8, []byte("ConsoleApp1.ex"))
	return e.b
}

type threadSpec struct {
	base        uint64 // stack base
	state       uint8
	kernelStack uint64
	teb         uint64
	trapFrame   uint64 // KTHREAD.TrapFrame
	pid, tid    uint64
}

func ethread64(s threadSpec) []byte {
	t := &bin{make([]byte, 0x898)}
	t.u8(0, 6)
	t.u64(0x28, s.base-0x370)
	t.u64(0x30, s.base-0x6000)
	t.u64(0x38, s.base)
	t.u64(0x58, s.kernelStack)
	t.u64(0x90, s.trapFrame)
	t.u64(0xb8, eprocess)
	t.u64(0xf0, s.teb)
	t.u8(0x184, s.state)
	t.u64(0x220, eprocess)
	t.u8(0x283, 6) // UserRequest
	t.u64(0x450, ntBase+0x1234)
	t.u64(0x478, s.pid)
	t.u64(0x480, s.tid)
	t.u64(0x4d0, 0x7ff600001000) // Win32StartAddress
	return t.b
}

// userTrapFrame puts the frame of a system call at off of a stack image.
func userTrapFrame(s *bin, off int, rip, rsp uint64) {
	s.u64(off+0x158, 0x1dc)
	s.u64(off+0x168, rip)
	s.u16(off+0x170, 0x33)
	s.u32(off+0x178, 0x246)
	s.u64(off+0x180, rsp)
	s.u16(off+0x188, 0x2b)
}

func switchFrame64(rbp, rip uint64) []byte {
	f := &bin{make([]byte, 0x40)}
	f.u64(0x30, rbp)
	f.u64(0x38, rip)
	return f.b
}

// driver64 is one entry of the driver list.
func driver64(nameOff int, base uint64, size, checkSum, stamp uint32) []byte {
	d := &bin{make([]byte, 0x90)}
	d.u32(0, uint32(nameOff))
	d.u64(0x38, base)
	d.u32(0x48, size)
	d.u32(0x80, checkSum)
	d.u32(0x88, stamp)
	return d.b
}

type block struct {
	va   uint64
	data []byte
}

// bugcheck64 builds a triage dump in the shape the bugcheck writer gives it: the
// header's copies, then the block table, then its data packed without alignment,
// TRGD, secondary data.
type bugcheck64 struct {
	header  *bin
	thread  []byte
	process []byte
	prcb    []byte
	stack   block
	blocks  []block
	blobs   []byte
}

func (s *bugcheck64) bytes() []byte {
	f := &bin{bytes.Clone(s.header.b)}
	f.grow(0x2080)
	slot := func(off int, data []byte) {
		if data != nil {
			f.u32(0x2000+off, uint32(f.append(data)))
		}
	}
	f.u32(0x200c, 0x348)
	f.u32(0x2010, 0xf00)
	slot(0x1c, s.prcb)
	slot(0x20, s.process)
	slot(0x24, s.thread)
	slot(0x28, s.stack.data)
	f.u32(0x202c, uint32(len(s.stack.data)))
	f.u64(0x2048, s.stack.va)
	slot(0x70, kdbg64())
	f.u32(0x2074, 0x380)
	f.unloaded64("dump_storpor", 0xfffff80030000000, 0xfffff80030033000)
	f.drivers64()
	table := len(f.b)
	f.u32(0x2078, uint32(table))
	f.u32(0x207c, uint32(len(s.blocks)))
	f.grow(table + 16*len(s.blocks))
	for i, b := range s.blocks {
		f.append([]byte{0xee}) // nothing is aligned
		off := f.append(b.data)
		f.u64(table+16*i, b.va)
		f.u32(table+16*i+8, uint32(off))
		f.u32(table+16*i+12, uint32(len(b.data)))
	}
	f.u32(0x2008, uint32(f.append([]byte("TRGD"))))
	f.u32(0x2004, uint32(len(f.b)))
	f.append(s.blobs)
	return f.b
}

func (m *bin) unloaded64(name string, start, end uint64) {
	off := m.append(make([]byte, 8+0x38))
	m.u32(0x2018, uint32(off))
	m.u64(off, 1)
	m.u16(off+8, uint16(2*len(name)))
	m.text(off+8+0x10, name)
	m.u64(off+8+0x28, start)
	m.u64(off+8+0x30, end)
}

// drivers64 writes nt and one driver; the second is also the broken one.
func (m *bin) drivers64() {
	names := []string{`\SystemRoot\system32\ntoskrnl.exe`, `\SystemRoot\System32\drivers\bad.sys`}
	list := m.append(make([]byte, 2*0x90))
	pool := len(m.b)
	for i, n := range names {
		off := len(m.b)
		m.u32(off, uint32(len(n)))
		m.text(off+4, n)
		m.u16(len(m.b), 0)
		m.grow((len(m.b) + 7) &^ 7)
		if i == 0 {
			m.put(list, driver64(off, ntBase, ntSize, 0xa5938c, ntStamp))
		} else {
			m.put(list+0x90, driver64(off, 0xfffff80020000000, 0x9000, 0, 0x60000000))
			m.u32(0x2040, uint32(off))
		}
	}
	m.u32(0x2030, uint32(list))
	m.u32(0x2034, 2)
	m.u32(0x2038, uint32(pool))
	m.u32(0x203c, uint32(len(m.b)-pool))
}

func openBytes(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)), "built.dmp")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wantNoDamage(t *testing.T, f *File) {
	t.Helper()
	for _, d := range f.Damage() {
		t.Errorf("damage: %v", d)
	}
}

// pcsp returns program counter and stack pointer; zeros when not known.
func pcsp(r *dump.Registers) [2]uint64 {
	pc, _ := r.PC()
	sp, _ := r.SP()
	return [2]uint64{pc, sp}
}
