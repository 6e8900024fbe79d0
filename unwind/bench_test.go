package unwind

import (
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
)

// benchSpace is a stack of frames of 0x30 bytes: "push rbx; sub rsp, 0x20" with
// a saved rsi, each returning into the same function, and at the end a zero.
func benchSpace() *space {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1, 9, 4, 0, 9, 0x64, 7, 0, 5, 0x32, 1, 0x30}, nil)
	ret := s.callAt(0x1180)
	for va := uint64(sp0 + 0x28); va < stackHigh-0x40; va += 0x30 {
		s.poke(va, ret)
	}
	return s
}

// BenchmarkStepPdata is one step by unwind data at a known address.
func BenchmarkStepPdata(b *testing.B) {
	s := benchSpace()
	w, opt := s.walker(), stackBounds
	var regs dump.Registers
	var f Frame
	start := at(imageBase+0x1180, sp0)
	begin := func() {
		regs = start
		f = Frame{IP: imageBase + 0x1180, Lookup: imageBase + 0x117f, SP: sp0}
	}
	begin()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := w.Step(&regs, &f, &opt); !ok {
			begin()
		}
	}
}

// BenchmarkHostileThreads is 1000 threads of 64 KB of pointers into a module of
// which no image is at hand.
func BenchmarkHostileThreads(b *testing.B) {
	s := bare()
	s.bytesAt[stackLow] = make([]byte, 0x11000)
	for va := uint64(sp0); va < stackLow+0x11000; va += 8 {
		s.poke(va, noImageBase+0x1000+va*0x9e3779b1&0xefff)
	}
	opt := Options{StackLimit: stackLow, StackBase: stackLow + 0x11000}
	for b.Loop() {
		w := s.walker()
		for range 1000 {
			w.Walk(at(noImageBase+0x2000, sp0), opt)
		}
	}
}

// BenchmarkHostileThreadsWithCode is the same with code in the dump, arranged
// so that every scan succeeds on its last word only.
func BenchmarkHostileThreadsWithCode(b *testing.B) {
	s := bare()
	const top = stackLow + 0x11000
	s.bytesAt[stackLow] = make([]byte, 0x11000)
	code := make([]byte, 0x10000)
	code[0x1ffe], code[0x1fff] = 0xff, 0xd0 // call rax
	s.bytesAt[noImageBase] = code
	for va := uint64(sp0); va < top; va += 8 {
		s.poke(va, noImageBase+0x2001+va*0x9e3779b1&0xdfff)
	}
	for va := uint64(sp0 + 8*159); va < top; va += 8 * untrustedScan {
		s.poke(va, noImageBase+0x2000)
	}
	opt := Options{StackLimit: stackLow, StackBase: top}
	b.ReportAllocs()
	for b.Loop() {
		w := s.walker()
		frames := 0
		for range 1000 {
			frames += len(w.Walk(at(noImageBase+0x2001, sp0), opt).Frames)
		}
		b.ReportMetric(float64(frames)/1000, "frames/thread")
	}
}

// BenchmarkRealDump walks all threads of a real dump with its images.
func BenchmarkRealDump(b *testing.B) {
	d := openMini(b, filepath.Join(corpus.Need(b, "wine/t64-clang-O1"), "hang_threads.dmp"), dump.AMD64)
	d.addImages(b, corpus.Need(b, "wine/winedlls"), corpus.Need(b, "wine/t64-clang-O1"))
	w := New(d, dump.AMD64)
	frames := 0
	b.ReportAllocs()
	for b.Loop() {
		frames = 0
		for _, th := range d.threads {
			frames += len(w.Walk(th.regs, Options{StackLimit: th.limit, StackBase: th.base}).Frames)
		}
	}
	b.ReportMetric(float64(frames), "frames")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(frames), "ns/frame")
}
