package kdump

import (
	"encoding/binary"
	"slices"

	"dumptriage/dump"
)

// handBuilt is a computer's memory under construction: physical pages, and page
// tables written entry by entry. Offsets of the kernel's structures are written
// out where they are used.
type handBuilt struct {
	pages  map[uint64][]byte // by page frame
	next   uint64            // next free page frame
	levels int
}

func newMachine() *handBuilt {
	return &handBuilt{pages: map[uint64][]byte{}, next: 0x100, levels: 4}
}

// page returns a fresh physical page.
func (m *handBuilt) page() uint64 {
	m.next++
	m.pages[m.next] = make([]byte, 4096)
	return m.next << 12
}

func (m *handBuilt) entry(pa uint64) uint64 {
	return binary.LittleEndian.Uint64(m.pages[pa>>12][pa&0xfff:])
}

func (m *handBuilt) setEntry(pa, v uint64) {
	binary.LittleEndian.PutUint64(m.pages[pa>>12][pa&0xfff:], v)
}

// pte returns the physical address of the last-level entry of va, making the
// tables above it: bit 0 valid, 1 writable, 2 user, 5 accessed.
func (m *handBuilt) pte(root, va uint64) uint64 {
	table := root
	for level := m.levels; level > 1; level-- {
		at := table + (va>>(12+9*(level-1)))&0x1ff*8
		if m.entry(at) == 0 {
			m.setEntry(at, m.page()|0x27)
		}
		table = m.entry(at) & 0x000ffffffffff000
	}
	return table + va>>12&0x1ff*8
}

// write puts bytes at a virtual address, mapping the pages that are not yet.
func (m *handBuilt) write(root, va uint64, b []byte) {
	for len(b) > 0 {
		at := m.pte(root, va)
		if m.entry(at) == 0 {
			m.setEntry(at, m.page()|0x27)
		}
		page := m.pages[m.entry(at)&0x000ffffffffff000>>12]
		n := copy(page[va&0xfff:], b)
		va, b = va+uint64(n), b[n:]
	}
}

func (m *handBuilt) u64(root, va, v uint64) {
	m.write(root, va, binary.LittleEndian.AppendUint64(nil, v))
}

// bitmap writes the machine as a DumpType 5 file.
func (m *handBuilt) bitmap(h *bin) []byte {
	var frames []uint64
	for pfn := range m.pages {
		frames = append(frames, pfn)
	}
	slices.Sort(frames)
	bits := frames[len(frames)-1] + 1
	h.u32(0xf98, 5)
	h.put(0x2000, []byte("SDMPDUMP"))
	first := 0x2038 + int(bits/8+1)
	h.u64(0x2020, uint64(first))
	h.u64(0x2028, uint64(len(frames)))
	h.u64(0x2030, bits)
	h.grow(first)
	for _, pfn := range frames {
		h.b[0x2038+pfn/8] |= 1 << (pfn % 8)
	}
	for _, pfn := range frames {
		h.append(m.pages[pfn])
	}
	return h.b
}

// system is a machine with a kernel of build 19041, and what its dump must say.
type system struct {
	*handBuilt
	root   uint64 // of System, and of the kernel
	root2  uint64 // of the process that crashed
	header *bin
	kdbg   *bin
}

// Where things are in the system. The structures have the sizes that the table
// knows for 19041: ETHREAD 0x898, EPROCESS 0xa40.
const (
	sysModules  = ntBase + 0xc2a390
	sysProcs    = ntBase + 0xc1e200
	sysCIDVar   = ntBase + 0xcfc390
	sysPRCBList = ntBase + 0xd00000
	sysProcess  = 0xffffd00000100080 // System, pid 4
	appProcess  = 0xffffd00000110080 // notepad.exe, pid 0x1a2c
	sysThread   = 0xffffd00000200080 // 4.8, waiting
	appThread   = 0xffffd00000300080 // 1a2c.1b30, running on processor 0
	appThread2  = 0xffffd00000310080 // 1a2c.1b34, waiting
	sysStack    = 0xffffa00000008000
	appStack    = 0xffffa00000018000
	appStack2   = 0xffffa00000028000
	cidHandles  = 0xffffe00000001000
	appPEB      = 0x7ff600001000
	appBase     = 0x7ff700000000
	driverBase  = 0xfffff80020000000
)

