package scrub

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf16"

	"dumptriage/dump"
	"dumptriage/minidump"
)

var le = binary.LittleEndian

// record is a structure of the file, little-endian.
type record []byte

func (r record) put(off, size int, v uint64) {
	var b [8]byte
	le.PutUint64(b[:], v)
	copy(r[off:off+size], b[:])
}

// u32s puts 32-bit values from off on.
func (r record) u32s(off int, v ...uint32) {
	for i, x := range v {
		le.PutUint32(r[off+4*i:], x)
	}
}

func (r record) u64s(off int, v ...uint64) {
	for i, x := range v {
		le.PutUint64(r[off+8*i:], x)
	}
}

// Sizes of the structures of minidumpapiset.h.
const (
	headerSize    = 32
	directorySize = 12
	maxStreams    = 12

	systemInfoSize = 56
	miscInfoSize   = 24
	threadSize     = 48
	threadInfoSize = 64
	moduleSize     = 108
	unloadedSize   = 24
	regionSize     = 48
	exceptionSize  = 168
)

// writer builds a minidump: header and room for the directory first, then what
// streams point to, each before its stream.
type writer struct {
	buf     record
	streams []stream
}

type stream struct {
	kind, size, rva uint32
}

func newWriter() *writer { return &writer{buf: make(record, headerSize+maxStreams*directorySize)} }

// put appends bytes and returns where they are.
func (w *writer) put(b []byte) uint32 {
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0)
	}
	at := uint32(len(w.buf))
	w.buf = append(w.buf, b...)
	return at
}

// text appends a MINIDUMP_STRING.
func (w *writer) text(s string) uint32 {
	units := utf16.Encode([]rune(s))
	b := le.AppendUint32(nil, uint32(2*len(units)))
	for _, u := range append(units, 0) {
		b = le.AppendUint16(b, u)
	}
	return w.put(b)
}

func (w *writer) stream(kind uint32, b []byte) {
	w.streams = append(w.streams, stream{kind, uint32(len(b)), w.put(b)})
}

// finish writes header and directory.
func (w *writer) finish(captured time.Time) []byte {
	copy(w.buf, "MDMP")
	stamp := uint32(0)
	if u := captured.Unix(); !captured.IsZero() && u > 0 && u <= math.MaxUint32 {
		stamp = uint32(u)
	}
	w.buf.u32s(4, 0xa793, uint32(len(w.streams)), headerSize, 0, stamp)
	for i, s := range w.streams {
		w.buf.u32s(headerSize+i*directorySize, s.kind, s.size, s.rva)
	}
	return w.buf
}

// list appends records to a count.
func list[T any](items []T, size int, fill func(r record, item *T)) []byte {
	out := le.AppendUint32(nil, uint32(len(items)))
	for i := range items {
		r := make(record, size)
		fill(r, &items[i])
		out = append(out, r...)
	}
	return out
}

// table is a list whose header says the size of itself and of a record.
func table[T any](items []T, header, size int, fill func(r record, item *T)) []byte {
	out := make(record, header)
	out.u32s(0, uint32(header), uint32(size), uint32(len(items)))
	for i := range items {
		r := make(record, size)
		fill(r, &items[i])
		out = append(out, r...)
	}
	return out
}

var processors = map[dump.Arch]uint16{dump.X86: 0, dump.AMD64: 9, dump.ARM64: 12}

func (w *writer) system(s *dump.System) {
	const platformNT = 2
	pack := w.text(s.ServicePack)
	r := make(record, systemInfoSize)
	r.put(0, 2, uint64(processors[s.Arch]))
	r.put(2, 2, uint64(s.CPUFamily))
	r.put(4, 2, uint64(s.CPUModel<<8|s.CPUStepping&0xff))
	r.put(6, 1, uint64(s.CPUCount))
	r.put(7, 1, uint64(s.ProductType))
	r.u32s(8, s.Major, s.Minor, s.Build, platformNT, pack, uint32(s.SuiteMask))
	if s.Arch == dump.X86 {
		copy(r[32:44], s.CPUVendor)
	}
	w.stream(minidump.StreamSystemInfo, r)
}

func (w *writer) process(p *dump.Process) {
	if !p.HasPID {
		return
	}
	const hasPID, hasTimes = 1, 2
	r := make(record, miscInfoSize)
	r.u32s(0, miscInfoSize, hasPID, p.PID)
	if !p.Created.IsZero() || p.UserTime != 0 || p.KernelTime != 0 {
		created := uint32(0)
		if u := p.Created.Unix(); u > 0 && u <= math.MaxUint32 {
			created = uint32(u)
		}
		r.u32s(4, hasPID|hasTimes)
		r.u32s(12, created, uint32(p.UserTime/time.Second), uint32(p.KernelTime/time.Second))
	}
	w.stream(minidump.StreamMiscInfo, r)
}

// threads writes stacks without bytes, as dumps with a Memory64List do: their
// bounds are facts, what lies in them is in that list.
func (w *writer) threads(all []dump.Thread, of func(*dump.Thread) *dump.Registers) {
	contexts := make([]record, len(all))
	at := make([]uint32, len(all))
	for i := range all {
		if contexts[i] = context(of(&all[i])); contexts[i] != nil {
			at[i] = w.put(contexts[i])
		}
	}
	i := -1
	w.stream(minidump.StreamThreadList, list(all, threadSize, func(r record, t *dump.Thread) {
		i++
		r.u32s(0, t.ID, t.SuspendCount, t.PriorityClass, t.Priority)
		r.u64s(16, t.TEB, t.StackLimit)
		r.u32s(32, uint32(min(t.StackBase-t.StackLimit, math.MaxUint32)), 0, uint32(len(contexts[i])), at[i])
	}))
}

