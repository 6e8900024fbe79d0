package triage

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// hiddenVA is where an image is that no list of modules has. Its function at
// 0x1000 pushes rbx and allocates 0x20, as in every frame of these tests.
const (
	hiddenVA   = 0x7ffb00000000
	invertedVA = ntdllVA + 0x7000 // in a page of ntdll that the fixture leaves out
)

func hiddenImage() *fixtures.Image {
	return &fixtures.Image{Name: "hidden.dll", Base: hiddenVA, TimeDateStamp: 0x7e57ab63, SizeOfImage: 0x8000, Functions: []*fixtures.Function{
		{Name: "Secret", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Push(fixtures.RBX), fixtures.Alloc(0x20))},
		{Name: "Last", RVA: 0x1040, Size: 0x20, Prolog: fixtures.Steps(fixtures.Alloc(0x28))},
	}}
}

// entryOf is an image's entry, by the fixture's own headers.
func entryOf(im *fixtures.Image) []byte {
	var head []byte
	for _, r := range im.Mapped() {
		if r.VA == im.Base {
			head = r.Data
		}
	}
	nt := binary.LittleEndian.Uint32(head[0x3c:])
	directory := head[nt+24+112+3*8:]
	b := make([]byte, 24)
	put64(b, 0, im.Base+uint64(binary.LittleEndian.Uint32(directory)), im.Base)
	put32(b, 16, binary.LittleEndian.Uint32(head[nt+24+56:]), binary.LittleEndian.Uint32(directory[4:]))
	return b
}

// invertedScene is a process with ntdll, its table, and the hidden image.
func invertedScene(count, most uint32, entries ...[]byte) (pages, *space) {
	nt := &fixtures.Image{Name: "ntdll.dll", Base: ntdllVA, TimeDateStamp: 0x7e57ab62, SizeOfImage: 0x8000, Functions: []*fixtures.Function{
		{Name: "NtClose", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))},
	}}
	table := make([]byte, 0x1000)
	put32(table, 0x48, count, most, 7, 0)
	for i, e := range entries {
		if e == nil {
			e = entryOf(nt)
		}
		copy(table[0x58+24*i:], e)
	}
	m := pages{invertedVA: table}
	for _, im := range []*fixtures.Image{nt, hiddenImage()} {
		for _, r := range im.Mapped() {
			m[r.VA] = r.Data
		}
	}
	return m, newSpace(stub{mem: m, mods: []dump.Module{{Base: ntdllVA, Size: 0x8000, Path: `C:\Windows\System32\ntdll.dll`}}}, symbols.NewStore(nil))
}

// changed is an entry with one field overwritten.
func changed(b []byte, at int, v uint32) []byte {
	b = append([]byte(nil), b...)
	put32(b, at, v)
	return b
}

// moved is an entry of an image at another base.
func moved(b []byte, base uint64) []byte {
	b = append([]byte(nil), b...)
	at := binary.LittleEndian.Uint64(b) - binary.LittleEndian.Uint64(b[8:])
	put64(b, 0, base+at, base)
	return b
}

func TestInvertedTable(t *testing.T) {
	hidden := entryOf(hiddenImage())
	for _, c := range []struct {
		name        string
		count, most uint32
		entries     [][]byte
		found       bool
	}{
		{"ntdll first", 2, 512, [][]byte{nil, hidden}, true},
		{"ntdll second", 2, 512, [][]byte{hidden, nil}, true},
		{"not counted", 1, 512, [][]byte{nil, hidden}, false},
		{"nothing of ntdll", 1, 512, [][]byte{hidden}, false},
		{"more than there is room for", 3, 2, [][]byte{nil, hidden}, false},
		{"room for too many", 2, 1 << 20, [][]byte{nil, hidden}, false},
		{"a base within a page", 2, 512, [][]byte{nil, changed(hidden, 8, 0x10)}, false},
		{"no size", 2, 512, [][]byte{nil, changed(hidden, 16, 0)}, false},
		{"a table behind the image", 2, 512, [][]byte{nil, changed(hidden, 0, 0x9000)}, false},
		{"a table of half an entry", 2, 512, [][]byte{nil, changed(hidden, 20, 13)}, false},
		{"an image where a module is", 2, 512, [][]byte{nil, moved(hidden, ntdllVA-0x1000)}, false},
		{"another image besides, which is not in memory", 3, 512, [][]byte{nil, moved(hidden, ntdllVA-0x8000), hidden}, true},
		{"two in one place", 3, 512, [][]byte{nil, moved(hidden, hiddenVA-0x1000), hidden}, false},
	} {
		_, s := invertedScene(c.count, c.most, c.entries...)
		m := s.find(hiddenVA + 0x1010)
		if (m != nil) != c.found {
			t.Errorf("%s: %+v", c.name, m)
			continue
		}
		if c.found && (!m.Unlisted || m.Name() != "hidden.dll" || m.Base != hiddenVA || m.Size != 0x8000 || m.TimeDateStamp != 0x7e57ab63) {
			t.Errorf("%s: %+v %+v", c.name, m, m.Module)
		}
	}
}

