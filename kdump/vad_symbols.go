package kdump

// symbolVADForm makes a form of what the kernel's types say, nil unless they say all
// of it. Those of Windows 7 and 8, whose nodes are of another kind, are in the table.
func symbolVADForm(src Symbols, ptr int) *vadForm {
	q := &formQuery{src: src, ok: true}
	f := &vadForm{number: 4, flagsSize: 4, fileMask: 2*ptr - 1}
	node := q.field("_MMVAD_SHORT", "VadNode")
	f.left, f.right = node+q.field("_RTL_BALANCED_NODE", "Left"), node+q.field("_RTL_BALANCED_NODE", "Right")
	f.first, f.last = q.field("_MMVAD_SHORT", "StartingVpn"), q.field("_MMVAD_SHORT", "EndingVpn")
	if ptr == 8 {
		f.firstHigh, f.lastHigh = q.field("_MMVAD_SHORT", "StartingVpnHigh"), q.field("_MMVAD_SHORT", "EndingVpnHigh")
		f.chargeHigh = q.field("_MMVAD_SHORT", "CommitChargeHigh")
	}
	f.flags = q.field("_MMVAD_SHORT", "u")
	f.kind, f.protect, f.private = q.bits("_MMVAD_FLAGS", "VadType", 3), q.bits("_MMVAD_FLAGS", "Protection", 5), q.bits("_MMVAD_FLAGS", "PrivateMemory", 1)
	if bit, _, ok := src.Bits("_MM_PRIVATE_VAD_FLAGS", "ZeroFillPagesOptional"); ok && bit > f.private && bit < 32 {
		f.optional = bit - f.private
	}
	if u1, ok := src.Field("_MMVAD_SHORT", "u1"); ok && q.sane(u1) {
		f.charge, f.chargeBits, f.commit = u1, 31, u1
		if q.bits("_MMVAD_FLAGS1", "CommitCharge", 31) != 0 {
			return nil
		}
		f.commitBit = q.bits("_MMVAD_FLAGS1", "MemCommit", 1)
	} else {
		f.charge, f.chargeBits, f.commit = q.field("_MMVAD_SHORT", "CommitCharge"), 32, f.flags
		f.commitBit = q.bits("_MM_PRIVATE_VAD_FLAGS", "MemCommit", 1)
	}
	size, ok := src.Size("_MMVAD_SHORT")
	q.ok = q.ok && ok && q.sane(size-1)
	f.size = size
	f.subsection, f.firstPTE, f.lastPTE = q.field("_MMVAD", "Subsection"), q.field("_MMVAD", "FirstPrototypePte"), q.field("_MMVAD", "LastContiguousPte")
	f.area = q.field("_SUBSECTION", "ControlArea")
	f.base, f.next, f.ptes = q.field("_SUBSECTION", "SubsectionBase"), q.field("_SUBSECTION", "NextSubsection"), q.field("_SUBSECTION", "PtesInSubsection")
	f.filePointer = q.field("_CONTROL_AREA", "FilePointer")
	if !q.ok {
		return nil
	}
	return f
}

// formQuery asks for fields until one is not known.
type formQuery struct {
	src Symbols
	ok  bool
}

// sane reports whether a structure of the memory manager's can be so long.
func (q *formQuery) sane(off int) bool { return off >= 0 && off < 0x400 }

func (q *formQuery) field(structure, name string) int {
	off, ok := q.src.Field(structure, name)
	if q.ok = q.ok && ok && q.sane(off); !q.ok {
		return 0
	}
	return off
}

// bits returns the lowest bit of a field of a 32-bit word that must have a width.
func (q *formQuery) bits(structure, name string, width int) int {
	first, n, ok := q.src.Bits(structure, name)
	if q.ok = q.ok && ok && n == width && first >= 0 && first+n <= 32; !q.ok {
		return 0
	}
	return first
}
