package kdump

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestMachineVADs lists what every machine's processes have mapped.
func TestMachineVADs(t *testing.T) {
	for _, v := range machine.Variants() {
		m := machine.Build(*v)
		for _, kind := range []machine.Kind{machine.Full, machine.BitmapKernel} { // the tree is kernel memory
			f := openBytes(t, m.Dump(kind))
			checkVADs(t, v.Name, f, m)
			for _, e := range f.Damage() {
				t.Errorf("%s: damage: %v", v.Name, e)
			}
		}
	}
}

func checkVADs(t *testing.T, name string, f *File, m *machine.Machine) {
	t.Helper()
	types := map[uint32]string{memPrivate: "private", memMapped: "mapped", memImage: "image"}
	protect := map[uint64]uint32{1: 0x02, 4: 0x04, 7: 0x80} // PAGE_READONLY, PAGE_READWRITE, PAGE_EXECUTE_WRITECOPY
	for _, want := range m.Processes {
		p := dump.Process{EPROCESS: want.EPROCESS, DirBase: f.pageTableRoot(want.DirBase)}
		got := f.View(&p).VADs()
		if len(got) != len(want.Views) {
			t.Errorf("%s: %s has %d ranges, want %d", name, want.Name, len(got), len(want.Views))
			continue
		}
		for i := range got {
			r, w := &got[i], &want.Views[i]
			state, file := uint32(memReserve), r.File
			switch {
			case w.Committed || w.Type == "image" || w.File != "":
				state = memCommit
			case w.Type != "private":
				state = 0
			}
			if w.Type == "image" {
				file = r.Image
			}
			if r.Base != w.First || r.Base+r.Size-1 != w.Last || types[r.Type] != w.Type || r.Protect != protect[w.Protect] || file != w.File ||
				r.State != state || r.VAD == nil || !r.VAD.HasCommit || r.VAD.Commit != w.Charge {
				t.Errorf("%s: %s: %+v %+v, want %+v", name, want.Name, r, r.VAD, w)
			}
		}
	}
}

// TestOddVADs: of a kernel that no table knows the types tell how descriptors are
// laid out. When they do not, no page is said to be unmapped.
func TestOddVADs(t *testing.T) {
	m := machine.Build(machine.WindowsOdd)
	b := m.Dump(machine.Full)
	f := openWith(t, b, symbolsOf(m))
	f.Processes()
	checkVADs(t, "by types", f, m)
	checkProbes(t, "by types", f, m)
	for _, without := range []string{"_MMVAD_FLAGS.PrivateMemory", "_MMVAD_SHORT.StartingVpnHigh", "_SUBSECTION.PtesInSubsection"} {
		s := symbolsOf(m)
		delete(s.bits, without)
		delete(s.fields, without)
		f := openWith(t, b, s)
		i := slices.IndexFunc(f.Processes(), func(p dump.Process) bool { return p.Name == "report.exe" })
		v, said := f.View(&f.Processes()[i]), len(f.Damage())
		if r := v.VADs(); r != nil || len(f.Damage()) != said+1 || f.Damage()[said].Code != dump.UnsupportedFormat {
			t.Errorf("without %s: %d ranges; damage %v", without, len(r), f.Damage())
		}
		if page := v.space.Page(0x1d5a2d80000); page.State != PageUnresolved {
			t.Errorf("without %s: an address without an entry is %s", without, page.Describe())
		}
	}
}

// TestCurrentVADs: the page tables that were loaded are those of the process that
// stopped the system, also before anybody asked for processes.
func TestCurrentVADs(t *testing.T) {
	for _, v := range machine.Variants() {
		f := openBytes(t, machine.Build(*v).Dump(machine.Full))
		base := uint64(0x1d5a2d00000)
		if v.Arch == machine.X86 {
			base = 0x10000000
		}
		for va, want := range map[uint64]PageState{base + 0x1000: PageDemandZero, base + 0x21000: PageReserved, base + 0x80000: PageInvalid} {
			if page := f.Memory().(*kernelMemory).Page(va); page.State != want {
				t.Errorf("%s: %#x is %s, want %v", v.Name, va, page.Describe(), want)
			}
		}
	}
}

// TestTypesAgree: of kernels that the tables know, too, the types give the same form.
func TestTypesAgree(t *testing.T) {
	for _, v := range machine.Variants() {
		if v.Build < 9600 {
			continue // nodes of another kind
		}
		m := machine.Build(*v)
		f := openBytes(t, m.Dump(machine.BitmapKernel))
		if got := symbolVADForm(symbolsOf(m), f.hdr.ptr); got == nil || *got != *f.vadForm() {
			t.Errorf("%s: %+v, the table has %+v", v.Name, got, f.vadForm())
		}
	}
}

// nodes is kernel memory with descriptors of form 4 at vadBase, 0x100 apart.
type nodes []byte

const vadBase = 0xffffcf8d51000000

