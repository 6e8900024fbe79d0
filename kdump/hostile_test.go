package kdump

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

// bounded runs fn on a dump that was made to cost: it must end soon, and not take
// many times the file.
func bounded(t *testing.T, b []byte, fn func(f *File)) *File {
	t.Helper()
	const longest, most = 2 * time.Second, 128 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	f := openBytes(t, b)
	fn(f)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if took > longest {
		t.Errorf("took %v", took)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("allocated %d bytes for a file of %d", used, len(b))
	}
	return f
}

// alias maps count pages from va on to the physical page that holds target.
func (s *system) alias(va, target uint64, count int) {
	page := s.entry(s.pte(s.root, target))
	for i := range uint64(count) {
		s.setEntry(s.pte(s.root, va+i<<12), page)
	}
}

// TestHostileNames: thousands of handles to one object whose name is that of
// sixteen directories, each of 32,000 characters that are one page in the file.
func TestHostileNames(t *testing.T) {
	s := newSystem()
	const (
		types, texts, long = 0xffffd00000400000, 0xffffd00000410000, 0xffffd00000600000
		dirs, table, pages = 0xffffd00000500000, 0xffffe00000100000, 0xffffe00000200000
		directory, process = 3, 7    // numbers of types
		cookie             = process // what the processes' headers, full of zeros, come to
		depth, handles     = 16, 8192
	)
	s.kdbg.u64(0xa0, types)
	s.ku64(types, types+0x100)
	s.list(s.root, types+0x100, types+0x200, types+0x300)
	for i, name := range []string{"Directory", "Process"} {
		body := types + uint64(i)*0x100 + 0x200 + 0x20 + 0x30
		s.unicode(s.root, body+0x10, texts+uint64(i)*0x100, name)
		s.ku64(body+0x28, [...]uint64{directory, process}[i])
	}
	s.write(s.root, long, []byte(strings.Repeat("A\x00", 0x800)))
	s.alias(long, long, 16)
	for i := range uint64(depth) {
		header := dirs + i<<12 + 0x50
		s.write(s.root, header, make([]byte, 0x40))
		s.write(s.root, header+0x18, []byte{directory ^ cookie ^ byte(header>>8), 0, 2})
		if i+1 < depth {
			s.ku64(header-0x20, header+0x1000+0x30)
		}
		s.ku64(header-0x18, 0xfffe|0xfffe<<16)
		s.ku64(header-0x10, long)
	}
	s.ku64(appProcess+0x570, table)
	s.write(s.root, table, make([]byte, 0x40))
	s.ku64(table+8, pages|1)
	header := uint64(dirs + 0x50)
	for i := range uint64(handles) {
		page := pages + (i/256+1)<<12
		s.ku64(pages+i/256*8, page)
		s.ku64(page+i%256*16, header>>4<<20|1)
	}
	f := bounded(t, s.build(), func(f *File) {
		h := f.View(&f.Processes()[1]).Handles()
		if len(h) == 0 || h[0].Type != "Directory" || !strings.HasPrefix(h[0].Name, "AAAA") {
			t.Fatalf("%d handles, the first %.200v: the dump is not what it was meant to be", len(h), h)
		}
	})
	wantLimit(t, f)
}

func wantLimit(t *testing.T, f *File) {
	t.Helper()
	for _, d := range f.Damage() {
		if d.Code == dump.Limit {
			return
		}
	}
	t.Errorf("no word of what was left out: %v", f.Damage())
}

// TestHostileCalibration: a kernel that no table knows, whose System is full of
// list heads of which none is that of its threads.
func TestHostileCalibration(t *testing.T) {
	s := newSystem()
	const size, nodes = 0x1ff8, 0xffffd00000700000
	s.kdbg.u16(0x2a8, size)
	s.kdbg.u16(0x2c0, size)
	s.write(s.root, sysProcess+0x548, make([]byte, size-0x548))
	s.write(s.root, nodes-0x2000, make([]byte, 0x10000))
	n := uint64(0)
	for head := uint64(0x560); head+16 <= size; head += 16 {
		node := nodes + n*16
		s.ku64(sysProcess+head, node)
		s.ku64(sysProcess+head+8, node)
		s.ku64(node+8, sysProcess+head)
		n++
	}
	bounded(t, s.build(), func(f *File) { f.Threads() })
}

// TestHostileIDs: a kernel that no table knows, no list of processes, and a table
// of ids with thousands of entries that are all the same process.
func TestHostileIDs(t *testing.T) {
	s := newSystem()
	const size, copies, table = 0xa48, 0xffffd00100000000, 0xffffe00000400000
	s.kdbg.u16(0x2a8, size)
	s.ku64(sysProcs, 0)
	s.ku64(sysProcs+8, 0)
	s.ku64(cidHandles+0x2008, table|1)
	const count = 1 << 14
	s.alias(copies, sysProcess, count)
	for i := range uint64(count) {
		page := table + (i/256+1)<<12
		s.ku64(table+i/256*8, page)
		s.ku64(page+i%256*16, (copies+i<<12+sysProcess&0xfff)>>4<<20|1)
	}
	bounded(t, s.build(), func(f *File) { f.Threads() })
}

// TestHostileBitmap: every other one of 32 million pages is named, and the file
// ends behind the first eight.
func TestHostileBitmap(t *testing.T) {
	const size, held = 4 << 20, 8
	h := header64Bytes(5, 0, [4]uint64{})
	h.put(0x2000, []byte("SDMPDUMP"))
	h.u64(0x2020, 0x2038+size)
	h.u64(0x2028, size*4)
	h.u64(0x2030, size*8)
	h.grow(0x2038)
	b := append(h.b, bytes.Repeat([]byte{0x55}, size)...)
	b = append(b, make([]byte, held*pageSize-0x800)...)
	f := bounded(t, b, func(f *File) { f.Threads() })
	var got []dump.Range
	for r := range f.PhysicalMemory().Runs() {
		got = append(got, r)
	}
	last := dump.Range{VA: 2 * (held - 1) * pageSize, Size: 0x800, Off: 0x2038 + size + (held-1)*pageSize}
	if len(got) != held || got[held-1] != last {
		t.Errorf("%d ranges, the last %+v, want %d and %+v", len(got), got[len(got)-1], held, last)
	}
}
