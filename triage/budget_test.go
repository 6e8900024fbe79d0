package triage

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// endless is memory in which every stack is a chain of frame pointers that
// goes on for ever. It holds no code.
type endless struct{}

func (endless) ReadAt(p []byte, va uint64) (int, error) {
	if va >= 0x10000000 {
		return 0, &dump.MemoryError{VA: va, Size: len(p)}
	}
	for i := range p {
		at := va + uint64(i)
		word := at&^15 + 16 // the saved rbp, at every other word
		if at&8 != 0 {
			word = 0x7ff600001501 // the return address above it
		}
		p[i] = byte(word >> (8 * (at & 7)))
	}
	return len(p), nil
}

func TestFrameBudget(t *testing.T) {
	sp := newSpace(stub{mem: endless{}, mods: []dump.Module{{Base: 0x7ff600000000, Size: 0x10000, Path: "x.dll"}}}, symbols.NewStore(nil))
	b := newFrameBudget(0)
	if b.left != leastFrames {
		t.Fatalf("%d frames for an empty file", b.left)
	}
	w := newWalker(sp, nil, 0, b)
	regs := dump.Registers{Arch: dump.AMD64}
	regs.SetPC(0x7ff600001500)
	regs.SetSP(0x100000)
	regs.Set(dump.AMD64.FPReg(), 0x100000)
	total := 0
	for i := range 2 * leastFrames / unwind.DefaultMaxFrames {
		h, _ := w.walk(regs, unwind.Options{})
		total += len(h.Frames)
		whole := i < leastFrames/unwind.DefaultMaxFrames
		if h.Stop.Reason != unwind.StopLimit || !h.Truncated || strings.Contains(h.Stop.Detail, "in sum") == whole {
			t.Fatalf("walk %d: %d frames, truncated %v, %+v", i, len(h.Frames), h.Truncated, h.Stop)
		}
		if want := unwind.DefaultMaxFrames; whole && len(h.Frames) != want || !whole && len(h.Frames) != 1 {
			t.Fatalf("walk %d: %d frames", i, len(h.Frames))
		}
	}
	if e := b.damage(); e == nil || e.Code != dump.Limit || !strings.Contains(e.Msg, "16 stacks are cut short") {
		t.Errorf("%v", e)
	}
	// The user's own cap is no damage.
	b = newFrameBudget(0)
	w = newWalker(sp, nil, 10, b)
	if h, _ := w.walk(regs, unwind.Options{}); len(h.Frames) != 10 || b.damage() != nil || b.left != leastFrames-10 {
		t.Errorf("%d frames, %v, %d left", len(h.Frames), b.damage(), b.left)
	}
}

func TestUnloadedHitsAreCapped(t *testing.T) {
	gone := make([]dump.Module, 5000)
	for i := range gone {
		gone[i] = dump.Module{Base: 0x1000, Size: 0x1000}
	}
	gone[unloadedSearched] = dump.Module{Base: 0x9000, Size: 0x1000}
	w := &walker{unloaded: gone}
	if n := len(w.unloadedAt(0x1234)); n != unloadedHits {
		t.Errorf("%d hits", n)
	}
	if n := len(w.unloadedAt(0x9000)); n != 0 {
		t.Errorf("%d hits behind what is searched", n)
	}
}
