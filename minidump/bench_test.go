package minidump

import (
	"bytes"
	"fmt"
	"testing"
)

// smallDump is about 100 KB: 30 threads with 1 KB of stack, 90 modules, 500
// regions and 150 handles.
func smallDump() []byte {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	var threads, names []byte
	for i := range 30 {
		ctx, stack := w.blob(amd64Context(0x140001000, 0x5f000)), w.blob(zeros(1024))
		threads = append(threads, thread(uint32(i), 0, 0x10000*uint64(i+1), 1024, stack, 0x4d0, ctx)...)
		names = append(names, le(u32(i), uint64(w.text("pool worker")))...)
	}
	w.stream(3, u32(30), threads)
	w.stream(24, u32(30), names)
	var modules []byte
	for i := range 90 {
		name := w.text(fmt.Sprintf(`C:\Windows\System32\module-%d.dll`, i))
		cv := w.blob([]byte("RSDS"), testGUID, u32(1), []byte("module.pdb\x00"))
		modules = append(modules, module(0x7ff000000000+uint64(i)<<20, 0x80000, 1, name, fixedInfo(), 35, cv, 0, 0)...)
	}
	w.stream(4, u32(90), modules)
	var handles []byte
	for i := range 150 {
		handles = append(handles, le(u64(uint64(4*i)), w.sharedText(), u32(0), u32(0), u32(0), u32(1), u32(1), u32(0), u32(0))...)
	}
	w.stream(12, u32(16), u32(40), u32(150), u32(0), handles)
	w.stream(15, miscInfo(0x3f7))
	w.stream(16, u32(16), u32(48), u64(500), zeros(500*48))
	return w.bytes()
}

// sharedText returns the offset of one shared type name.
func (w *writer) sharedText() uint32 {
	if w.shared == 0 {
		w.shared = w.text("Event")
	}
	return w.shared
}

func BenchmarkDecodeAll100KB(b *testing.B) {
	file := smallDump()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		f := mustOpen(b, file)
		if d := f.DecodeAll(); len(d) != 0 {
			b.Fatal(d)
		}
	}
}

func benchmarkRanges(b *testing.B, use func(*File)) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	rva := w.blob(zeros(64))
	list := le(u32(100_000))
	for i := range uint64(100_000) {
		list = append(list, le(0x7ff000000000+i*64, u32(24), rva)...)
	}
	w.stream(5, list)
	file := w.bytes()
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(bytes.NewReader(file), int64(len(file)), "bench")
		if err != nil {
			b.Fatal(err)
		}
		use(f)
	}
}

// Opening must not depend on what the streams hold.
func BenchmarkOpen100kRanges(b *testing.B) { benchmarkRanges(b, func(*File) {}) }

func BenchmarkMemory100kRanges(b *testing.B) {
	benchmarkRanges(b, func(f *File) { f.Memory() })
}

func BenchmarkFunctionTableLookup(b *testing.B) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	body := le(u32(24), u32(32), u32(0), u32(12), u32(1), u32(0), u64(0x10000), u64(0x10000+16*8000), u64(0x10000), u32(8000), u32(0))
	for i := range 8000 {
		body = append(body, le(u32(16*i), u32(16*i+16), u32(i))...)
	}
	w.stream(13, body)
	tables, err := w.open(b).FunctionTables()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tables[0].Lookup(0x10000 + 16*4321); !ok {
			b.Fatal("not found")
		}
	}
}
