package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/pdata"
)

const (
	pageSize = 0x1000
	maxImage = 1 << 30
)

// image is a PE image and its function table.
type image struct {
	pe      *pdata.Image
	arch    dump.Arch
	base    uint64 // preferred
	size    int
	entries []pdata.RuntimeFunction
	parts   map[uint32]bool // ARM64 entries, by Begin, that continue a function
	goCode  bool            // Go's calling convention: no register but rsp and rbp is preserved
}

func openImage(path string) (*image, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pe, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		return nil, err
	}
	im := &image{pe: pe, size: int(pe.Identity().SizeOfImage+pageSize-1) &^ (pageSize - 1)}
	im.arch = dump.ArchOfMachine(pe.Identity().Machine)
	if im.arch != dump.AMD64 && im.arch != dump.ARM64 || im.size > maxImage {
		return nil, fmt.Errorf("%s is not an x64 or ARM64 image of a size that can be emulated", path)
	}
	im.goCode = bytes.Contains(b, []byte("\x00runtime.morestack_noctxt\x00"))
	return im, im.readHeaders()
}

// readHeaders finds the preferred base and reads the exception directory as it
// lies in the image: pdata's own reader is part of what is tested.
func (im *image) readHeaders() error {
	head := make([]byte, pageSize)
	n, _ := im.pe.ReadRVA(head, 0)
	head = head[:n]
	if n < 0x40 {
		return errors.New("headers are cut short")
	}
	optional := int(binary.LittleEndian.Uint32(head[0x3c:])) + 24
	if optional < 0 || optional+112+4*8 > n {
		return errors.New("headers are longer than a page")
	}
	im.base = binary.LittleEndian.Uint64(head[optional+24:])
	directory := head[optional+112+3*8:]
	rva, size := binary.LittleEndian.Uint32(directory), binary.LittleEndian.Uint32(directory[4:])
	if int64(size) > int64(im.size) {
		return errors.New("exception directory is larger than the image")
	}
	table := make([]byte, size)
	n, _ = im.pe.ReadRVA(table, rva)
	if im.arch == dump.ARM64 {
		im.readARM64Entries(table[:n])
		return nil
	}
	const entrySize = 12
	for b := range slices.Chunk(table[:n], entrySize) {
		if len(b) < entrySize {
			break
		}
		rf := pdata.RuntimeFunction{Begin: binary.LittleEndian.Uint32(b), End: binary.LittleEndian.Uint32(b[4:]), UnwindInfo: binary.LittleEndian.Uint32(b[8:])}
		if rf.End > rf.Begin {
			im.entries = append(im.entries, rf)
		}
	}
	return nil
}

// enterable reports whether a function can be entered where an entry begins:
// not in what continues another entry's function, by chained information or,
// as GCC's cold parts do, by codes that say the frame is there from the first
// instruction on.
func (im *image) enterable(rf pdata.RuntimeFunction) (info *pdata.UnwindInfo, ok bool) {
	got, found, err := im.pe.Lookup(rf.Begin)
	if err != nil || !found || got.Begin != rf.Begin { // an indirect entry continues another's function
		return nil, false
	}
	info, err = im.pe.UnwindInfo(got.UnwindInfo)
	if err != nil || info.Chained || info.SizeOfProlog == 0 && builds(info) {
		return nil, false
	}
	return info, true
}

// Where the emulated process keeps things. The stack is large enough for the
// largest frames that prologs allocate.
const (
	stackBase = 0x20_0000_0000
	stackSize = 8 << 20
	dataBase  = 0x30_0000_0000 // what pointers point to
	dataSize  = 0x20000
	callBase  = 0x5a5a_5a5a_0000 // the code that calls the function
	returnTo  = callBase + 0x800
	// outerReturn is where the caller returns to: a code address that a frame
	// pointer leads to, for an unwinder to mistake.
	outerReturn = callBase + 0xa00
	stubBase    = callBase + 0xc00 // translated instructions
	entrySP     = stackBase + stackSize - 0x8008
)

// process is the emulated memory, as a Space.
type process struct {
	im     *image
	module dump.Module
	code   []byte // the image as it is mapped
	stack  []byte
	data   []byte
	caller []byte
}

func newProcess(m *machine, im *image) (*process, error) {
	p := &process{im: im, module: dump.Module{Base: im.base, Size: uint64(im.size), Path: "image"}}
	for _, r := range []struct {
		b    *[]byte
		va   uint64
		size int
	}{{&p.code, im.base, im.size}, {&p.stack, stackBase, stackSize}, {&p.data, dataBase, dataSize}, {&p.caller, callBase, pageSize}} {
		b, err := m.mapMemory(r.va, r.size)
		if err != nil {
			return nil, err
		}
		*r.b = b
	}
	for rva := 0; rva < im.size; rva += pageSize {
		_, _ = im.pe.ReadRVA(p.code[rva:rva+pageSize], uint32(rva)) // what is not there stays zero
	}
	from := 0
	for rva := 0; rva <= im.size; rva += pageSize {
		if rva < im.size && im.pe.Executable(uint32(rva)) {
			continue
		}
		if from < rva {
			m.protect(im.base+uint64(from), rva-from)
		}
		from = rva + pageSize
	}
	trap, call := "\xcc", "\xe8\x00\x00\x00\x00"
	if im.arch == dump.ARM64 {
		trap, call = "\x00\x00\x20\xd4", "\x00\x00\x00\x94" // brk #0; bl
	}
	copy(p.caller, strings.Repeat(trap, pageSize/len(trap)))
	for _, to := range []int{returnTo, outerReturn} { // calls that are to be returned to
		copy(p.caller[to-callBase-len(call):], call)
	}
	return p, m.watch(stackBase, stackSize, dataBase+dataSize/2)
}

// ReadAt reads the emulated memory.
func (p *process) ReadAt(b []byte, va uint64) (int, error) {
	for _, r := range []struct {
		base uint64
		mem  []byte
	}{{stackBase, p.stack}, {p.im.base, p.code}, {callBase, p.caller}, {dataBase, p.data}} {
		if off := va - r.base; off < uint64(len(r.mem)) {
			n := copy(b, r.mem[off:])
			if n == len(b) {
				return n, nil
			}
			return n, &dump.MemoryError{VA: va + uint64(n), Size: len(b) - n}
		}
	}
	return 0, &dump.MemoryError{VA: va, Size: len(b)}
}

// Module returns the image's module.
func (p *process) Module(va uint64) (*dump.Module, bool) {
	if p.module.Contains(va) {
		return &p.module, true
	}
	return nil, false
}

// Image returns the image.
func (p *process) Image(va uint64) (*pdata.Image, uint64) {
	if p.module.Contains(va) {
		return p.im.pe, p.im.base
	}
	return nil, 0
}

// Executable says that outside the image only the caller is code.
func (p *process) Executable(va uint64) (executable, known bool) {
	return va-callBase < pageSize, true
}

func (p *process) word(va uint64) uint64 {
	var b [8]byte
	_, _ = p.ReadAt(b[:], va)
	return binary.LittleEndian.Uint64(b[:])
}
