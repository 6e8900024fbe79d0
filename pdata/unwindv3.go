package pdata

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// UNWIND_INFO version 3, by Microsoft's "x64 unwind information v3", a preview
// specification dated May 2026: its header has the size of the older versions',
// behind it follow, packed, a payload of
//
//	a byte, the high one of SizeOfProlog, with FlagLarge
//	the instruction offsets of the prolog's operations, u8 or with FlagLarge u16
//	the epilogs: descriptor and instruction offsets
//	the pool of operations (WODs), 1 to 5 bytes each, the prolog's first
//
// and, aligned, the handler or the chained entry.

// FlagLarge is UNW_FLAG_LARGE of version 3: a prolog of more than 255 bytes.
const FlagLarge = 8

// OpV3 is an operation of version 3, with the values of the specification.
type OpV3 uint8

// The operations of version 3, by their names in the specification.
const (
	WODSetFPReg           OpV3 = 0
	WODAllocHuge          OpV3 = 1
	WODAllocLarge         OpV3 = 2
	WODPushCanonicalFrame OpV3 = 3
	WODPush               OpV3 = 4
	WODSaveNonvolFar      OpV3 = 5
	WODSaveNonvol         OpV3 = 6
	WODPushConsecutive2   OpV3 = 7
	WODAllocSmall         OpV3 = 8
	WODSaveXMM128Far      OpV3 = 9
	WODSaveXMM128         OpV3 = 10
	WODPush2              OpV3 = 32
)

// OperationV3 is one operation of a prolog or, by what it takes back, of an
// epilog.
type OperationV3 struct {
	IPOffset uint16 // of the start of its instruction in the fragment, or in the epilog
	Op       OpV3
	Reg      uint8  // register: 0 to 31 (r16 to r31 are APX's), 0 to 15 for SetFPReg and xmm
	Reg2     uint8  // register pushed second, by Push2 and PushConsecutive2
	Value    uint32 // bytes allocated; distance from rsp of a save or of the frame register; type of a canonical frame
}

// EpilogV3 is one epilog of a fragment.
type EpilogV3 struct {
	Offset     int32         // of its first instruction: from the fragment's Begin or, when negative, from its End
	Last       uint16        // offset in the epilog of its last instruction
	ToParent   bool          // ends with a jump into the parent fragment, whose frame stays
	Operations []OperationV3 // in the order of execution; may be shared with the epilog before
}

// Start returns the RVA of the epilog's first instruction. ok is false when it
// would lie outside the fragment.
func (e *EpilogV3) Start(rf RuntimeFunction) (rva uint32, ok bool) {
	at := int64(rf.Begin) + int64(e.Offset)
	if e.Offset < 0 {
		at = int64(rf.End) + int64(e.Offset)
	}
	if at < int64(rf.Begin) || at >= int64(rf.End) {
		return 0, false
	}
	return uint32(at), true
}

// UnwindInfoV3 is what version 3 has in place of codes.
type UnwindInfoV3 struct {
	Prolog  []OperationV3 // last instruction first
	Epilogs []EpilogV3    // in file order
}

// Bits of EPILOG_INFO_V3 flags.
const (
	epilogToParent = 1 // EPILOG_INFO_PARENT_FRAGMENT_TRANSFER
	epilogLarge    = 2 // EPILOG_INFO_LARGE
	epilogReserved = 4

	flagReservedV3 = 0x10
	countBits      = 31 // NumberOfOps in the low five bits of a byte
	registers      = 32
)

// decodeV3 reads what follows the first byte. A payload that its own counts
// overrun is a bad record, not a short file.
func (u *UnwindInfo) decodeV3(c *cursor.Cursor) error {
	u.SizeOfProlog = uint16(c.U8())
	words := int(c.U8())
	counts := c.U8()
	payload := c.Sub(2 * words)
	if err := c.Err(); err != nil {
		return err
	}
	if u.Flags&flagReservedV3 != 0 {
		c.Fail(dump.UnsupportedFormat, "version 3 unwind information with flags %#x, of which %#x is reserved", u.Flags, flagReservedV3)
		return c.Err()
	}
	u.V3 = new(UnwindInfoV3)
	u.decodePayload(payload, int(counts&countBits), int(counts>>5))
	if err := payload.Err(); err != nil {
		bad := *err.(*dump.Error)
		if bad.Code == dump.Truncated || bad.Code == dump.OutOfRange {
			bad.Code = dump.BadRecord
		}
		return &bad
	}
	if u.Flags&(FlagEHandler|FlagUHandler|FlagChainInfo) != 0 {
		c.Skip(2 * (words & 1)) // the trailer is aligned to four bytes
		u.decodeTrailer(c)
	}
	return c.Err()
}

// decodePayload reads the parts of the payload.
func (u *UnwindInfo) decodePayload(c *cursor.Cursor, ops, epilogs int) {
	large := u.Flags&FlagLarge != 0
	if large {
		u.SizeOfProlog |= uint16(c.U8()) << 8
	}
	u.V3.Prolog = ipOffsets(c, ops, large)
	var first []uint16 // of each epilog: where in the pool its operations begin
	for range epilogs {
		first = append(first, u.decodeEpilogV3(c, first))
	}
	pool := c.Sub(c.Left())
	decodePool(pool, u.V3.Prolog)
	for i := range u.V3.Epilogs {
		if i > 0 && u.V3.Epilogs[i].inherits(&u.V3.Epilogs[i-1]) {
			continue // shared, and decoded
		}
		pool.Seek(int(first[i]))
		decodePool(pool, u.V3.Epilogs[i].Operations)
	}
	if err, ok := pool.Err().(*dump.Error); ok {
		c.Fail(err.Code, "in the pool of operations: %s", err.Msg)
	}
}

