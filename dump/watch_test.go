package dump_test

import (
	"fmt"
	"slices"
	"testing"

	"dumptriage/dump"
)

// watchedMemory holds 0, 1, 2 ... at 0x1000 to 0x1fff and writes down who uses what.
type watchedMemory struct{ log []string }

func (m *watchedMemory) ReadAhead(p []byte, va uint64) (int, error) {
	n := 0
	for n < len(p) && va+uint64(n) >= 0x1000 && va+uint64(n) < 0x2000 {
		p[n] = byte(va + uint64(n))
		n++
	}
	if n < len(p) {
		return n, &dump.MemoryError{VA: va + uint64(n), Size: len(p) - n}
	}
	return n, nil
}

func (m *watchedMemory) ReadAt(p []byte, va uint64) (int, error) {
	n, err := m.ReadAhead(p, va)
	m.Used(va, n)
	return n, err
}

func (m *watchedMemory) Used(va uint64, n int) { m.log = append(m.log, fmt.Sprintf("%x+%d", va, n)) }

func (m *watchedMemory) Watcher() dump.Watcher { return m }

// TestWindowTellsWhatIsUsed: a window reads pages, and a few bytes of them are used.
func TestWindowTellsWhatIsUsed(t *testing.T) {
	m := &watchedMemory{}
	w := dump.NewWindow(m)
	if v, ok := w.Uint32(0x1010); !ok || v != 0x13121110 {
		t.Errorf("read %#x, %v", v, ok)
	}
	w.Uint64(0x1800)
	w.Uint64(0x1ffc) // beyond the end: what is there was looked at
	w.Uint32(0x3000)
	w.Bytes(make([]byte, 3), 0x1001)
	want := []string{"1010+4", "1800+8", "1ffc+4", "3000+0", "1001+3"}
	if !slices.Equal(m.log, want) {
		t.Errorf("used %v, want %v", m.log, want)
	}
	if dump.WatcherOf(dump.NewFileMemory(nil, nil)) != nil {
		t.Error("a file's memory has a watcher")
	}
}