func (n nodes) ReadAt(p []byte, va uint64) (int, error) {
	if va < vadBase || va-vadBase > uint64(len(n)) {
		return 0, &dump.MemoryError{VA: va, Size: len(p)}
	}
	done := copy(p, n[va-vadBase:])
	if done < len(p) {
		return done, &dump.MemoryError{VA: va + uint64(done), Size: len(p) - done}
	}
	return done, nil
}

// node writes a descriptor by the published offsets of Windows 10 2004: children at
// 0 and 8, pages at 18h and 1Ch, flags at 30h, commit charge at 34h.
func (n nodes) node(i int, left, right int, first, last, flags uint32) {
	at := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return vadBase + 0x100*uint64(i)
	}
	b := n[0x100*i:]
	binary.LittleEndian.PutUint64(b[0:], at(left))
	binary.LittleEndian.PutUint64(b[8:], at(right))
	binary.LittleEndian.PutUint32(b[0x18:], first)
	binary.LittleEndian.PutUint32(b[0x1c:], last)
	binary.LittleEndian.PutUint32(b[0x30:], flags)
}

func (n nodes) tree(form int) *vadTree {
	f := &File{size: 1 << 20, hdr: &header{headerLayout: &headerLayout{ptr: 8}, arch: dump.AMD64}, full: &full{}}
	return &vadTree{f: f, mem: n, form: &vadForms[form], top: vadBase, known: vad{first: 1}, gap: [2]uint64{1, 0}}
}

// balanced is three descriptors: pages 10 to 1f, 40 to 4f, 80.
func balanced() nodes {
	n := make(nodes, 0x1000)
	n.node(0, 1, 2, 0x40, 0x4f, 1<<20|4<<7)
	n.node(1, -1, -1, 0x10, 0x1f, 1<<20|1<<7)
	n.node(2, -1, -1, 0x80, 0x80, 1<<20|0x18<<7)
	return n
}

func TestFindVAD(t *testing.T) {
	tree := balanced().tree(4)
	for range 2 { // the second time from what was found before
		for page, want := range map[uint64]uint64{0: 0, 0xf: 0, 0x10: 0x10, 0x1f: 0x10, 0x20: 0, 0x3f: 0, 0x45: 0x40, 0x50: 0, 0x80: 0x80, 0x81: 0, 1<<51 | 5: 0} {
			v, known := tree.find(page)
			if !known || (v != nil) != (want != 0) || v != nil && v.first != want {
				t.Errorf("page %#x: %+v, %t; want the one from %#x on", page, v, known, want)
			}
		}
	}
	if v, _ := tree.find(0x80); v.protect != pageNoAccess || !v.private {
		t.Errorf("%+v", v)
	}
}

// TestDamagedVADs: what a damaged tree leaves is listed, and no page is said to be
// unmapped on a way that breaks off.
func TestDamagedVADs(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(n nodes)
		code   dump.Code
		firsts []uint64
		open   uint64 // a page of which nothing is known
	}{
		"back to the top":     {func(n nodes) { n.node(1, 0, -1, 0x10, 0x1f, 0) }, dump.BadRecord, []uint64{0x10, 0x40, 0x80}, 0x5},
		"its own child":       {func(n nodes) { n.node(2, -1, 2, 0x80, 0x80, 0) }, dump.BadRecord, []uint64{0x10, 0x40, 0x80}, 0x90},
		"out of place":        {func(n nodes) { n.node(1, -1, -1, 0x60, 0x6f, 0) }, dump.BadRecord, []uint64{0x40, 0x80}, 0x12},
		"end before start":    {func(n nodes) { n.node(2, -1, -1, 0x90, 0x80, 0) }, dump.OutOfRange, []uint64{0x10, 0x40}, 0x85},
		"not in the dump":     {func(n nodes) { n.node(0, 1, 0x200, 0x40, 0x4f, 0) }, dump.OutOfRange, []uint64{0x10, 0x40}, 0x85},
		"no kernel address":   {func(n nodes) { n[0xf] = 0 }, dump.OutOfRange, nil, 0x45},
		"first page of all":   {func(n nodes) { n.node(1, 2, -1, 0, 0x1f, 0) }, "", []uint64{0, 0x40, 0x80}, 0},
		"deeper than allowed": {chain, dump.Limit, nil, 0xfff},
	} {
		n := make(nodes, 0x10000)
		copy(n, balanced())
		c.damage(n)
		tree := n.tree(4)
		var firsts []uint64
		err := tree.walk(func(v *vad) bool { firsts = append(firsts, v.first); return true })
		if c.firsts != nil && fmt.Sprint(firsts) != fmt.Sprint(c.firsts) || c.code == "" && err != nil || c.code != "" && (err == nil || err.Code != c.code) {
			t.Errorf("%s: %#x, %v; want %#x, %s", name, firsts, err, c.firsts, c.code)
		}
		if v, known := tree.find(c.open); c.code != "" && (v != nil || known) {
			t.Errorf("%s: page %#x is %+v, known", name, c.open, v)
		}
	}
}

// chain hangs 100 descriptors one below the other.
func chain(n nodes) {
	for i := range 100 {
		n.node(i, -1, i+1, uint32(i), uint32(i), 0)
	}
}

