package triage

import (
	"bytes"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/minidump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

func walkJIT(t *testing.T, opt Options) []Frame {
	t.Helper()
	d, err := Open("../fixtures/jit/jithost.dmp")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := Analyze(d, nil, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	return inc.Threads[inc.Crashing].User.Frames
}

// With the native image every frame of the scene is exact, across code made at
// run time and back.
func TestJITWithImage(t *testing.T) {
	want := fixtures.JITAMD64().Walk
	got := walkJIT(t, Options{Images: []string{"../fixtures/jit/images"}})
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i, f := range got {
		if f.IP != want[i].PC || f.SP != want[i].SP || i > 0 && f.Trust != unwind.TrustCFI {
			t.Errorf("frame %d: %+v, want %#x at %#x", i, f.Frame, want[i].PC, want[i].SP)
		}
	}
}

// Without it rbp is lost in the first frame; the frames are the same, and say
// how they were found.
func TestJITWithoutImage(t *testing.T) {
	want := fixtures.JITAMD64().Walk
	got := walkJIT(t, Options{})
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	trust := []unwind.Trust{unwind.TrustContext, unwind.TrustScan, unwind.TrustCFIScan, unwind.TrustCFIScan, unwind.TrustCFI}
	for i, f := range got {
		if f.IP != want[i].PC || f.SP != want[i].SP || f.Trust != trust[i] {
			t.Errorf("frame %d: %+v, want %#x at %#x, %v", i, f.Frame, want[i].PC, want[i].SP, trust[i])
		}
	}
}

// bigTable is a FunctionTable stream of n functions of 0x40 bytes, opened as a
// dump.
func bigTable(tb testing.TB, n int, shuffled bool) *space {
	tb.Helper()
	table := fixtures.FunctionTable{Min: jitBase, Max: jitBase + uint64(n)*0x40, Base: jitBase}
	for i := range n {
		at := i
		if shuffled {
			at = i * 7919 % n // prime, so that each comes once
		}
		table.Functions = append(table.Functions, &fixtures.Function{RVA: uint32(at) * 0x40, Size: 0x30})
		table.UnwindInfo = append(table.UnwindInfo, 0x800000)
	}
	m := fixtures.Minidump{
		System:  fixtures.SystemInfo{Processor: fixtures.ProcessorAMD64, Major: 10},
		Streams: []fixtures.Stream{{Type: fixtures.StreamFunctionTable, Data: fixtures.FunctionTables(table)}},
	}
	b := m.Bytes()
	f, err := minidump.Open(bytes.NewReader(b), int64(len(b)), "table.dmp")
	if err != nil {
		tb.Fatal(err)
	}
	return newSpace(f, symbols.NewStore(nil))
}

func TestStreamOrder(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		s := bigTable(t, 1000, shuffled)
		for i := range uint64(1000) {
			va := jitBase + i*0x40 + i%0x30
			table, base, method := s.DynamicTable(va)
			if table == nil || method != unwind.MethodFunctionTable {
				t.Fatalf("%#x: no table", va)
			}
			if rf, ok, _ := table.Lookup(uint32(va - base)); !ok || rf.Begin != uint32(i*0x40) {
				t.Fatalf("shuffled %v: %#x: %+v %v", shuffled, va, rf, ok)
			}
			if rf, ok, _ := table.Lookup(uint32(i*0x40 + 0x30 + i%0x10)); ok {
				t.Fatalf("shuffled %v: between functions: %+v", shuffled, rf)
			}
		}
	}
}

// BenchmarkFunctionTable looks addresses up in a stream of 62,000 functions,
// with none remembered.
func BenchmarkFunctionTable(b *testing.B) {
	s := bigTable(b, 62_000, false)
	va := uint64(jitBase)
	b.ReportAllocs()
	for b.Loop() {
		va += 0x40 * 7919
		if va >= jitBase+62_000*0x40 {
			va -= 62_000 * 0x40
		}
		table, base, _ := s.DynamicTable(va)
		if _, ok, _ := table.Lookup(uint32(va - base)); !ok {
			b.Fatalf("%#x", va)
		}
	}
}
