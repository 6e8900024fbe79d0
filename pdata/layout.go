package pdata

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"sort"

	"dumptriage/dump"
)

// layout reads an image by RVA.
type layout interface {
	// read reads len(p) bytes and returns how many from rva on there were;
	// with fewer than len(p) the error says why.
	read(p []byte, rva uint32) (int, error)
	// backed returns how many bytes from rva on can hold data: for a file the
	// bytes that are in it, not the zeros that the loader adds.
	backed(rva uint32) uint32
	// offset returns where the byte at rva lies in the file, or -1.
	offset(rva uint32) int64
}

// region is a run of RVAs that comes from one run of file bytes, then zeros.
type region struct {
	rva, end uint64
	off      int64
	raw      uint64 // bytes in the file; the rest reads as zero
}

// fileLayout is an image file.
type fileLayout struct {
	r       io.ReaderAt
	size    int64
	regions []region // ascending, disjoint
}

// newFileLayout maps RVAs as the Windows loader does: headers, then sections
// whose raw offset is rounded down to a sector and whose size is rounded up to
// a page. An image with a section alignment below a page (drivers, old tools)
// is mapped as the file is, unless it is another system's.
func newFileLayout(r io.ReaderAt, size int64, h *headers) *fileLayout {
	l := &fileLayout{r: r, size: size}
	if h.sectionAlignment < pageSize && !foreign(h.id.Machine) {
		n := min(uint64(size), math.MaxUint32)
		l.regions = []region{{rva: 0, end: max(n, uint64(h.id.SizeOfImage)), raw: n}}
		return l
	}
	l.regions = append(l.regions, region{end: uint64(h.sizeOfHeaders), raw: uint64(h.sizeOfHeaders)})
	for _, s := range h.table {
		l.regions = append(l.regions, sectionRegion(s))
	}
	slices.SortStableFunc(l.regions, func(a, b region) int { return cmp.Compare(a.rva, b.rva) })
	for i := range l.regions {
		g := &l.regions[i]
		if i+1 < len(l.regions) {
			g.end = min(g.end, l.regions[i+1].rva)
		}
		g.end = max(g.rva, min(g.end, math.MaxUint32))
		g.raw = min(g.raw, g.end-g.rva)
	}
	return l
}

// foreign reports whether a machine is one that .NET writes into code compiled ahead
// of time for other systems: Windows' number with bits of that system flipped
// (PE Format of .NET, "ManagedNativeHeader"). Their own loader goes by sections.
func foreign(machine uint16) bool {
	const linux, apple, freeBSD, netBSD, sunOS = 0x7b79, 0x4644, 0xadc4, 0x1993, 0x1992
	for _, system := range []uint16{linux, apple, freeBSD, netBSD, sunOS} {
		switch machine ^ system {
		case machineAMD64, machineARM64, 0x14c, 0x1c4: // x86, ARM
			return true
		}
	}
	return false
}

func sectionRegion(s sectionHeader) region {
	extent := uint64(s.virtualSize)
	if extent == 0 {
		extent = uint64(s.rawSize)
	}
	g := region{rva: uint64(s.rva), end: uint64(s.rva) + roundUp(extent, pageSize), off: int64(s.rawOff &^ (sectorSize - 1))}
	if s.rawOff != 0 {
		g.raw = uint64(s.rawSize)
	}
	return g
}

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// find returns the index of the region that holds rva.
func (l *fileLayout) find(rva uint64) (int, bool) {
	i := sort.Search(len(l.regions), func(i int) bool { return l.regions[i].end > rva })
	return i, i < len(l.regions) && l.regions[i].rva <= rva
}

func (l *fileLayout) backed(rva uint32) uint32 {
	i, ok := l.find(uint64(rva))
	if !ok {
		return 0
	}
	g := l.regions[i]
	skip := uint64(rva) - g.rva
	inFile := int64(g.raw)
	inFile = min(inFile, l.size-g.off)
	return uint32(max(0, inFile-int64(skip)))
}

