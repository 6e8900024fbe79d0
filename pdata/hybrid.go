package pdata

import (
	"cmp"
	"encoding/binary"
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
	ranges []kindRange // ascending
	extra  directory
}

// kindRange is a range of code of one machine.
type kindRange struct {
	begin, end uint32
	arch       dump.Arch
}

// Hybrid reports whether the image holds code of two machines.
func (im *Image) Hybrid() bool { return im.hybrid() != nil }

// CodeArch returns the architecture of the code at an RVA: that of the image's
// headers, but in ARM64EC and ARM64X images what their code map says.
func (im *Image) CodeArch(rva uint32) dump.Arch {
	if h := im.hybrid(); h != nil {
		i := sort.Search(len(h.ranges), func(i int) bool { return h.ranges[i].end > rva })
		if i < len(h.ranges) && h.ranges[i].begin <= rva {
			return h.ranges[i].arch
		}
	}
	return dump.ArchOfMachine(im.h.id.Machine)
}

// hybrid returns what the metadata says, nil when there is none.
func (im *Image) hybrid() *hybrid {
	im.hybridOnce.Do(func() {
		if im.h.id.Machine == machineAMD64 || im.h.id.Machine == machineARM64 {
			im.chpe = im.readHybrid()
		}
	})
	return im.chpe
}

// readHybrid reads the metadata; anything that is not sound means that there is
// none, as in nearly all images.
func (im *Image) readHybrid() *hybrid {
	rva, ok := im.chpeRVA()
	if !ok {
		return nil
	}
	var b [chpeSize]byte
	if _, err := im.layout.read(b[:], rva); err != nil {
		return nil
	}
	c := cursor.New(b[:], chpeStream, -1)
	version, at, count := c.U32(), c.U32(), c.U32()
	c.Seek(chpeExtraTable)
	h := &hybrid{extra: directory{c.U32(), c.U32()}}
	if version == 0 || version > 0xff || count == 0 || count > maxCodeRanges || uint64(count)*codeRangeSize > uint64(im.layout.backed(at)) {
		return nil
	}
	table, err := readGrowing(im.layout, at, int(count)*codeRangeSize)
	if err != nil {
		return nil
	}
	c = cursor.New(table, chpeStream, -1)
	for range count {
		start, length := c.U32(), c.U32()
		r := kindRange{begin: start &^ codeKindMask, arch: dump.ARM64}
		if start&codeKindMask == codeKindAMD64 {
			r.arch = dump.AMD64
		}
		if r.end = r.begin + length; r.end > r.begin {
			h.ranges = append(h.ranges, r)
		}
	}
	slices.SortStableFunc(h.ranges, func(a, b kindRange) int { return cmp.Compare(a.begin, b.begin) })
	return h
}

// chpeRVA returns where the load configuration says that the metadata is. Its
// pointer is a virtual address: of the base in the headers, which the loader
// corrects when it moves an image, else of the place where the image is.
func (im *Image) chpeRVA() (rva uint32, ok bool) {
	d := im.h.dirs[dirLoadConfig]
	if d.rva == 0 {
		return 0, false
	}
	var b [loadConfigCHPE + pointerSize]byte
	if _, err := im.layout.read(b[:], d.rva); err != nil {
		return 0, false
	}
	c := cursor.New(b[:], "load configuration", -1)
	size := c.U32()
	c.Seek(loadConfigCHPE)
	pointer := c.U64()
	if size < uint32(len(b)) || pointer == 0 {
		return 0, false
	}
	bases := []uint64{im.imageBase()}
	if l, mapped := im.layout.(*mappedLayout); mapped {
		bases = append(bases, l.base)
	}
	for _, base := range bases {
		if off := pointer - base; pointer > base && off < uint64(im.h.id.SizeOfImage) {
			return uint32(off), true
		}
	}
	return 0, false
}

// imageBase reads ImageBase out of the optional header, 0 when it is not there.
func (im *Image) imageBase() uint64 {
	var b [8]byte
	if _, err := im.layout.read(b[:4], 0x3c); err != nil {
		return 0
	}
	nt := binary.LittleEndian.Uint32(b[:4])
	if _, err := im.layout.read(b[:], nt+coffHeaderSize+optionalImageOff); err != nil || nt > maxHeaderOffset {
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