// newSystem builds: nt and one driver, System with a thread and notepad.exe with
// two, their stacks with a switch frame each, and one processor.
func newSystem() *system {
	s := &system{handBuilt: newMachine()}
	s.root = s.page()
	s.root2 = s.page()
	s.kdbg = &bin{kdbg64()}
	k := s.kdbg
	k.u64(0x18, ntBase)
	k.u64(0x48, sysModules)
	k.u64(0x50, sysProcs)
	k.u64(0x58, sysCIDVar)
	k.u64(0x218, sysPRCBList)
	s.header = header64Bytes(5, 0xd1, [4]uint64{1, 2, 3, 4})
	s.header.u64(0x10, s.root2|2)
	s.header.u64(0x20, sysModules)
	s.header.u64(0x28, sysProcs)
	s.header.u32(0x34, 1)
	s.header.put(0x348, amd64Context(ntBase+0x1000, appStack-0x800))
	s.kernel()
	s.processes()
	s.userHalf()
	// The kernel's half is one: the app's top table has the same upper entries.
	for i := uint64(256); i < 512; i++ {
		s.setEntry(s.root2+8*i, s.entry(s.root+8*i))
	}
	return s
}

func (s *system) build() []byte {
	s.write(s.root, kdbgVA, s.kdbg.b)
	return s.bitmap(s.header)
}

func (s *system) ku64(va, v uint64) { s.u64(s.root, va, v) }

// list links heads and entries into a ring.
func (s *system) list(root uint64, vas ...uint64) {
	for i, va := range vas {
		next := vas[(i+1)%len(vas)]
		s.u64(root, va, next)
		s.u64(root, next+8, va)
	}
}

// unicode writes a UNICODE_STRING at va with its text at text.
func (s *system) unicode(root, va, text uint64, str string) {
	b := &bin{}
	b.text(0, str)
	s.write(root, text, b.b)
	s.u64(root, va, uint64(len(b.b))|uint64(len(b.b))<<16)
	s.u64(root, va+8, text)
}

