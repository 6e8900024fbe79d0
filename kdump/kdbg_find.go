package kdump

import (
	"math/bits"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// findKDBG reads KDDEBUGGER_DATA64 of a full dump: at the header's address, as it
// stands or decoded, else wherever in the kernel's image it is.
func (f *File) findKDBG() {
	if f.hdr.kdbg.ok && f.takeKDBGAt(f.hdr.kdbg.v, "header", "header, decoded") {
		return
	}
	if f.symbolKDBG() || f.scanKDBG() || f.typesKDBG() || f.guessKDBG() {
		return
	}
	f.damage(dump.Errorf(dump.BadRecord, kdbgStream, "not found, neither at the header's address nor in the kernel's image: threads and processes cannot be listed"))
}

// KDBGFound says how the kernel's data block was found: "header", "header,
// decoded", "symbols", "symbols, decoded", "scan". When it was not, "types" says
// that the kernel's symbols stand in for it, "table" the layout of the build. ""
// is for triage dumps and when there is not even that.
func (f *File) KDBGFound() string { return f.kdbgHow }

// takeKDBGAt accepts the block at va as it stands or decoded.
func (f *File) takeKDBGAt(va uint64, plain, decoded string) bool {
	if !kernelAddress(f.hdr.ptr, va) {
		return false
	}
	b := make([]byte, kdbgMaximum)
	n, _ := f.mem.ReadAt(b, va)
	if f.takeKDBG(b[:n], plain) {
		return true
	}
	words := decodeKDBG(b[:n], f.kernelBase())
	return words != nil && f.takeKDBG(words, decoded)
}

// takeKDBG accepts a block that is one and that names this kernel.
func (f *File) takeKDBG(b []byte, how string) bool {
	k, err := parseKDBG(cursor.New(b, kdbgStream, -1), f.hdr.ptr)
	if err == nil {
		k.addOldLayout(f.hdr)
	}
	if err != nil || k.thread.size == 0 || k.process.size == 0 || !kernelAddress(f.hdr.ptr, k.kernBase) {
		return false
	}
	if base := f.kernelBase(); base != 0 && base != k.kernBase {
		return false
	}
	f.kd, f.kdbgHow = k, how
	return true
}

// kernelBase returns where the kernel's image is loaded: the first entry of the
// list of modules; 0 when that cannot be read.
func (f *File) kernelBase() uint64 {
	l := loaderOf(f.hdr.ptr)
	head := f.hdr.modules
	if !head.ok {
		return 0
	}
	entry, err := dump.ReadPointer(f.mem, f.hdr.arch, head.v)
	if err != nil {
		return 0
	}
	base, err := dump.ReadPointer(f.mem, f.hdr.arch, entry+uint64(l.base))
	if err != nil || !kernelAddress(f.hdr.ptr, base) || base%pageSize != 0 {
		return 0
	}
	return base
}

// decodeKDBG undoes the encoding of the block. Each 64-bit word is
// swap(rotate(word ^ never, never) ^ address) ^ always with three values that
// are constant for a boot, so the difference of two words depends on the
// rotation alone: one word that is known, KernBase, gives all others, and of the
// 64 rotations the right one is that which brings out the tag and a size. No
// symbols are needed. It returns nil when none does.
func decodeKDBG(b []byte, kernBase uint64) []byte {
	const baseWord, tagWord = 0x18 / 8, 0x10 / 8
	if kernBase == 0 {
		return nil
	}
	c := cursor.New(b, kdbgStream, -1)
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = c.U64()
	}
	if len(words) <= baseWord {
		return nil
	}
	plain := func(i, rotation int) uint64 {
		return kernBase ^ bits.ReverseBytes64(bits.RotateLeft64(words[i]^words[baseWord], rotation))
	}
	for rotation := range 64 {
		tag := plain(tagWord, rotation)
		if size := tag >> 32; uint32(tag) != kdbgTag || size < kdbgMinimum || size > kdbgMaximum || size%8 != 0 {
			continue
		}
		out := make([]byte, 0, len(b))
		for i := range words {
			out = appendWord(out, plain(i, rotation))
		}
		return out
	}
	return nil
}

func appendWord(b []byte, v uint64) []byte {
	for i := range 8 {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

// maxKernelImage bounds the image that is searched for the block: the largest
// kernels have some 20 MB.
const maxKernelImage = 64 << 20

// scanKDBG searches the kernel's image for the block: its tag, and its own base
// behind it.
func (f *File) scanKDBG() bool {
	base := f.kernelBase()
	if base == 0 {
		return false
	}
	const overlap, maxTags = 0x20, 256
	hits := 0
	b := make([]byte, pageSize+overlap)
	for off := uint64(0); off < maxKernelImage; off += pageSize {
		n := 0
		f.ahead(func() { n, _ = f.mem.ReadAt(b, base+off) })
		c := cursor.New(b[:n], kdbgStream, -1)
		for at := 0; at+overlap <= n; at += 8 {
			c.Seek(at + 0x10)
			if c.U32() != kdbgTag {
				continue
			}
			c.Seek(at + 0x18)
			if f.hdr.arch.Narrow(c.U64()) != base {
				continue
			}
			if hits++; hits > maxTags {
				return false
			}
			block := make([]byte, kdbgMaximum)
			m, _ := f.mem.ReadAt(block, base+off+uint64(at))
			if f.takeKDBG(block[:m], "scan") {
				return true
			}
		}
	}
	return false
}