// TestByVAD: what a page without an entry is, by the flags of its descriptor as
// Windows 10 2004 has them (VadType 4, PrivateMemory 20, ZeroFillPagesOptional 23).
func TestByVAD(t *testing.T) {
	const private, awe = 1 << 20, 3 << 4
	for _, c := range []struct {
		flags     uint32
		committed bool
		want      PageState
	}{
		{private, true, PageDemandZero}, {private, false, PageReserved}, {private | 1<<23, true, PageUnresolved}, {private | 1<<23, false, PageReserved},
		{private | awe, true, PageUnresolved}, {private | 4<<4, true, PageDemandZero}, {0, true, PageUnresolved}, // a view without a section
	} {
		n := balanced()
		n.node(0, 1, 2, 0x40, 0x4f, c.flags)
		if c.committed {
			binary.LittleEndian.PutUint32(n[0x34:], 1<<31)
		}
		s := newAddressSpace(&PhysicalMemory{}, pagingAMD64{4}, 0, nil)
		s.vads.Store(n.tree(4))
		if got := s.byVAD(0x45000, translation{state: PageInvalid, ask: true}); got.state != c.want {
			t.Errorf("flags %#x, committed %t: %v, want %v", c.flags, c.committed, got.state, c.want)
		}
		for _, va := range []uint64{0x45000 - 6<<12, 0xffff800000045000} {
			if got := s.byVAD(va, translation{state: PageInvalid, ask: true}); got.state != PageInvalid {
				t.Errorf("%#x, where nothing is: %v", va, got.state)
			}
		}
	}
}

// TestPrivateBit: Server 2022 has PrivateMemory in one of two bits. Where the
// descriptors do not tell which, nothing is said to be private.
func TestPrivateBit(t *testing.T) {
	for _, c := range []struct {
		flags [3]uint32
		bit   int
	}{
		{[3]uint32{1 << 20, 1 << 20, 2 << 4}, 20}, {[3]uint32{1 << 21, 2 << 4, 0}, 21},
		{[3]uint32{1<<20 | 1<<21, 1 << 21, 1 << 21}, 21}, {[3]uint32{1 << 20, 1 << 21, 0}, -1},
	} {
		n := balanced()
		n.node(0, 1, 2, 0x40, 0x4f, c.flags[0])
		n.node(1, -1, -1, 0x10, 0x1f, c.flags[1])
		n.node(2, -1, -1, 0x80, 0x80, c.flags[2])
		tree := n.tree(6)
		v, _ := tree.find(0x40)
		if bit := tree.privateBit(); bit != c.bit || v == nil || v.private != (bit >= 0 && c.flags[0]>>bit&1 != 0) {
			t.Errorf("%#x: bit %d, want %d; %+v", c.flags, bit, c.bit, v)
		}
	}
}

// TestCharge: a charge of all ones says that there is no limit; bits 31 up of the
// charge stand apart.
func TestCharge(t *testing.T) {
	for _, c := range []struct {
		word uint32
		high byte
		want uint64
		has  bool
	}{{0x80000005, 0, 5, true}, {0x00000007, 1, 1<<31 + 7, true}, {0x7fffffff, 0xff, 0, false}, {0x7fffffff, 0, 0x7fffffff, true}} {
		n := balanced()
		binary.LittleEndian.PutUint32(n[0x34:], c.word)
		n[0x22] = c.high
		v, _ := n.tree(4).find(0x40)
		if v == nil || v.commit != c.want || v.hasCommit != c.has || v.committed != (c.word>>31 != 0) {
			t.Errorf("%#x: %+v", c.word, v)
		}
	}
}

// FuzzVADs: whatever the memory holds, descriptors come in the order of their
// addresses, do not overlap, and those of a whole tree are found one by one.
func FuzzVADs(f *testing.F) {
	f.Add([]byte(balanced()), uint8(4))
	f.Add([]byte(balanced()[:0x230]), uint8(6))
	f.Add([]byte(balanced()), uint8(1))
	loop := make(nodes, 0x7000)
	chain(loop)
	f.Add([]byte(loop), uint8(7))
	f.Fuzz(func(t *testing.T, b []byte, form uint8) {
		tree := nodes(b).tree(1 + int(form)%(len(vadForms)-1))
		var found []vad
		err := tree.walk(func(v *vad) bool {
			tree.finish(v)
			found = append(found, *v)
			return len(found) < 1000
		})
		next := uint64(0)
		for i := range found {
			v := &found[i]
			if v.first < next || v.last < v.first {
				t.Fatalf("%#x to %#x behind %#x", v.first, v.last, next)
			}
			next = v.last + 1
			if again, known := tree.find(v.last); err == nil && (!known || again == nil || again.va != v.va) {
				t.Fatalf("%#x: %+v, %t; the tree has %+v", v.last, again, known, v)
			}
			tree.prototypePTE(v, v.last)
			tree.file(v)
			tree.region(v)
		}
		tree.find(next)
	})
}
