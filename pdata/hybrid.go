package pdata

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// ARM64EC and ARM64X images hold ARM64 and x64 code side by side. Their load
// configuration leads to the metadata that says which range is which and where the
// second function table is: the exception directory is that of the machine that the
// headers name, the extra table that of the other. The layouts are those of
// IMAGE_LOAD_CONFIG_DIRECTORY64 and IMAGE_ARM64EC_METADATA in the public SDK, and
// what LLVM's linker writes.
const (
	loadConfigCHPE   = 0xc8 // CHPEMetadataPointer, a virtual address
	chpeStream       = "CHPE metadata"
	chpeSize         = 0x48
	chpeExtraTable   = 0x40
	maxCodeRanges    = 1 << 16
	codeRangeSize    = 8
	codeKindMask     = 3
	codeKindAMD64    = 2 // 0 is ARM64, 1 ARM64EC
	pointerSize      = 8
	optionalImageOff = 24 // of ImageBase in IMAGE_OPTIONAL_HEADER64
)

// hybrid is what an image's CHPE metadata says.
type hybrid struct {
	ranges []kindRange // ascending, disjoint
	extra  directory
}

// kindRange is a range of code of one machine.
type kindRange struct {
	begin, end uint32
	arch       dump.Arch // unknown where ranges of both machines lie on each other
}

// Hybrid reports whether the image holds code of two machines.
func (im *Image) Hybrid() bool { return im.hybrid() != nil }

// CodeArch returns the architecture of the code at an RVA: that of the image's
// headers, but in ARM64EC and ARM64X images what their code map says. Where the map
// gives both, it is that of the only function table that knows the RVA, else of the
// headers.
func (im *Image) CodeArch(rva uint32) dump.Arch {
	own := dump.ArchOfMachine(im.h.id.Machine)
	r, ok := im.hybrid().at(rva)
	switch {
	case !ok:
		return own
	case r.arch != dump.ArchUnknown:
		return r.arch
	}
	_, amd64, _ := im.table().find(im.layout, rva)
	_, arm64, _ := im.LookupARM64(rva)
	switch {
	case amd64 && !arm64:
		return dump.AMD64
	case arm64 && !amd64:
		return dump.ARM64
	}
	return own
}

// CodeDisputed reports whether the code map says of an RVA that it is code of both
// machines, so that CodeArch had to choose.
func (im *Image) CodeDisputed(rva uint32) bool {
	r, ok := im.hybrid().at(rva)
	return ok && r.arch == dump.ArchUnknown
}

// at returns the range that holds an RVA.
func (h *hybrid) at(rva uint32) (kindRange, bool) {
	if h == nil {
		return kindRange{}, false
	}
	i := sort.Search(len(h.ranges), func(i int) bool { return h.ranges[i].end > rva })
	if i < len(h.ranges) && h.ranges[i].begin <= rva {
		return h.ranges[i], true
	}
	return kindRange{}, false
}

// Damage returns what is wrong with the parts of the image that were asked for and that
// no other answer would tell: of metadata of two machines' code. An image that has none
// is not damaged.
func (im *Image) Damage() []*dump.Error {
	im.hybrid()
	if e, ok := errors.AsType[*dump.Error](withFile(im.chpeErr, im.name)); ok {
		return []*dump.Error{e}
	}
	return nil
}

// hybrid returns what the metadata says, nil when there is none.
func (im *Image) hybrid() *hybrid {
	im.hybridOnce.Do(func() {
		if im.h.id.Machine == machineAMD64 || im.h.id.Machine == machineARM64 {
			im.chpe, im.chpeErr = im.readHybrid()
		}
	})
	return im.chpe
}

// readHybrid reads the metadata. Nearly all images have none. Metadata that is there
// and not sound is an error, and the image is then its headers' machine's alone; with
// ranges that lie on each other it comes with its error.
func (im *Image) readHybrid() (*hybrid, error) {
	rva, err := im.chpeRVA()
	if rva == 0 {
		return nil, err
	}
	var b [chpeSize]byte
	if _, err := im.layout.read(b[:], rva); err != nil {
		return nil, chpeError(dump.Truncated, rva, chpeSize, "cannot be read: code of a second machine is not known")
	}
	c := cursor.New(b[:], chpeStream, -1)
	version, at, count := c.U32(), c.U32(), c.U32()
	c.Seek(chpeExtraTable)
	h := &hybrid{extra: directory{c.U32(), c.U32()}}
	switch {
	case version == 0 || version > 0xff:
		return nil, chpeError(dump.UnsupportedFormat, rva, chpeSize, fmt.Sprintf("is of version %#x", version))
	case count == 0 || count > maxCodeRanges || uint64(count)*codeRangeSize > uint64(im.layout.backed(at)):
		return nil, chpeError(dump.BadCount, rva, chpeSize, fmt.Sprintf("%d ranges of code at %#x: more than there can be, or none", count, at))
	}
	table, err := readGrowing(im.layout, at, int(count)*codeRangeSize)
	if err != nil {
		return nil, chpeError(dump.Truncated, at, int64(count)*codeRangeSize, "the ranges of code cannot be read: code of a second machine is not known")
	}
	var all []kindRange
	c = cursor.New(table, chpeStream, -1)
	for range count {
		start, length := c.U32(), c.U32()
		r := kindRange{begin: start &^ codeKindMask, arch: dump.ARM64}
		if start&codeKindMask == codeKindAMD64 {
			r.arch = dump.AMD64
		}
		if r.end = r.begin + length; r.end > r.begin {
			all = append(all, r)
		}
	}
	h.ranges = disjoint(all)
	if i := slices.IndexFunc(h.ranges, func(r kindRange) bool { return r.arch == dump.ArchUnknown }); i >= 0 {
		r := &h.ranges[i]
		err = chpeError(dump.BadRecord, at, int64(count)*codeRangeSize, fmt.Sprintf("ranges of both machines' code hold %#x to %#x", r.begin, r.end))
	}
	return h, err
}