// peHeader is an image's first page: MZ, PE at 0x80, stamp, size, checksum, and a
// debug directory at rva 0x400 with an RSDS record at 0x500.
func peHeader(stamp, size uint32, pdb string) []byte {
	h := &bin{}
	h.put(0, []byte("MZ"))
	h.u32(0x3c, 0x80)
	h.put(0x80, []byte("PE\x00\x00"))
	h.u16(0x84, 0x8664)
	h.u32(0x88, stamp)
	h.u16(0x98, 0x20b)
	h.u32(0xd0, size)
	h.u32(0xd8, 0xabcd) // CheckSum
	h.u32(0x104, 16)    // NumberOfRvaAndSizes
	h.u32(0x138, 0x400) // debug directory
	h.u32(0x13c, 0x1c)
	h.u32(0x40c, 2) // CodeView
	h.u32(0x410, uint32(24+len(pdb)+1))
	h.u32(0x414, 0x500)
	h.put(0x500, []byte("RSDS"))
	h.put(0x504, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	h.u32(0x514, 3)
	h.put(0x518, []byte(pdb+"\x00"))
	return h.b
}

// kernel writes the images, the module list and the processor's block.
func (s *system) kernel() {
	s.write(s.root, ntBase, peHeader(ntStamp, ntSize, "ntkrnlmp.pdb"))
	s.write(s.root, driverBase, peHeader(0x5ec0de, 0x8000, "fancy.pdb"))
	const entry1, entry2, text = 0xffffd00000001000, 0xffffd00000002000, 0xffffd00000003000
	s.list(s.root, sysModules, entry1, entry2)
	for i, m := range []struct {
		va, base, size uint64
		path           string
	}{{entry1, ntBase, ntSize, `\SystemRoot\system32\ntoskrnl.exe`}, {entry2, driverBase, 0x8000, `\??\C:\fancy.sys`}} {
		s.ku64(m.va+0x30, m.base)
		s.ku64(m.va+0x40, m.size)
		s.unicode(s.root, m.va+0x48, text+uint64(i)*0x200, m.path)
	}
	s.ku64(sysPRCBList, prcbVA)
	s.write(s.root, prcbVA, make([]byte, 0xaf00))
	s.ku64(prcbVA+8, appThread)
	s.ku64(prcbVA+0x20, 0) // Number at 0x24
}

// processes writes System and notepad.exe with their threads.
func (s *system) processes() {
	s.process(sysProcess, s.root, 4, 0, "System", 0)
	s.process(appProcess, s.root2, 0x1a2c, 0x4d0, "notepad.exe", appPEB)
	s.list(s.root, sysProcs, sysProcess+0x448, appProcess+0x448)
	s.thread(sysThread, sysProcess, 4, 8, sysStack, 5, 0)
	s.thread(appThread, appProcess, 0x1a2c, 0x1b30, appStack, 2, 0x7ff600010000)
	s.thread(appThread2, appProcess, 0x1a2c, 0x1b34, appStack2, 5, 0x7ff600020000)
	s.list(s.root, sysProcess+0x5e0, sysThread+0x4e8)
	s.list(s.root, appProcess+0x5e0, appThread+0x4e8, appThread2+0x4e8)
	// PspCidTable: a table of one level, entries of 16 bytes by id/4, the object's
	// address shifted left by 20 without its low four bits.
	s.ku64(sysCIDVar, cidHandles+0x2000)
	s.write(s.root, cidHandles, make([]byte, 0x3000))
	s.ku64(cidHandles+0x2008, cidHandles|1)
	s.ku64(cidHandles, cidHandles+0x1000)      // ids from 0
	s.ku64(cidHandles+8*6, 0xffffe00000010000) // ids from 0x1800
	s.write(s.root, 0xffffe00000010000, make([]byte, 4096))
	for id, va := range map[uint64]uint64{4: sysProcess, 8: sysThread, 0x1a2c: appProcess, 0x1b30: appThread, 0x1b34: appThread2} {
		page, first := uint64(cidHandles+0x1000), uint64(0)
		if id >= 0x1800 {
			page, first = 0xffffe00000010000, 0x1800
		}
		s.ku64(page+(id-first)/4*16, va>>4<<20|1)
	}
}

func (s *system) process(va, root, pid, parent uint64, name string, peb uint64) {
	b := &bin{make([]byte, 0xa40)}
	b.u8(0, 3)
	b.u64(8, va+8)
	b.u64(0x10, va+8)
	b.u64(0x28, root)
	b.u64(0x440, pid)
	b.u64(0x540, parent)
	b.u64(0x550, peb)
	b.put(0x5a8, []byte(name))
	b.u64(0x468, 0x01d707f1d0000000) // minutes before the dump
	s.write(s.root, va, b.b)
}

func (s *system) thread(va, process, pid, tid, stack uint64, state uint8, teb uint64) {
	b := &bin{make([]byte, 0x898)}
	b.u8(0, 6)
	b.u64(0x28, stack-0x400) // InitialStack
	b.u64(0x30, stack-0x6000)
	b.u64(0x38, stack)
	b.u64(0x58, stack-0x1000) // KernelStack
	b.u64(0xb8, process)
	b.u64(0xf0, teb)
	b.u8(0x184, state)
	b.u64(0x220, process)
	b.u64(0x478, pid)
	b.u64(0x480, tid)
	b.u8(0x283, 6) // UserRequest
	s.write(s.root, va, b.b)
	s.write(s.root, stack-0x6000, make([]byte, 0x6000))
	s.ku64(stack-0x1000+0x30, stack-0x900) // Rbp
	s.ku64(stack-0x1000+0x38, ntBase+0x2345)
	if teb == 0 {
		return
	}
	tf := stack - 0x400 - 0x190 // KTRAP_FRAME of the system call
	s.ku64(tf+0x158, 0x1dc)
	s.ku64(tf+0x168, appBase+0x1014)
	s.ku64(tf+0x170, 0x33)
	s.ku64(tf+0x178, 0x246)
	s.ku64(tf+0x180, teb-0x1000)
	s.ku64(tf+0x188, 0x2b)
}

// userHalf writes the PEB of notepad.exe, its one module and its parameters.
func (s *system) userHalf() {
	r := s.root2
	const ldr, entry, params = 0x7ff600002000, 0x7ff600003000, 0x7ff600004000
	s.write(r, appBase, peHeader(0x5eadbeef, 0x38000, "notepad.pdb"))
	s.u64(r, appPEB+0x18, ldr)
	s.u64(r, appPEB+0x20, params)
	s.u64(r, appPEB+0x2c0, 1) // SessionId
	s.list(r, ldr+0x10, entry)
	s.u64(r, entry+0x30, appBase)
	s.u64(r, entry+0x40, 0x38000)
	s.unicode(r, entry+0x48, 0x7ff600005000, `C:\Windows\System32\notepad.exe`)
	s.unicode(r, params+0x70, 0x7ff600005200, `"C:\Windows\System32\notepad.exe" C:\notes.txt`)
	env := &bin{}
	env.text(0, "Path=C:\\Windows\x00TEMP=C:\\Temp\x00\x00behind the end\x00")
	s.u64(r, params+0x80, 0x7ff600006000)
	s.write(r, 0x7ff600006000, env.b)
	s.write(r, 0x7ff60000f000, make([]byte, 0x1000)) // the stack of appThread
}

// names returns what of each process a test compares.
func names(ps []dump.Process) (out []string) {
	for i := range ps {
		out = append(out, ps[i].Name)
	}
	return out
}
