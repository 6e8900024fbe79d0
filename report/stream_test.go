package report

import (
	"io"
	"runtime"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// wideIncident has many threads with long stacks of distinct frames. The halves
// share one slice: only the rendering's own memory is measured.
func wideIncident(threads, frames int) *triage.Incident {
	half := &triage.Half{Stop: unwind.Stop{Reason: unwind.StopEndOfStack}, Registers: registers(dump.AMD64, 0x7ffe63870000, 0xd67c9fe328)}
	for i := range frames {
		half.Frames = append(half.Frames, frame(0xd67c9fe328+uint64(i)*64, 0x7ffe63870000+uint64(i)*16, ntdll, "RtlDoesSomething", uint64(i), unwind.MethodPdata))
	}
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Crashing: -1, Modules: []*triage.Module{ntdll}}
	for i := range threads {
		inc.Threads = append(inc.Threads, triage.Thread{Thread: dump.Thread{ID: uint32(i)}, User: half})
	}
	return inc
}

// peakWriter samples the heap while output passes.
type peakWriter struct {
	n     int64
	calls int
	peak  uint64
}

func (w *peakWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	if w.calls++; w.calls%64 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.peak = max(w.peak, m.HeapAlloc)
	}
	return len(p), nil
}

// The whole output of a thousand deep threads is hundreds of megabytes; what
// the writer holds must not be.
func TestJSONStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a thousand threads")
	}
	inc := wideIncident(1000, 1000)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	w := &peakWriter{}
	if err := JSON(w, inc, testOptions); err != nil {
		t.Fatal(err)
	}
	if w.n < 100<<20 {
		t.Errorf("only %d bytes came out", w.n)
	}
	if grown := int64(w.peak) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("heap grew by %d bytes while %d bytes were written", grown, w.n)
	}
}

func BenchmarkJSON1000x1000(b *testing.B) {
	inc := wideIncident(1000, 1000)
	w := &peakWriter{}
	b.ReportAllocs()
	for b.Loop() {
		if err := JSON(w, inc, testOptions); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w.peak)/(1<<20), "peak-MB")
	b.SetBytes(w.n / int64(b.N))
}

func BenchmarkText1000x1000(b *testing.B) {
	inc := wideIncident(1000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Text(io.Discard, inc, testOptions); err != nil {
			b.Fatal(err)
		}
	}
}
