package kdump

// vadForm is how a kernel lays out its virtual address descriptors (MMVAD_SHORT,
// and MMVAD for what is not private memory), their flags, and what they lead to.
// Offsets and bits are those of published type tables.
type vadForm struct {
	root                  int // of the pointer to the top node, from VadRoot on
	left, right           int
	first, last, number   int // StartingVpn, EndingVpn, and their size in bytes
	firstHigh, lastHigh   int // bits 32 to 39 of them, 0 none
	flags, flagsSize      int
	kind, protect         int // first bits of VadType (3) and Protection (5)
	private               int // bit of PrivateMemory, -1: another in another release of the build
	optional              int // bit of ZeroFillPagesOptional, from that of PrivateMemory on, 0 none
	charge, chargeBits    int // CommitCharge, in pages
	chargeHigh            int // its bits from 31 on, 0 none
	commit, commitBit     int // MemCommit: offset of the 32-bit word, and bit
	size                  int // of MMVAD_SHORT
	subsection            int // MMVAD
	firstPTE, lastPTE     int // FirstPrototypePte, LastContiguousPte
	area                  int // SUBSECTION: ControlArea
	base, next, ptes      int // SubsectionBase, NextSubsection, PtesInSubsection
	filePointer, fileMask int // CONTROL_AREA.FilePointer, the low bits of which count references
}

// vadForms are indexed by nt_vads.tsv.
var vadForms = [...]vadForm{
	1: { // Windows 7: one word of flags holds all
		root: 0x10, left: 8, right: 0x10, first: 0x18, last: 0x20, number: 8,
		flags: 0x28, flagsSize: 8, kind: 52, protect: 56, private: 63, charge: 0x28, chargeBits: 51, commit: 0x2c, commitBit: 23,
		size: 0x40, subsection: 0x48, firstPTE: 0x50, lastPTE: 0x58, base: 8, next: 0x10, ptes: 0x18, filePointer: 0x40, fileMask: 0xf,
	},
	2: vadForm64(0, 3, 15, 0), // 8.1 to 10 1709
	3: vadForm64(0, 3, 14, 0), // 10 1803 to 1909
	4: vadForm64(4, 7, 20, 3), // 10 2004 to 22H2
	5: vadForm64(4, 7, 21, 3), // 11 21H2 to 23H2
	6: vadForm64(4, 7, -1, 3), // Server 2022: as 4 or as 5
	7: vadFormMemCommit(),     // 11 24H2
	8: vadForm32(4, 7, 20, 3), // 10 2004 to 22H2, 32-bit
	9: { // 8: the table of Windows 7 in front of nodes like those of 8.1
		root: 0x10, left: 8, right: 0x10, first: 0x18, last: 0x1c, number: 4,
		flags: 0x28, flagsSize: 4, kind: 0, protect: 3, private: 15, charge: 0x2c, chargeBits: 31, commit: 0x2c, commitBit: 31,
		size: 0x40, subsection: 0x48, firstPTE: 0x50, lastPTE: 0x58, base: 8, next: 0x10, ptes: 0x18, filePointer: 0x40, fileMask: 0xf,
	},
	10: { // 7, 32-bit
		root: 8, left: 4, right: 8, first: 0xc, last: 0x10, number: 4,
		flags: 0x14, flagsSize: 4, kind: 20, protect: 24, private: 31, charge: 0x14, chargeBits: 19, commit: 0x14, commitBit: 23,
		size: 0x20, subsection: 0x24, firstPTE: 0x28, lastPTE: 0x2c, base: 4, next: 8, ptes: 0xc, filePointer: 0x24, fileMask: 7,
	},
	11: vadForm32(0, 3, 14, 0), // 10 1809, 32-bit
}

// vadForm32 is the form of 32-bit kernels of Windows 10.
func vadForm32(kind, protect, private, optional int) vadForm {
	return vadForm{
		left: 0, right: 4, first: 0xc, last: 0x10, number: 4,
		flags: 0x1c, flagsSize: 4, kind: kind, protect: protect, private: private, optional: optional, charge: 0x20, chargeBits: 31, commit: 0x20, commitBit: 31,
		size: 0x28, subsection: 0x2c, firstPTE: 0x30, lastPTE: 0x34, base: 4, next: 8, ptes: 0x1c, filePointer: 0x24, fileMask: 7,
	}
}

// vadForm64 is the form of 64-bit kernels since 8.1, which differ in the places of
// four flags.
func vadForm64(kind, protect, private, optional int) vadForm {
	return vadForm{
		left: 0, right: 8, first: 0x18, last: 0x1c, number: 4, firstHigh: 0x20, lastHigh: 0x21,
		flags: 0x30, flagsSize: 4, kind: kind, protect: protect, private: private, optional: optional,
		charge: 0x34, chargeBits: 31, chargeHigh: 0x22, commit: 0x34, commitBit: 31,
		size: 0x40, subsection: 0x48, firstPTE: 0x50, lastPTE: 0x58, base: 8, next: 0x10, ptes: 0x2c, filePointer: 0x40, fileMask: 0xf,
	}
}

// vadFormMemCommit: MemCommit has gone to the flags of private memory.
func vadFormMemCommit() vadForm {
	f := vadForm64(4, 7, 21, 3)
	f.chargeBits, f.commit, f.commitBit = 32, f.flags, 25
	return f
}

// VadType, MI_VAD_TYPE.
const (
	vadNormal = iota
	vadPhysical
	vadImage
	vadAWE
	vadWriteWatch
	vadLargePages
	vadRotate
	vadLargeSection
)

var vadKinds = [...]string{vadPhysical: "physical", vadAWE: "awe", vadWriteWatch: "write_watch", vadLargePages: "large_pages",
	vadRotate: "rotate_physical", vadLargeSection: "large_section"}

// Protections of the memory manager: three bits of access, two of how.
const (
	protectDecommit = 0x10 // of an entry: the page was committed and is no longer
	pageNoAccess    = 0x01
)

var (
	protectAccess = [8]uint32{pageNoAccess, 0x02, 0x10, 0x20, 0x04, 0x08, 0x40, 0x80}
	protectHow    = [4]uint32{0, 0x200, 0x100, 0x400} // PAGE_NOCACHE, PAGE_GUARD, PAGE_WRITECOMBINE
)

// pageProtection turns the memory manager's protection into PAGE_ flags.
func pageProtection(p uint64) uint32 {
	access := protectAccess[p&7]
	if access == pageNoAccess {
		return access
	}
	return access | protectHow[p>>3&3]
}
