package kdump

import (
	"dumptriage/dump"
)

// cidObjects are the objects of PspCidTable, the table in which process and
// thread ids are handles, by address.
type cidObjects struct {
	processes, threads map[uint64]uint32 // object to id
	how                string            // the form of the entries, "" when the table was not read
	whole              bool              // all of its pages were
}

// cidDecoder turns the first word of an entry into the object's address. Which
// one a kernel uses is found by trial.
type cidDecoder struct {
	name   string
	ptr    int
	object func(v uint64) uint64
}

const (
	cidHigh    = "bits 20 up" // Windows 8.1 on
	cidFive    = "bits 11 up" // with five levels of page tables
	cidPointer = "pointer"    // Windows 7, and 32-bit systems
)

var cidDecoders = []cidDecoder{
	{cidHigh, 8, func(v uint64) uint64 { return uint64(int64(v)>>20) << 4 }},
	{cidFive, 8, func(v uint64) uint64 { return uint64(int64(v)>>11) << 4 }}, // with five levels of page tables
	{cidPointer, 8, func(v uint64) uint64 { return v &^ 7 }},                 // Windows 7
	{cidPointer, 4, func(v uint64) uint64 { return v &^ 7 }},
}

const (
	cidStream = "PspCidTable"
	cidStep   = 4 // between two ids
	// maxCIDPages bounds the pages of entries that are read: maxID ids.
	maxCIDPages = maxID / cidStep / 256
	// maxCIDObjects bounds the objects that are looked at.
	maxCIDObjects = 1 << 20
)

// cidTable reads the table once.
func (f *File) cidTable() *cidObjects {
	f.full.objectsOnce.Do(f.readCIDTable)
	return &f.full.objects
}

// cidWalk is a walk through the table.
type cidWalk struct {
	f      *File
	decode *cidDecoder
	out    *cidObjects
}

func (f *File) readCIDTable() {
	f.full.objects = cidObjects{processes: map[uint64]uint32{}, threads: map[uint64]uint32{}}
	if f.kd == nil || !kernelAddress(f.hdr.ptr, f.kd.cidTable) {
		return
	}
	table, err := dump.ReadPointer(f.mem, f.hdr.arch, f.kd.cidTable)
	if err != nil || !kernelAddress(f.hdr.ptr, table) {
		return
	}
	w := &cidWalk{f: f, out: &f.full.objects}
	f.full.objects.whole = f.readTable(table, cidStream, func(low, _ uint64, id uint32) { w.entry(low, id) })
}

func (w *cidWalk) entry(v uint64, id uint32) {
	if w.decode != nil {
		w.add(w.decode.object(v), id)
		return
	}
	for i := range cidDecoders {
		d := &cidDecoders[i]
		if d.ptr == w.f.hdr.ptr && w.add(d.object(v), id) {
			w.decode, w.out.how = d, d.name
			return
		}
	}
}

// add notes an object that is a process or a thread.
func (w *cidWalk) add(va uint64, id uint32) bool {
	f := w.f
	if !kernelAddress(f.hdr.ptr, va) {
		return false
	}
	switch f.typeAt(va) {
	case objectProcess:
		if !f.isProcessAt(va) {
			return false
		}
		w.out.processes[va] = id
	case objectThread:
		if !f.isThreadAt(va) {
			return false
		}
		w.out.threads[va] = id
	default:
		return false
	}
	return true
}
