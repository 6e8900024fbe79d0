package pdb

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
)

// FrameData describes how to unwind an x86 function, or a part of one: either
// by a program in postfix notation, or by the fields of an FPO record.
type FrameData struct {
	RVA           uint32 // in the image as loaded
	Size          uint32 // bytes of code
	LocalSize     uint32 // bytes of local variables
	ParamSize     uint32 // bytes of parameters that the callee takes off
	MaxStack      uint32 // largest depth of pushed values, 0 when not known
	PrologSize    uint32
	SavedRegsSize uint32 // bytes of saved registers
	HasSEH        bool
	HasEH         bool
	FunctionStart bool
	UsesEBP       bool   // FPO: ebp is saved and used by the function
	Program       string // FrameData: such as "$T0 .raSearch = $eip $T0 ^ = ..."; "" for FPO
	FPO           FPOKind
}

// FPOKind is the kind of an FPO record.
type FPOKind uint8

// The kinds of FPO records.
const (
	FPONone     FPOKind = iota // the description is a FrameData program
	FPOFrame                   // no frame pointer
	FPOTrap                    // a trap frame
	FPOTSS                     // a task gate
	FPONonFrame                // FRAME_NONFPO: an ordinary frame with ebp
)

const (
	frameDataSize = 32
	fpoSize       = 16
)

// frameRecord is a record of either stream, by address of the image as linked.
type frameRecord struct {
	start, end uint32
	maxEnd     uint32
	data       FrameData
	program    uint32 // offset in /names
}

// frameTable holds the frame data of an image, programs first.
type frameTable struct{ program, fpo []frameRecord }

func (f *File) readFrames() *frameTable {
	return &frameTable{program: f.readFrameData(), fpo: f.readFPO()}
}

func (f *File) readFrameData() []frameRecord {
	s := f.debugStream(debugNewFPO)
	if s == nil {
		return nil
	}
	c, err := s.cursor(0, s.size, "FrameData")
	if err != nil {
		f.note(err)
		return nil
	}
	if c.Left()%frameDataSize == 4 {
		c.U32() // the object file's form begins with a relocation
	}
	out := make([]frameRecord, 0, c.Left()/frameDataSize)
	for c.Left() >= frameDataSize {
		var d FrameData
		rva := c.U32()
		d.Size, d.LocalSize, d.ParamSize, d.MaxStack = c.U32(), c.U32(), c.U32(), c.U32()
		program := c.U32()
		d.PrologSize, d.SavedRegsSize = uint32(c.U16()), uint32(c.U16())
		flags := c.U32()
		d.HasSEH, d.HasEH, d.FunctionStart = flags&1 != 0, flags&2 != 0, flags&4 != 0
		out = appendFrame(out, rva, d, program)
	}
	if c.Left() > 0 {
		f.note(dump.Errorf(dump.Truncated, "FrameData", "ends with %d bytes of a record of %d", c.Left(), frameDataSize))
	}
	return sortFrames(out)
}

func (f *File) readFPO() []frameRecord {
	s := f.debugStream(debugFPO)
	if s == nil {
		return nil
	}
	c, err := s.cursor(0, s.size, "FPO")
	if err != nil {
		f.note(err)
		return nil
	}
	out := make([]frameRecord, 0, c.Left()/fpoSize)
	for c.Left() >= fpoSize {
		var d FrameData
		rva := c.U32()
		d.Size, d.LocalSize, d.ParamSize = c.U32(), c.U32()*4, uint32(c.U16())*4
		bits := uint32(c.U16())
		d.PrologSize, d.SavedRegsSize = bits&0xFF, bits>>8&7*4
		d.HasSEH, d.UsesEBP = bits>>11&1 != 0, bits>>12&1 != 0
		d.FPO = [...]FPOKind{FPOFrame, FPOTrap, FPOTSS, FPONonFrame}[bits>>14&3]
		d.FunctionStart = true
		out = appendFrame(out, rva, d, 0)
	}
	return sortFrames(out)
}

func appendFrame(out []frameRecord, rva uint32, d FrameData, program uint32) []frameRecord {
	if end := rva + d.Size; end > rva {
		out = append(out, frameRecord{start: rva, end: end, data: d, program: program})
	}
	return out
}

func sortFrames(list []frameRecord) []frameRecord {
	slices.SortStableFunc(list, func(a, b frameRecord) int { return cmp.Compare(a.start, b.start) })
	var top uint32
	for i := range list {
		top = max(top, list[i].end)
		list[i].maxEnd = top
	}
	return list
}

// findFrame returns the record with the latest start that covers an address: of
// the nested records of a function the one that holds there.
func findFrame(list []frameRecord, rva uint32) (*frameRecord, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].start > rva }) - 1
	for back := 0; i >= 0 && back < maxBack && list[i].maxEnd > rva; back++ {
		if rva < list[i].end {
			return &list[i], true
		}
		i--
	}
	return nil, false
}

// FrameData returns what the PDB says about unwinding from an address of the
// image as loaded. A program is preferred to an FPO record.
func (f *File) FrameData(rva uint32) (FrameData, bool) {
	if d, ok := f.FrameProgram(rva); ok {
		return d, true
	}
	return f.FPO(rva)
}

// FrameProgram is FrameData for programs alone.
func (f *File) FrameProgram(rva uint32) (FrameData, bool) { return f.frame(f.frames().program, rva) }

// FPO is FrameData for FPO records alone.
func (f *File) FPO(rva uint32) (FrameData, bool) { return f.frame(f.frames().fpo, rva) }

func (f *File) frame(list []frameRecord, rva uint32) (FrameData, bool) {
	source, ok := f.ToSource(rva)
	if !ok {
		return FrameData{}, false
	}
	r, ok := findFrame(list, source)
	if !ok {
		return FrameData{}, false
	}
	d := r.data
	d.RVA = r.start
	if start, ok := f.FromSource(r.start); ok {
		d.RVA = start
	}
	if d.FPO == FPONone {
		program, ok := f.names().at(r.program)
		if !ok {
			f.note(dump.Errorf(dump.OutOfRange, "/names", "has no frame program at %#x", r.program))
			return FrameData{}, false
		}
		d.Program = program
	}
	return d, true
}
