package managed

import (
	"testing"

	"dumptriage/dump"
)

// watchedMemory counts which bytes of one page are told to be used.
type watchedMemory struct {
	memory
	page uint64
	used [4096]bool
}

func (w *watchedMemory) ReadAt(p []byte, va uint64) (int, error) {
	n, err := w.memory.ReadAt(p, va)
	w.Used(va, n)
	return n, err
}

func (w *watchedMemory) ReadAhead(p []byte, va uint64) (int, error) { return w.memory.ReadAt(p, va) }

func (w *watchedMemory) Used(va uint64, n int) {
	for i := range uint64(n) {
		if at := va + i - w.page; at < uint64(len(w.used)) {
			w.used[at] = true
		}
	}
}

func (w *watchedMemory) Watcher() dump.Watcher { return w }

// TestNamesAloneAreUsed: of the memory that the name of a dynamic method is in, a watcher
// is told of the name, so that no scrubbed dump has what lies behind it.
func TestNamesAloneAreUsed(t *testing.T) {
	mem, r := process(t, 1)
	const at = 0x3200_0000
	b := make([]byte, 4096)
	copy(b[0x10:], "MyMethod\x00password=hunter2")
	mem[at] = b
	put(mem[methodsVA], 0x200+32, at+0x10)
	w := &watchedMemory{memory: mem, page: at}
	r.mem = w
	m, err := r.Method(codeVA + 0x410)
	if err != nil || m.Name != "MyMethod" {
		t.Fatalf("%+v, %v", m, err)
	}
	for i, used := range w.used {
		if want := i >= 0x10 && i < 0x10+len("MyMethod")+1; used != want {
			t.Fatalf("byte %#x: used %v", i, used)
		}
	}
}
