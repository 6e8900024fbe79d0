package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// cidObjects are the objects of PspCidTable, the table in which process and
// thread ids are handles, by address.
type cidObjects struct {
	processes, threads map[uint64]uint32 // object to id
	how                string            // the form of the entries, "" when the table was not read
}

// cidDecoder turns the first word of an entry into the object's address. Which
// one a kernel uses is found by trial.
type cidDecoder struct {
	name   string
	ptr    int
	object func(v uint64) uint64
}

var cidDecoders = []cidDecoder{
	{"bits 20 up", 8, func(v uint64) uint64 { return uint64(int64(v)>>20) << 4 }}, // Windows 8.1 on
	{"bits 11 up", 8, func(v uint64) uint64 { return uint64(int64(v)>>11) << 4 }}, // with five levels of page tables
	{"pointer", 8, func(v uint64) uint64 { return v &^ 7 }},                       // Windows 7
	{"pointer", 4, func(v uint64) uint64 { return v &^ 7 }},
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
	f       *File
	decode  *cidDecoder
	seen    map[uint64]bool // pages of entries
	pages   int
	objects int
	out     *cidObjects
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
	code := uint64(0)
	// HANDLE_TABLE.TableCode: the second field since Windows 8, the first before.
	for _, off := range []int{f.hdr.ptr, 0} {
		v, err := dump.ReadPointer(f.mem, f.hdr.arch, table+uint64(off))
		if err == nil && kernelAddress(f.hdr.ptr, v) && v&3 != 3 && v&^3%pageSize == 0 {
			code = v
			break
		}
	}
	if code == 0 {
		return
	}
	w := &cidWalk{f: f, seen: map[uint64]bool{}, out: &f.full.objects}
	w.table(code&^3, int(code&3), 0)
	if w.pages > maxCIDPages || w.objects > maxCIDObjects {
		f.damage(dump.Errorf(dump.Limit, cidStream, "larger than any system's: the rest is left out"))
	}
}

// table reads one page of the table: pointers to pages of the level below, or
// entries.
func (w *cidWalk) table(va uint64, level int, first uint32) {
	if w.seen[va] || w.pages > maxCIDPages || w.objects > maxCIDObjects {
		return
	}
	w.seen[va] = true
	page := make([]byte, pageSize)
	n, _ := w.f.mem.ReadAt(page, va)
	ptr := w.f.hdr.ptr
	c := cursor.New(page[:n], cidStream, -1)
	if level == 0 {
		w.pages++
		for i := uint32(0); c.Left() >= 2*ptr; i++ {
			v := c.Pointer(ptr)
			c.Skip(ptr)
			w.entry(v, first+i*cidStep)
		}
		return
	}
	below := uint32(pageSize / (2 * ptr) * cidStep) // ids of one page of the level below
	if level == 2 {
		below *= uint32(pageSize / ptr)
	}
	for i := uint32(0); c.Left() >= ptr; i++ {
		v := c.Pointer(ptr)
		if kernelAddress(ptr, v) && v%pageSize == 0 && first+i*below < maxID {
			w.table(v, level-1, first+i*below)
		}
	}
}

func (w *cidWalk) entry(v uint64, id uint32) {
	if v == 0 || id == 0 {
		return
	}
	if w.objects++; w.objects > maxCIDObjects || !w.f.spend(1) {
		return
	}
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
	var kind [1]byte
	if n, _ := f.mem.ReadAt(kind[:], va); n == 0 {
		return false
	}
	switch kind[0] & 0x7f {
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
