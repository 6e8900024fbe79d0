package kdump

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
)

// written is memory of a kernel from a base on, written word by word.
type written struct {
	base uint64
	b    []byte
}

func (w written) ReadAt(p []byte, va uint64) (int, error) {
	if va < w.base || va-w.base > uint64(len(w.b)) {
		return 0, &dump.MemoryError{VA: va, Size: len(p)}
	}
	return copy(p, w.b[va-w.base:]), nil
}

func (w written) u32(off int, v uint32) { binary.LittleEndian.PutUint32(w.b[off:], v) }
func (w written) u64(off int, v uint64) { binary.LittleEndian.PutUint64(w.b[off:], v) }

// TestPublishedVADForms writes descriptors as published type listings of kernels that
// no machine is built of have them: pages 0x400 to 0x43f of a file, and private memory
// to their right.
func TestPublishedVADForms(t *testing.T) {
	const base64, base32, execute = uint64(0xfffffa8001000000), uint64(0x85800000), 7
	for _, c := range []struct {
		name  string
		arch  dump.Arch
		build uint32
		sizes [2]int // of ETHREAD and EPROCESS
		root  int    // EPROCESS.VadRoot
		write func(w written)
	}{
		{"Windows 8, x64", dump.AMD64, 9200, [2]int{0x4d0, 0x660}, 0x590, func(w written) {
			w.u64(0x590+0x10, base64+0x800) // MM_AVL_TABLE.BalancedRoot.RightChild
			w.u64(0x800+0x10, base64+0x900) // MM_AVL_NODE.RightChild
			w.u32(0x800+0x18, 0x400)        // MMVAD_SHORT.StartingVpn, EndingVpn
			w.u32(0x800+0x1c, 0x43f)
			w.u32(0x800+0x28, 2|execute<<3) // VadFlags: VadType image, Protection
			w.u32(0x800+0x2c, 5)            // VadFlags1: CommitCharge
			w.u64(0x800+0x48, base64+0xa00) // MMVAD.Subsection
			w.u64(0x800+0x50, base64+0xb00)
			w.u64(0x800+0x58, base64+0xb00+8*0x3f)
			w.u32(0x900+0x18, 0x500)
			w.u32(0x900+0x1c, 0x50f)
			w.u32(0x900+0x28, 4<<3|1<<15)
			w.u32(0x900+0x2c, 0x10|1<<31)   // MemCommit
			w.u64(0xa00, base64+0xc00)      // SUBSECTION.ControlArea
			w.u64(0xc00+0x40, base64+0xe08) // CONTROL_AREA.FilePointer
		}},
		{"Windows 7, x86", dump.X86, 7601, [2]int{0x2b8, 0x2c0}, 0x278, func(w written) {
			w.u32(0x278+8, uint32(base32)+0x800)
			w.u32(0x800+8, uint32(base32)+0x900)
			w.u32(0x800+0xc, 0x400)
			w.u32(0x800+0x10, 0x43f)
			w.u32(0x800+0x14, 5|2<<20|execute<<24) // CommitCharge, VadType, Protection
			w.u32(0x800+0x24, uint32(base32)+0xa00)
			w.u32(0x800+0x28, uint32(base32)+0xb00)
			w.u32(0x800+0x2c, uint32(base32)+0xb00+8*0x3f)
			w.u32(0x900+0xc, 0x500)
			w.u32(0x900+0x10, 0x50f)
			w.u32(0x900+0x14, 0x10|1<<23|4<<24|1<<31)
			w.u32(0xa00, uint32(base32)+0xc00)
			w.u32(0xc00+0x24, uint32(base32)+0xe05)
		}},
		{"Windows 10 1809, x86", dump.X86, 17763, [2]int{0x4d0, 0x408}, 0x29c, func(w written) {
			w.u32(0x29c, uint32(base32)+0x800)   // RTL_AVL_TREE.Root
			w.u32(0x800+4, uint32(base32)+0x900) // RTL_BALANCED_NODE.Right
			w.u32(0x800+0xc, 0x400)
			w.u32(0x800+0x10, 0x43f)
			w.u32(0x800+0x1c, 2|execute<<3)
			w.u32(0x800+0x20, 5)
			w.u32(0x800+0x2c, uint32(base32)+0xa00)
			w.u32(0x800+0x30, uint32(base32)+0xb00)
			w.u32(0x800+0x34, uint32(base32)+0xb00+8*0x3f)
			w.u32(0x900+0xc, 0x500)
			w.u32(0x900+0x10, 0x50f)
			w.u32(0x900+0x1c, 4<<3|1<<14)
			w.u32(0x900+0x20, 0x10|1<<31)
			w.u32(0xa00, uint32(base32)+0xc00)
			w.u32(0xc00+0x24, uint32(base32)+0xe05)
		}},
	} {
		base, ptr := base64, 8
		if c.arch == dump.X86 {
			base, ptr = base32, 4
		}
		w := written{base, make([]byte, 0x2000)}
		c.write(w)
		f := &File{size: 1 << 20, hdr: &header{headerLayout: &headerLayout{ptr: ptr}, arch: c.arch, build: c.build}, full: &full{}, kd: &kdbg{}}
		f.hdr.paeEnabled = true
		f.kd.thread.size, f.kd.process.size = c.sizes[0], c.sizes[1]
		tree := &vadTree{f: f, mem: w, form: f.vadForm(), known: vad{first: 1}, gap: [2]uint64{1, 0}}
		if tree.form == nil {
			t.Errorf("%s: no form", c.name)
			continue
		}
		top, err := dump.ReadPointer(w, c.arch, base+uint64(c.root+tree.form.root))
		if err != nil || f.vads().root != c.root {
			t.Errorf("%s: the tree at %#x, %v", c.name, f.vads().root, err)
		}
		tree.top = top
		file, known := tree.find(0x43f)
		if !known || file == nil || file.first != 0x400 || file.last != 0x43f || file.kind != vadImage || file.private || file.protect != 0x80 || file.commit != 5 ||
			tree.fileObject(file) != base+0xe00 || file.lastPTE-file.firstPTE != 8*0x3f {
			t.Errorf("%s: %+v, its file at %#x", c.name, file, tree.fileObject(file))
		}
		own, known := tree.find(0x508)
		if !known || own == nil || own.first != 0x500 || !own.private || !own.committed || own.protect != 4 || own.commit != 0x10 || own.kind != vadNormal {
			t.Errorf("%s: %+v", c.name, own)
		}
		if v, known := tree.find(0x4ff); v != nil || !known {
			t.Errorf("%s: between them %+v", c.name, v)
		}
	}
}