// threadInfo writes when threads began and what they ran.
func (w *writer) threadInfo(all []dump.Thread) {
	var known []dump.Thread
	for _, t := range all {
		if t.Times != nil && t.Times.HasInfo {
			known = append(known, t)
		}
	}
	if len(known) == 0 {
		return
	}
	w.stream(minidump.StreamThreadInfoList, table(known, 12, threadInfoSize, func(r record, t *dump.Thread) {
		r.u32s(0, t.ID, t.Times.DumpFlags, t.Times.DumpError, t.Times.ExitStatus)
		r.u64s(16, filetime(t.Times.Created), filetime(t.Times.Exited), uint64(t.Times.Kernel/100), uint64(t.Times.User/100), t.StartAddress, 0)
	}))
}

// filetime is a time in units of 100 ns since 1601, 0 when it is not known.
func filetime(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.Unix()*1e7+int64(t.Nanosecond()/100)) + 116444736000000000
}

func (w *writer) names(all []dump.Thread) {
	var named []dump.Thread
	for _, t := range all {
		if t.Name != "" {
			named = append(named, t)
		}
	}
	if len(named) == 0 {
		return
	}
	w.stream(minidump.StreamThreadNames, list(named, 12, func(r record, t *dump.Thread) {
		r.u32s(0, t.ID)
		r.put(4, 8, uint64(w.text(t.Name)))
	}))
}

// modules writes base names; the folders that they were in tell of people.
func (w *writer) modules(all []dump.Module) {
	w.stream(minidump.StreamModuleList, list(all, moduleSize, func(r record, m *dump.Module) {
		r.u64s(0, m.Base)
		r.u32s(8, uint32(min(m.Size, math.MaxUint32)), m.CheckSum, m.TimeDateStamp, w.text(m.Name()))
		if m.Version != (dump.FileVersion{}) || m.Product != (dump.FileVersion{}) {
			const magic, version = 0xfeef04bd, 0x10000
			v := func(hi, lo uint16) uint32 { return uint32(hi)<<16 | uint32(lo) }
			r.u32s(24, magic, version, v(m.Version[0], m.Version[1]), v(m.Version[2], m.Version[3]), v(m.Product[0], m.Product[1]), v(m.Product[2], m.Product[3]))
		}
		if cv := codeView(&m.CodeView); cv != nil {
			r.u32s(76, uint32(len(cv)), w.put(cv))
		}
	}))
}

// codeView encodes a debug identity with the base name of the PDB.
func codeView(cv *dump.CodeView) []byte {
	b := []byte(cv.Signature)
	switch cv.Signature {
	case "RSDS":
		b = append(b, cv.GUID[:]...)
	case "NB10":
		b = le.AppendUint32(le.AppendUint32(b, 0), cv.Stamp)
	default:
		return nil
	}
	b = le.AppendUint32(b, cv.Age)
	return append(append(b, dump.BaseName(cv.PDB)...), 0)
}

func (w *writer) unloaded(all []dump.Module) {
	if len(all) == 0 {
		return
	}
	w.stream(minidump.StreamUnloadedModuleList, table(all, 12, unloadedSize, func(r record, m *dump.Module) {
		r.u64s(0, m.Base)
		r.u32s(8, uint32(min(m.Size, math.MaxUint32)), m.CheckSum, m.TimeDateStamp, w.text(m.Name()))
	}))
}

func (w *writer) exception(e *dump.Exception) {
	if e == nil {
		return
	}
	r := make(record, exceptionSize)
	r.u32s(0, e.ThreadID)
	r.u32s(8, e.Code, e.Flags)
	r.u64s(16, e.Record, e.Address)
	r.u32s(32, uint32(len(e.Parameters)))
	r.u64s(40, e.Parameters...)
	if c := context(&e.Context); c != nil {
		r.u32s(160, uint32(len(c)), w.put(c))
	}
	w.stream(minidump.StreamException, r)
}

func (w *writer) regions(all []dump.Region) {
	if len(all) == 0 {
		return
	}
	out := make(record, 16)
	out.u32s(0, 16, regionSize)
	out.u64s(8, uint64(len(all)))
	for i := range all {
		g, r := &all[i], make(record, regionSize)
		r.u64s(0, g.Base, g.AllocationBase)
		r.u32s(16, g.AllocProtect)
		r.u64s(24, g.Size)
		r.u32s(32, g.State, g.Protect, g.Type)
		out = append(out, r...)
	}
	w.stream(minidump.StreamMemoryInfoList, out)
}

// functionTables writes the tables of code made at run time with the given entries,
// without the operating system's own descriptors.
func (w *writer) functionTables(all []functionTable) {
	if len(all) == 0 {
		return
	}
	const header, descriptor = 24, 32
	out := make(record, header)
	out.u32s(0, header, descriptor, 0, uint32(all[0].size), uint32(len(all)), 0)
	for i := range all {
		t, r := &all[i], make(record, descriptor)
		r.u64s(0, t.min, t.max, t.base)
		r.u32s(24, uint32(len(t.entries)/t.size), 0)
		out = append(append(out, r...), t.entries...)
	}
	w.stream(minidump.StreamFunctionTable, out)
}

// memory writes the memory, last in the file since its bytes follow its list.
func (w *writer) memory(all []block) {
	out := make(record, 16)
	for _, b := range all {
		r := make(record, 16)
		r.u64s(0, b.va, uint64(len(b.data)))
		out = append(out, r...)
	}
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0)
	}
	out.u64s(0, uint64(len(all)), uint64(len(w.buf)+len(out)))
	w.stream(minidump.StreamMemory64List, out)
	for _, b := range all {
		w.buf = append(w.buf, b.data...)
	}
}
