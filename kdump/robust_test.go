package kdump

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
	"dumptriage/internal/corpus"
)

// exercise asks for everything that a File can say.
func exercise(f *File) {
	_, _, _ = f.Format(), f.Kind(), f.Flags()
	_, _, _ = f.Captured(), f.System(), f.Process()
	for _, th := range f.Threads() {
		if sp, ok := th.Context.SP(); ok {
			dump.ReadUint64(f.Memory(), sp) // whatever is there
		}
	}
	f.Modules()
	f.UnloadedModules()
	f.Sections()
	f.Blobs()
	f.CPUs()
	f.Exception()
	f.BugCheck()
	f.BugCheckEntry()
	f.BrokenDriver()
	f.MemoryCounters()
	f.ThreadStatus()
	f.Comment()
	f.Damage()
}

func openAndExercise(b []byte) {
	if f, err := Open(bytes.NewReader(b), int64(len(b)), "x"); err == nil {
		exercise(f)
	}
}

func samples(t testing.TB) map[string][]byte {
	l := newLive()
	l.system(3)
	s := map[string][]byte{"bugcheck": system7E().bytes(), "live": l.finish()}
	for _, name := range []string{k01, k02, k03} {
		if path, ok := corpus.Find("kernel/" + name); ok {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s[name] = b
		}
	}
	return s
}

func TestTruncation(t *testing.T) {
	for name, b := range samples(t) {
		for i := range 300 {
			n := len(b) * i / 300
			f, err := Open(bytes.NewReader(b[:n]), int64(n), name)
			if err != nil {
				continue
			}
			exercise(f)
			// What is cut must be said. Secondary data may end anywhere: the
			// dump proper is whole before it.
			if f.tri != nil && n < int(f.tri.sizeOfDump) && len(f.Damage()) == 0 {
				t.Errorf("%s cut to %#x bytes: no word of it", name, n)
			}
		}
	}
}

func TestMutation(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for _, b := range samples(t) {
		// The parts that steer the reader: both headers, KDBG, the tables.
		f, err := Open(bytes.NewReader(b), int64(len(b)), "x")
		if err != nil {
			t.Fatal(err)
		}
		hot := []int64{0, 0x2000, int64(f.tri.kdbg.off), int64(f.tri.blocks.off), int64(f.tri.drivers.off), int64(f.tri.thread), int64(f.tri.process), int64(f.tri.prcb)}
		for range 150 {
			m := bytes.Clone(b)
			for range 1 + rng.IntN(6) {
				at := int(hot[rng.IntN(len(hot))]) + rng.IntN(0x400)
				if at+4 > len(m) {
					continue
				}
				switch rng.IntN(3) {
				case 0:
					m[at] ^= 1 << rng.IntN(8)
				case 1:
					copy(m[at:], []byte{0xff, 0xff, 0xff, 0xff})
				case 2:
					copy(m[at:], []byte{0, 0, 0, byte(rng.Uint32())})
				}
			}
			openAndExercise(m)
		}
	}
}

// TestHostileBlocks: a quarter of a million blocks that all are the same ETHREAD,
// CONTEXT or KPRCB bytes at other addresses cost neither time nor memory beyond
// the file's own size.
func TestHostileBlocks(t *testing.T) {
	const count = 1 << 18
	h := header64Bytes(4, 0x161, [4]uint64{})
	h.grow(0x2080)
	f := &bin{h.b}
	f.u32(0x2070, uint32(f.append(kdbg64())))
	f.u32(0x2074, 0x380)
	base, rsp := liveStack(0)
	parts := [][]byte{ethread64(threadSpec{base: base, state: 0xff, kernelStack: rsp - 0x40, pid: 4, tid: 8}),
		amd64Context(liveRip, rsp), prcb64(1, ethread, 0, 0), eprocess64(4, 0)}
	offs := make([]int, len(parts))
	for i, p := range parts {
		offs[i] = f.append(p)
	}
	table := len(f.b)
	f.grow(table + 16*count)
	for i := range count {
		p := i % len(parts)
		va := uint64(ethread) + uint64(i)*0x1000
		if p == 1 {
			va = rsp + uint64(i)%0x800
		}
		f.u64(table+16*i, va)
		f.u32(table+16*i+8, uint32(offs[p]))
		f.u32(table+16*i+12, uint32(len(parts[p])))
	}
	f.u32(0x2078, uint32(table))
	f.u32(0x207c, count)
	f.u32(0x2008, uint32(f.append([]byte("TRGD"))))
	f.u32(0x2004, uint32(len(f.b)))
	f.u64(0xfa0, uint64(len(f.b)))

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	o := openBytes(t, f.b)
	exercise(o)
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes: %v, heap grew %d bytes, %d threads, %d processors", len(f.b), took, grown, len(o.Threads()), len(o.CPUs()))
	if grown > 16*int64(len(f.b)) {
		t.Errorf("heap grew by %d bytes for a file of %d", grown, len(f.b))
	}
	if len(o.Threads()) > len(f.b)/0x898+1+len(o.CPUs()) {
		t.Errorf("%d threads", len(o.Threads()))
	}
	if took > time.Minute { // a hang, not a measurement
		t.Errorf("took %v", took)
	}
	runtime.KeepAlive(o)
}

func FuzzOpen(f *testing.F) {
	l := newLive()
	l.system(2)
	f.Add(system7E().bytes())
	f.Add(l.finish())
	f.Add(header64Bytes(5, 0xd1, [4]uint64{}).b)
	small := header64Bytes(4, 0x7e, [4]uint64{})
	small.grow(0x2080)
	f.Add(small.b)
	f.Add([]byte("PAGEDUMP"))
	f.Add(machine.BuildFault(machine.WindowsPAE, machine.UnexpectedKernelTrap).Triage())
	f.Add(machine.BuildFault(machine.WindowsX86, machine.KernelModeException).Triage())
	f.Fuzz(func(t *testing.T, b []byte) { openAndExercise(b) })
}

// BenchmarkOpen opens a dump and asks for its threads and processors.
func BenchmarkOpen(b *testing.B) {
	for name, data := range samples(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f, err := Open(bytes.NewReader(data), int64(len(data)), name)
				if err != nil {
					b.Fatal(err)
				}
				f.Threads()
				f.CPUs()
				f.Modules()
			}
		})
	}
}

func BenchmarkLookupBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		lookupBuild(0x5dee2b07, 0x1046000)
	}
}