func chpeError(code dump.Code, rva uint32, size int64, msg string) error {
	return &dump.Error{Code: code, Stream: chpeStream, Offset: int64(rva), Size: size, Msg: msg}
}

// disjoint sweeps ranges into ascending ones that do not overlap. Where ranges of two
// machines do, the machine is not known.
func disjoint(all []kindRange) []kindRange {
	type edge struct {
		at    uint32
		arch  dump.Arch
		delta int
	}
	var edges []edge
	for _, r := range all {
		edges = append(edges, edge{r.begin, r.arch, 1}, edge{r.end, r.arch, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var out []kindRange
	open := map[dump.Arch]int{}
	for i, e := range edges {
		open[e.arch] += e.delta
		if i+1 == len(edges) || edges[i+1].at == e.at {
			continue
		}
		r := kindRange{begin: e.at, end: edges[i+1].at}
		switch amd64, arm64 := open[dump.AMD64] > 0, open[dump.ARM64] > 0; {
		case amd64 && !arm64:
			r.arch = dump.AMD64
		case arm64 && !amd64:
			r.arch = dump.ARM64
		case !amd64:
			continue
		}
		if n := len(out); n > 0 && out[n-1].end == r.begin && out[n-1].arch == r.arch {
			out[n-1].end = r.end
		} else {
			out = append(out, r)
		}
	}
	return out
}

// chpeRVA returns where the load configuration says that the metadata is, 0 when it
// tells of none. Its pointer is a virtual address: of the base in the headers, which the
// loader corrects when it moves an image, else of the place where the image is.
func (im *Image) chpeRVA() (uint32, error) {
	d := im.h.dirs[dirLoadConfig]
	if d.rva == 0 {
		return 0, nil
	}
	var b [loadConfigCHPE + pointerSize]byte
	if _, err := im.layout.read(b[:], d.rva); err != nil {
		return 0, nil // whether there is metadata is not known, and few images have any
	}
	c := cursor.New(b[:], "load configuration", -1)
	size := c.U32()
	c.Seek(loadConfigCHPE)
	pointer := c.U64()
	if size < uint32(len(b)) || pointer == 0 {
		return 0, nil
	}
	bases := []uint64{im.imageBase()}
	if l, mapped := im.layout.(*mappedLayout); mapped {
		bases = append(bases, l.base)
	}
	for _, base := range bases {
		if off := pointer - base; pointer > base && off < uint64(im.h.id.SizeOfImage) {
			return uint32(off), nil
		}
	}
	return 0, chpeError(dump.OutOfRange, d.rva, loadConfigCHPE+pointerSize, fmt.Sprintf("the pointer to it, %#x, leads out of the image: code of a second machine is not known", pointer))
}

// ImageBase returns the address that the image was linked for, or in memory the one
// it was loaded at; 0 when the header does not tell.
func (im *Image) ImageBase() uint64 {
	if dump.ArchOfMachine(im.h.id.Machine).PointerSize() == 4 {
		return im.imageBase() >> 32 // behind BaseOfData
	}
	return im.imageBase()
}

// imageBase reads ImageBase out of the optional header, 0 when it is not there.
func (im *Image) imageBase() uint64 {
	var b [8]byte
	if _, err := im.layout.read(b[:4], 0x3c); err != nil {
		return 0
	}
	nt := binary.LittleEndian.Uint32(b[:4])
	if nt > maxHeaderOffset {
		return 0
	}
	if _, err := im.layout.read(b[:], nt+coffHeaderSize+optionalImageOff); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// tableOf returns the function table of one machine's code: the exception
// directory, or an extra table.
func (im *Image) tableOf(machine uint16) directory {
	if im.h.id.Machine == machine {
		return im.h.dirs[dirException]
	}
	if h := im.hybrid(); h != nil {
		return h.extra
	}
	return directory{}
}