// A step through the hidden image by its own unwind data, whether its headers
// are there, have been wiped, or the dump lacks them.
func TestInvertedTableUnwinds(t *testing.T) {
	for name, spoil := range map[string]func(pages){
		"whole":           func(pages) {},
		"headers wiped":   func(m pages) { clear(m[hiddenVA]) },
		"headers missing": func(m pages) { delete(m, hiddenVA) },
		"headers of another": func(m pages) {
			nt := binary.LittleEndian.Uint32(m[hiddenVA][0x3c:])
			put32(m[hiddenVA], int(nt)+24+56, 0x9000) // SizeOfImage
		},
	} {
		m, s := invertedScene(2, 512, nil, entryOf(hiddenImage()))
		spoil(m)
		const stack = 0x200000
		m[stack] = make([]byte, 0x1000)
		put64(m[stack], 0x20, 0xbb, ntdllVA+0x1020) // rbx, the return address
		regs := dump.Registers{Arch: dump.AMD64}
		regs.SetPC(hiddenVA + 0x1010)
		regs.SetSP(stack)
		w := newWalker(s, nil, 10, newFrameBudget(1<<20))
		half, _ := w.walk(regs, unwind.Options{StackLimit: stack, StackBase: stack + 0x1000})
		if len(half.Frames) < 2 || half.Frames[1].IP != ntdllVA+0x1020 || half.Frames[1].Trust != unwind.TrustCFI {
			t.Errorf("%s: %+v %v", name, half.Frames, half.Stop)
			continue
		}
		f := half.Frames[0]
		want := "Secret"
		if name != "whole" {
			want = "fn@1000" // no export table without headers
		}
		if f.Module == nil || f.Name.Function != want {
			t.Errorf("%s: %+v, want %s", name, f.Name, want)
		}
	}
}

// The kernel's table is not exported, and found in the same way.
func TestInvertedTableOfKernel(t *testing.T) {
	_, s := invertedScene(2, 512, nil, entryOf(hiddenImage()))
	s.mods[0].Kernel, s.mods[0].Path = true, "ntoskrnl.exe"
	if s.find(hiddenVA+0x1010) == nil {
		t.Error("the kernel's table is not found")
	}
}

// A dump whose memory lacks ntdll is not searched, nor is its file asked for.
func TestInvertedTableNeedsItsOwner(t *testing.T) {
	m, s := invertedScene(2, 512, nil, entryOf(hiddenImage()))
	delete(m, ntdllVA)
	if s.find(hiddenVA+0x1010) != nil || len(s.missing) != 0 {
		t.Errorf("found without ntdll; missing %v", s.missing)
	}
}

// counting is memory that counts the bytes that are read.
type counting struct {
	pages
	read int
}

func (c *counting) ReadAt(p []byte, va uint64) (int, error) {
	n, err := c.pages.ReadAt(p, va)
	c.read += n
	return n, err
}

// Data that is full of what looks like the owner's entry, behind each of which a
// header with room for thousands seems to lie, is read a few times at most.
func TestInvertedTableOfLookalikes(t *testing.T) {
	const size = 1 << 20
	const base = 0x1000_0000_1000 // which is a count and a room of 4096 when it is taken for a header
	own := invertedEntry{table: base + 0x2000, base: base, size: size, tableSize: 12}
	data := make([]byte, size)
	for i := 0; i+24 <= size; i += 24 {
		put64(data[i:], 0, own.table, own.base)
		put32(data[i:], 16, size+0x1000, 12) // of another size
	}
	mem := &counting{pages: pages{own.base: data}}
	_, s := invertedScene(0, 0)
	s.mem = mem
	if va := s.invertedIn(data, own.base, own); va != 0 || mem.read > 4*size {
		t.Errorf("a table at %#x; %d bytes read of %d", va, mem.read, size)
	}
}

// Whatever the table and the image it leads to hold, there is no panic, and what
// is found is where no module is.
func FuzzInvertedTable(f *testing.F) {
	f.Add(uint32(2), uint32(512), entryOf(hiddenImage()), []byte{0, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0, 0x20, 0, 0})
	f.Add(uint32(3), uint32(3), moved(entryOf(hiddenImage()), ntdllVA-0x8000), []byte{})
	f.Fuzz(func(t *testing.T, count, most uint32, entry, code []byte) {
		m, s := invertedScene(count, most, nil, append(append([]byte(nil), entry...), make([]byte, 24)...)[:24])
		copy(m[hiddenVA+0x2000], code)
		if len(code)&1 != 0 {
			delete(m, hiddenVA)
		}
		for _, va := range []uint64{hiddenVA + 0x1010, ntdllVA + 0x1000, ntdllVA - 0x1000, 0} {
			s.find(va)
		}
		for _, u := range s.mods {
			if im := s.images[u]; u.Unlisted && (im == nil || u.Base < ntdllVA+0x8000 && u.End() > ntdllVA) {
				t.Errorf("%+v", u.Module)
			}
		}
	})
}