// inherits reports whether an epilog took its operations from another.
func (e *EpilogV3) inherits(from *EpilogV3) bool {
	return len(e.Operations) > 0 && len(from.Operations) > 0 && &e.Operations[0] == &from.Operations[0]
}

// ipOffsets reads n instruction offsets.
func ipOffsets(c *cursor.Cursor, n int, large bool) []OperationV3 {
	if n == 0 {
		return nil
	}
	ops := make([]OperationV3, n) // at most 31
	for i := range ops {
		ops[i].IPOffset = shortOrLong(c, large)
	}
	return ops
}

func shortOrLong(c *cursor.Cursor, large bool) uint16 {
	if large {
		return c.U16()
	}
	return uint16(c.U8())
}

// decodeEpilogV3 reads one descriptor and returns where in the pool its
// operations begin. Without operations it inherits all but its place from the
// descriptor before.
func (u *UnwindInfo) decodeEpilogV3(c *cursor.Cursor, first []uint16) uint16 {
	b := c.U8()
	e := EpilogV3{Offset: int32(int16(c.U16()))}
	flags, ops := b&7, int(b>>3)
	if flags&epilogReserved != 0 {
		c.Fail(dump.UnsupportedFormat, "an epilog with flags %d, of which %d is reserved", flags, epilogReserved)
	}
	n := len(u.V3.Epilogs)
	if n > 0 {
		e.Offset = u.epilogAfter(c, e.Offset)
	}
	var at uint16
	switch {
	case ops > 0:
		e.ToParent = flags&epilogToParent != 0
		at = c.U16()
		e.Last = shortOrLong(c, flags&epilogLarge != 0)
		e.Operations = ipOffsets(c, ops, flags&epilogLarge != 0)
	case n > 0:
		before := &u.V3.Epilogs[n-1]
		e.ToParent, e.Last, e.Operations = before.ToParent, before.Last, before.Operations
		at = first[n-1]
	default:
		c.Fail(dump.BadRecord, "the first epilog has no operations, and none to inherit")
	}
	if e.ToParent && u.Flags&FlagChainInfo == 0 {
		c.Fail(dump.BadRecord, "an epilog leads to the parent of a fragment that has none")
	}
	u.V3.Epilogs = append(u.V3.Epilogs, e)
	return at
}

// epilogAfter adds the distance from the epilog before. All lie in one
// direction: ascending from the fragment's begin or descending from its end.
func (u *UnwindInfo) epilogAfter(c *cursor.Cursor, delta int32) int32 {
	before := u.V3.Epilogs[len(u.V3.Epilogs)-1].Offset
	if delta != 0 && (before < 0) != (delta < 0) {
		c.Fail(dump.BadRecord, "an epilog %d bytes from one at %d: the signs differ", delta, before)
	}
	return before + delta
}

// decodePool reads one operation for each of ops, which have their offsets.
func decodePool(c *cursor.Cursor, ops []OperationV3) {
	for i := range ops {
		ops[i].decode(c)
	}
}

// decode reads a WOD. Its low three bits tell the operation or, where they are
// below four, its low four or six or all eight bits.
func (o *OperationV3) decode(c *cursor.Cursor) {
	b := c.U8()
	switch low3, low4, low6 := OpV3(b&7), OpV3(b&15), OpV3(b&63); {
	case low3 >= WODPush:
		o.Op, o.Reg = low3, b>>3
		o.decodeRegister(c)
	case low4 >= WODAllocSmall && low4 <= WODSaveXMM128:
		o.Op, o.Reg = low4, b>>4
		o.decodeWide(c)
	case low6 == WODPush2:
		next := c.U8()
		o.Op, o.Reg, o.Reg2 = low6, b>>6|next&7<<2, next>>3
	case OpV3(b) <= WODPushCanonicalFrame:
		o.Op = OpV3(b)
		o.decodePlain(c)
	default:
		c.Fail(dump.BadRecord, "unknown operation %#x", b)
	}
}

// decodeRegister reads what follows the operations with a 5-bit register.
func (o *OperationV3) decodeRegister(c *cursor.Cursor) {
	switch o.Op {
	case WODPushConsecutive2:
		if o.Reg2 = o.Reg + 1; o.Reg2 == registers {
			c.Fail(dump.BadRecord, "WOD_PUSH_CONSECUTIVE_2 of r31 and the register behind it")
		}
	case WODSaveNonvol:
		o.Value = uint32(c.U16()) * 8
	case WODSaveNonvolFar:
		o.Value = c.U32()
	}
}

// decodeWide reads what follows the operations with four bits beside the code.
func (o *OperationV3) decodeWide(c *cursor.Cursor) {
	switch o.Op {
	case WODAllocSmall:
		o.Value, o.Reg = uint32(o.Reg)*8+8, 0
	case WODSaveXMM128:
		o.Value = uint32(c.U16()) * 16
	case WODSaveXMM128Far:
		o.Value = c.U32()
	}
}

// decodePlain reads what follows the operations of a whole byte.
func (o *OperationV3) decodePlain(c *cursor.Cursor) {
	switch o.Op {
	case WODSetFPReg:
		b := c.U8()
		o.Reg, o.Value = b&15, uint32(b>>4)*16
	case WODAllocHuge:
		o.Value = c.U32()
	case WODAllocLarge:
		o.Value = uint32(c.U16()) * 8
	case WODPushCanonicalFrame:
		o.Value = uint32(c.U8())
	}
}
