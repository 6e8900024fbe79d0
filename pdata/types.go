package pdata

// RuntimeFunction is one entry of an x64 exception directory. All three are
// RVAs; UnwindInfo bit 0 marks an indirect entry in the file, and never in a
// value that Lookup returns.
type RuntimeFunction struct {
	Begin, End uint32
	UnwindInfo uint32
}

// Op is an UNWIND_CODE operation of AMD64, with the values of the format.
type Op uint8

// The operations, by their names in the public documentation.
const (
	PushNonvol    Op = 0  // UWOP_PUSH_NONVOL
	AllocLarge    Op = 1  // UWOP_ALLOC_LARGE
	AllocSmall    Op = 2  // UWOP_ALLOC_SMALL
	SetFPReg      Op = 3  // UWOP_SET_FPREG
	SaveNonvol    Op = 4  // UWOP_SAVE_NONVOL
	SaveNonvolFar Op = 5  // UWOP_SAVE_NONVOL_FAR
	Epilog        Op = 6  // UWOP_EPILOG, version 2
	Spare         Op = 7  // UWOP_SPARE_CODE
	SaveXMM128    Op = 8  // UWOP_SAVE_XMM128
	SaveXMM128Far Op = 9  // UWOP_SAVE_XMM128_FAR
	PushMachFrame Op = 10 // UWOP_PUSH_MACHFRAME
)

// Unwind info flags.
const (
	FlagEHandler  = 1 // UNW_FLAG_EHANDLER
	FlagUHandler  = 2 // UNW_FLAG_UHANDLER
	FlagChainInfo = 4 // UNW_FLAG_CHAININFO
)

// UnwindCode is one decoded operation. Value is already scaled to bytes.
type UnwindCode struct {
	PrologOffset uint8  // offset of the end of the instruction in the prolog
	Op           Op     //
	Info         uint8  // register number, or for PushMachFrame 1 with an error code
	Value        uint32 // allocation size, or offset of a save from the frame base
}

// EpilogV2 is one epilog that version 2 information describes.
type EpilogV2 struct {
	// FromEnd is the distance in bytes from the function's End back to the
	// epilog's first pop (or its return where it pops nothing).
	FromEnd uint32
}

// UnwindInfo is a decoded UNWIND_INFO. It is shared: do not change it.
type UnwindInfo struct {
	Version       uint8
	Flags         uint8         // Flag values; the rest as found
	SizeOfProlog  uint16        // 8 bits but for version 3
	FrameRegister uint8         // by the processor's numbering, 0 none
	FrameOffset   uint32        // bytes
	Codes         []UnwindCode  // in file order: last instruction of the prolog first; no Epilog or Spare
	EpilogSize    uint8         // version 2: bytes of every epilog
	Epilogs       []EpilogV2    // version 2, in file order
	V3            *UnwindInfoV3 // version 3, which has it for the frame register, codes and epilogs; else nil
	Handler       uint32        // RVA of the language handler, 0 none
	Chain         RuntimeFunction
	Chained       bool
	Unaligned     bool // not on the 4-byte boundary that the format demands
}