func (l *fileLayout) offset(rva uint32) int64 {
	i, ok := l.find(uint64(rva))
	if !ok || uint64(rva)-l.regions[i].rva >= l.regions[i].raw {
		return -1
	}
	return l.regions[i].off + int64(uint64(rva)-l.regions[i].rva)
}

func (l *fileLayout) read(p []byte, rva uint32) (int, error) {
	done := 0
	for done < len(p) {
		at := uint64(rva) + uint64(done)
		i, ok := l.find(at)
		if !ok {
			return done, rvaError(dump.OutOfRange, at, len(p)-done, "RVA lies in no section")
		}
		n, err := l.readRegion(p[done:], at, l.regions[i])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// readRegion reads from at to the end of p or of the region.
func (l *fileLayout) readRegion(p []byte, at uint64, g region) (int, error) {
	p = p[:min(uint64(len(p)), g.end-at)]
	skip := at - g.rva
	if skip >= g.raw {
		clear(p)
		return len(p), nil
	}
	want := int(min(uint64(len(p)), g.raw-skip))
	n, err := l.r.ReadAt(p[:want], g.off+int64(skip))
	if n < want {
		e := rvaError(dump.Truncated, at+uint64(n), want-n, "section is cut short by the end of the file")
		e.Offset = g.off + int64(skip) + int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			e.Code, e.Msg, e.Err = dump.IO, "section cannot be read", err
		}
		return n, e
	}
	clear(p[want:])
	return len(p), nil
}

// rvaError places an error by RVA, which has a file offset only sometimes.
func rvaError(code dump.Code, rva uint64, size int, msg string) *dump.Error {
	e := dump.Errorf(code, "image", "%s (RVA %#x, %d bytes)", msg, rva, size)
	e.Size = int64(size)
	return e
}

// Watched reports whether somebody is told which bytes of the image are used: then
// nothing should be read ahead of need.
func (im *Image) Watched() bool {
	switch l := im.layout.(type) {
	case *mappedLayout:
		return dump.WatcherOf(l.mem) != nil
	case *fileLayout:
		w, ok := l.r.(interface{ Watched() bool })
		return ok && w.Watched()
	}
	return false
}

// mappedLayout is an image in memory.
type mappedLayout struct {
	mem  dump.Memory
	base uint64
	size uint32 // SizeOfImage
}

func (l *mappedLayout) backed(rva uint32) uint32 {
	if rva >= l.size {
		return 0
	}
	return l.size - rva
}

func (l *mappedLayout) offset(uint32) int64 { return -1 }

func (l *mappedLayout) read(p []byte, rva uint32) (int, error) {
	want := int(min(uint64(len(p)), uint64(l.backed(rva))))
	va := l.base + uint64(rva)
	if va < l.base || va+uint64(want) < va {
		return 0, rvaError(dump.OutOfRange, uint64(rva), len(p), "image wraps around the address space")
	}
	n, err := l.mem.ReadAt(p[:want], va)
	if n < want {
		e := rvaError(dump.Truncated, uint64(rva)+uint64(n), want-n, "image page is not in the dump")
		var me *dump.MemoryError
		if errors.As(err, &me) && me.Err != nil {
			e.Code, e.Err = dump.IO, err
		}
		return n, e
	}
	if want < len(p) {
		return n, rvaError(dump.OutOfRange, uint64(rva)+uint64(want), len(p)-want, "RVA lies beyond SizeOfImage")
	}
	return n, nil
}

// headerMemory reads the headers of a mapped image like a file.
type headerMemory struct {
	mem  dump.Memory
	base uint64
}

func (m headerMemory) ReadAt(p []byte, off int64) (int, error) {
	va := m.base + uint64(off)
	if off < 0 || va < m.base {
		return 0, io.EOF
	}
	n, err := m.mem.ReadAt(p, va)
	var me *dump.MemoryError
	if n < len(p) && (err == nil || errors.As(err, &me) && me.Err == nil) {
		err = io.EOF // the bytes are simply not there
	}
	return n, err
}
