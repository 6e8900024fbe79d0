package scrub

import (
	"bytes"
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/kdump"
	"dumptriage/triage"
)

// TestLastByte: a stack may end where the address space does, and an end there is no
// number.
func TestLastByte(t *testing.T) {
	const lo = ^uint64(0) - 0x3f
	const pointer = lo + 8
	for _, hi := range []uint64{^uint64(0), ^uint64(0) - 0xf} {
		s := &scrubber{in: &triage.Dump{}, inc: &triage.Incident{System: dump.System{Arch: dump.AMD64}}, frames: map[uint64]bool{}, levels: make([]Level, 1), steps: make([][]span, 1)}
		s.stacks = make([][]area, 1)
		s.addArea(lo, hi, dump.AMD64, 0)
		s.places = s.stacks[0]
		data := bytes.Repeat([]byte("hush"), 16)
		binary.LittleEndian.PutUint64(data[0x18:], pointer)
		got, err := s.reduce([]block{{lo, data}})
		if err != nil {
			t.Fatal(err)
		}
		for off := 0; off < 0x40; off += 8 {
			want := uint64(1)
			switch va := lo + uint64(off); {
			case off == 0x18:
				want = pointer
			case va >= hi-7 && hi != ^uint64(0): // behind the stack: not its words
				want = binary.LittleEndian.Uint64([]byte("hushhush"))
			}
			if w := binary.LittleEndian.Uint64(got[0].data[off:]); w != want {
				t.Errorf("a stack up to %#x: the word at %#x is %#x, want %#x", hi, lo+uint64(off), w, want)
			}
		}
	}
}

// TestThreadOfTheNewDump: a thread that was not there is a difference, too.
func TestThreadOfTheNewDump(t *testing.T) {
	old := &triage.Incident{Threads: threads(4)}
	now := &triage.Incident{Threads: threads(4, 9)}
	var res Result
	(&scrubber{inc: old, walks: walksOf(old)}).compare(now, &res)
	if len(res.Differences) != 1 || res.Differences[0].Thread != 9 {
		t.Errorf("the differences are %v", res.Differences)
	}
}

// threads are threads of these ids.
func threads(ids ...uint32) []triage.Thread {
	out := make([]triage.Thread, len(ids))
	for i, id := range ids {
		out[i].ID = id
	}
	return out
}

// TestManyFolders: of however many folders the dump has, nothing is kept: a system has a
// hundred modules in each of some hundred processes. Backslashes stand for characters.
func TestManyFolders(t *testing.T) {
	const many, chars = 1<<16 + 2, 4
	b := bytes.Repeat([]byte("s\x00"), many*chars)
	in, err := input.New(bytes.NewReader(b), int64(len(b)), "MEMORY.DMP", input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &kernelFile{in: &triage.Dump{File: in}, structure: map[int64]*pageUse{}, blanks: map[int64]*pageUse{}, slashes: map[int64]*pageUse{}}
	for i := range many {
		use, n := kdump.UseFolder, 2*chars
		if i == many-1 {
			use, n = kdump.UseFolder8, 3
		}
		k.used(use, 0, int64(2*chars*i), n)
	}
	k.freeze()
	got, err := k.bytes(0, len(b))
	want := append(bytes.Repeat([]byte("\\\x00"), (many-1)*chars), "\\\\\\\x00\x00\x00\x00\x00"...)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q ... %q, %v", got[:8], got[len(got)-16:], err)
	}
}
