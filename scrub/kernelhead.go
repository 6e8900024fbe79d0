package scrub

import (
	"maps"
	"slices"

	"dumptriage/dump"
	"dumptriage/report/codes"
)

// kernelHeader places what a header of a kernel dump has (DUMP_HEADER32 and
// DUMP_HEADER64, and TRIAGE_DUMP32 and TRIAGE_DUMP64 behind them).
type kernelHeader struct {
	size                   int
	parameters, pointer    int // of the bugcheck, and bytes of one
	context, contextSize   int
	dumpType, required     int
	comment, version       int
	reserved               [][2]int // begin and end of what nothing is known of
	triageSize             int
	dataPage, kdbg, blocks int // offsets in the triage header, of an offset and a size or count
	driverSize             int
}

var kernelHeader64 = kernelHeader{size: 0x2000, parameters: 0x40, pointer: 8, context: 0x348, contextSize: 3000, dumpType: 0xf98, required: 0xfa0,
	comment: 0xfb0, version: 0x60, reserved: [][2]int{{0x1058, 0x2000}},
	triageSize: 0x80, dataPage: 0x68, kdbg: 0x70, blocks: 0x78, driverSize: 0x90}

var kernelHeader32 = kernelHeader{size: 0x1000, parameters: 0x2c, pointer: 4, context: 0x320, contextSize: 1200, dumpType: 0xf88, required: 0xfa0,
	comment: 0x820, version: 0x3c, reserved: [][2]int{{0x8a0, 0xf88}, {0xfc8, 0x1000}},
	triageSize: 0x68, dataPage: 0x50, kdbg: 0x58, blocks: 0x60, driverSize: 0x4c}

const commentSize, versionSize = 128, 32

// Fields of the triage header that are the same in both.
const (
	triageSizeOfDump   = 0x04
	triageValid        = 0x08
	triageDrivers      = 0x30
	triageBrokenDriver = 0x40
	validMark          = 0x44475254 // "TRGD"
)

// header returns the dump's header without the comment, without the registers that no
// stack is unwound by, and without bytes that nothing is known of.
func (k *kernelFile) header(comment string) (record, *kernelHeader, error) {
	l := &kernelHeader64
	if k.src.Format() == dump.FormatKernel32 {
		l = &kernelHeader32
	}
	b := make(record, l.size)
	if _, err := k.in.File.ReadAt(b, 0); err != nil {
		return nil, nil, &dump.Error{Code: dump.IO, File: k.in.Path, Stream: "DUMP_HEADER", Offset: 0, Size: int64(l.size), Msg: "cannot be read", Err: err}
	}
	for _, r := range l.reserved {
		clear(b[r[0]:r[1]])
	}
	clear(b[l.version : l.version+versionSize])
	clear(b[l.comment : l.comment+commentSize])
	copy(b[l.comment:l.comment+commentSize-1], comment)
	k.reduceContext(b[l.context : l.context+l.contextSize])
	k.hideSerials(b, l)
	return b, l, nil
}

// reduceContext clears all of a CONTEXT but the registers that layouts places, and says
// so in its flags.
func (k *kernelFile) reduceContext(b record) {
	l := layouts[k.src.System().Arch]
	if l == nil {
		clear(b)
		return
	}
	old := slices.Clone(b)
	clear(b)
	const vectors = 0x8 | 0x20 | 0x40 // floating point, extended, XSTATE; of ARM64 4
	parts := uint64(le.Uint32(old[l.flagsAt:]))
	if parts &^= vectors; k.src.System().Arch == dump.ARM64 {
		parts &^= 4
	}
	b.put(l.flagsAt, 4, parts)
	for _, s := range l.slots {
		copy(b[s.off:s.off+s.size], old[s.off:s.off+s.size])
	}
}

// serials returns which parameters of the bugcheck are a part of a serial number.
func (k *kernelFile) serials() (is [4]bool, values []uint64) {
	bc := k.src.BugCheck()
	if bc == nil {
		return is, nil
	}
	params, _ := codes.BugCheckParams(bc.Code, bc.Parameters)
	for i, p := range params {
		if is[i] = p.Kind == codes.KindSerial && bc.Parameters[i] != 0; is[i] {
			values = append(values, bc.Parameters[i])
		}
	}
	return is, values
}

// hideSerials puts 1 in the place of a bugcheck's parameters that are a part of a serial
// number, and of the registers that they were passed by.
func (k *kernelFile) hideSerials(b record, l *kernelHeader) {
	is, values := k.serials()
	for i := range is {
		if is[i] {
			b.put(l.parameters+i*l.pointer, l.pointer, 1)
		}
	}
	regs := layouts[k.src.System().Arch]
	if regs == nil {
		return
	}
	c := b[l.context : l.context+l.contextSize]
	for _, s := range regs.slots {
		if s.size == l.pointer && slices.Contains(values, word(c[s.off:s.off+s.size])) {
			c.put(s.off, s.size, 1)
		}
	}
}

// hideContexts does so with copies of the registers, such as those that a processor keeps.
func (k *kernelFile) hideContexts() error {
	_, values := k.serials()
	if len(values) == 0 {
		return nil
	}
	size := k.registerSize()
	return k.eachWord(k.contexts, size, func(off int64, v uint64) {
		if slices.Contains(values, v) {
			mark(k.zeros, off, int(size))
			mark(k.ones, off, 1)
		}
	})
}

// registerSize is the size of a register of the kernel.
func (k *kernelFile) registerSize() int64 {
	if k.in.Format() == dump.FormatKernel32 {
		return 4
	}
	return registerSize
}

// eachWord calls fn with the words of the file whose first bytes are marked.
func (k *kernelFile) eachWord(marked map[int64]*pageUse, size int64, fn func(off int64, v uint64)) error {
	for _, number := range slices.Sorted(maps.Keys(marked)) {
		for i := range pageSize {
			if !marked[number].has(i) {
				continue
			}
			off, b := number*pageSize+int64(i), make([]byte, size)
			if n, err := k.in.File.ReadAt(b, off); n < len(b) {
				return &dump.Error{Code: dump.IO, File: k.in.Path, Offset: off, Size: size, Msg: "cannot be read", Err: err}
			}
			fn(off, word(b))
		}
	}
	return nil
}
