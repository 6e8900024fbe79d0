package minidump

import (
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
)

// TestSharedContext lists no more threads than the file has bytes of contexts
// for, when they all share one.
func TestSharedContext(t *testing.T) {
	const n = 20000
	w := newWriter()
	w.stream(StreamSystemInfo, systemInfo(9, 0))
	context := w.blob(amd64Context(0x7ff600001000, 0x100000))
	list := le(u32(n))
	for i := range n {
		list = append(list, thread(uint32(i), 0, 0, 0, 0, 0x4d0, context)...)
	}
	w.stream(StreamThreadList, list)
	b := w.bytes()
	f := mustOpen(t, b)
	got := f.Threads()
	// 0x4d0 bytes each, of the file and 1 MiB.
	if want := (len(b) + 1<<20) / 0x4d0; len(got) != want {
		t.Errorf("%d threads, want %d", len(got), want)
	}
	wantDamage(t, f, dump.Limit, "ThreadList")
}

// TestSharedNames counts the use of one long name by many handles against the
// size of the file, but not that of the short names of types.
func TestSharedNames(t *testing.T) {
	const n = 5000
	build := func(name string) *File {
		w := newWriter()
		w.stream(StreamSystemInfo, systemInfo(9, 0))
		text := w.text(name)
		list := le(u32(16), u32(32), u32(n), u32(0))
		for i := range n {
			list = append(list, le(u64(uint64(i)), text, text, u32(0), u32(0), u32(1), u32(1))...)
		}
		w.stream(StreamHandleData, list)
		return mustOpen(t, w.bytes())
	}
	f := build(strings.Repeat("x", 30000))
	total := 0
	for _, h := range f.Handles() {
		total += len(h.Name) + len(h.Type)
	}
	if size := int(f.Size()); total > size+maxText+30000 || total < size/2 {
		t.Errorf("%d bytes of names from a file of %d", total, size)
	}
	wantDamage(t, f, dump.Limit, "HandleData")

	f = build("ALPC Port")
	if i := slices.IndexFunc(f.Handles(), func(h dump.Handle) bool { return h.Type != "ALPC Port" || h.Name != "ALPC Port" }); i >= 0 {
		t.Errorf("handle %d: %+v", i, f.Handles()[i])
	}
	wantClean(t, f)
}
