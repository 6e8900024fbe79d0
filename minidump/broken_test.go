package minidump

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"dumptriage/dump"
)

// richDump is a small dump with one of every stream.
func richDump() []byte {
	w := newWriter()
	w.flags, w.stamp = 0x21826, 1700000000
	w.stream(7, systemInfo(onAMD64, w.text("Service Pack 1")))
	teb := zeros(0x80)
	at(teb, 8, u64(0x60000), u64(0x50000))
	at(teb, 0x30, u64(0x2f0000))
	ctx, tebAt, stack := w.blob(amd64Context(0x140001000, 0x5ff00)), w.blob(teb), w.blob(zeros(0x100))
	w.stream(3, u32(2), thread(1, 0x2f0000, 0x5ff00, 0x100, stack, 0x4d0, ctx), thread(2, 0, 0x6ff00, 0, 0, 0x4d0, ctx))
	name, cv := w.text(`C:\app\app.exe`), w.blob([]byte("RSDS"), testGUID, u32(1), []byte("app.pdb\x00"))
	w.stream(4, u32(1), module(0x140000000, 0x10000, 0x60000000, name, fixedInfo(), 32, cv, 0, 0))
	w.stream(5, u32(2), u64(0x2f0000), u32(0x80), tebAt, u64(0x140000000), u32(8), w.blob([]byte("MZ......")))
	w.stream(6, u32(1), u32(0), u32(0xc0000005), u32(0), u64(0), u64(0x140001000), u32(2), u32(0), u64(0), u64(8), zeros(13*8), u32(0x4d0), ctx)
	w.stream(10, []byte("comment\x00"))
	w.stream(11, wide("comment"))
	info := w.blob(u32(0), u32(3), u32(8), u64(1))
	w.stream(12, u32(16), u32(40), u32(1), u32(0), u64(4), w.text("Event"), w.text("named"), u32(0), u32(0), u32(1), u32(1), info, u32(0))
	w.stream(13, u32(24), u32(32), u32(8), u32(12), u32(1), u32(0), u64(0x10000), u64(0x20000), u64(0x10000), u32(1), u32(4), zeros(8), u32(0), u32(16), u32(0x100), zeros(4))
	w.stream(14, u32(12), u32(24), u32(1), u64(0x7000), u32(0x1000), u32(0), u32(1), w.text("gone.dll"))
	w.stream(15, miscInfo(0x3f7))
	w.stream(16, u32(16), u32(48), u64(1), u64(0x10000), u64(0x10000), u32(4), u32(0), u64(0x1000), u32(0x1000), u32(4), u32(0x20000), u32(0))
	w.stream(17, u32(12), u32(64), u32(1), u32(1), zeros(60))
	w.stream(18, u32(16), u32(288), u32(1), u32(0), u64(4), u32(1), u32(1), u32(1), u32(0), u32(1), u32(0), u64(0x1000), zeros(31*8))
	w.stream(19, u32(16+20), u32(1), u32(16), u32(16), u32(20), u32(1), u64(4), u32(0))
	w.stream(21, u16(1), u16(15), zeros(488))
	w.stream(22, u16(2), u16(31), u32(0), zeros(18*8))
	w.stream(24, u32(1), u32(1), uint64(w.text("main")))
	w.stream(0xfff0, u32(1), module(0x7f0000000000, 0x1000, 0, name, zeros(52), 0, 0, 0, 0))
	w.stream(0x47670001, u32(3), u32(1), u32(2))
	w.stream(0x47670002, zeros(776))
	key := w.blob(u32(3), []byte("key\x00"))
	dict := w.blob(u32(1), key, key)
	module := w.blob(u32(1), u32(8), w.blob(u32(1), key), u32(12), dict, u32(16), w.blob(u32(1), key, u16(1), u16(0), key))
	w.stream(0x43500001, u32(1), testGUID, testGUID, u32(12), dict, u32(16), w.blob(u32(1), u32(0), u32(28), module))
	base := w.blob([]byte("memory64"))
	w.stream(9, u64(1), uint64(base), u64(0x90000), u64(8))
	w.stream(0x99999999, []byte("private"))
	return w.bytes()
}

func TestRichDumpIsWhole(t *testing.T) {
	f := mustOpen(t, richDump())
	wantClean(t, f)
	for _, s := range f.Streams() {
		if s.Err != nil || s.Note != "" {
			t.Errorf("stream %+v", s)
		}
	}
	tables, _ := f.FunctionTables()
	if len(f.Threads()) != 2 || len(f.Modules()) != 1 || len(f.Handles()) != 1 || len(tables) != 1 || f.Threads()[0].Name != "main" {
		t.Error("the dump that the tests below break is not what they think")
	}
}

// decodeBroken opens and decodes whatever it is given. It must not panic, and
// what it returns must keep its promises.
func decodeBroken(t testing.TB, b []byte) *File {
	f, err := Open(bytes.NewReader(b), int64(len(b)), "test.dmp")
	if err != nil {
		if _, ok := err.(*dump.Error); !ok {
			t.Fatalf("error of type %T", err)
		}
		return nil
	}
	for _, e := range f.DecodeAll() {
		if e.Msg == "" || e.Code == "" || e.File != "test.dmp" {
			t.Fatalf("damage without a message, code or file: %#v", e)
		}
	}
	if f.System() == nil || f.Process() == nil || f.Memory() == nil {
		t.Fatal("a nil answer")
	}
	for _, r := range f.memoryRanges().Ranges() {
		if r.Off < 32 || uint64(r.Off)+r.Size > uint64(len(b)) {
			t.Fatalf("range %+v outside a file of %#x bytes", r, len(b))
		}
	}
	tables, _ := f.FunctionTables()
	for i := range tables {
		tables[i].Lookup(tables[i].Base + 1)
		if n := tables[i].Count; n > 0 && len(tables[i].EntryBytes(n-1)) != tables[i].EntrySize {
			t.Fatalf("entry %d of %d cannot be read", n-1, n)
		}
	}
	return f
}

// A dump cut anywhere gives an answer, and never a clean one: the directory is
// the file's end.
func TestTruncatedAtEveryByte(t *testing.T) {
	whole := richDump()
	for n := range len(whole) {
		if f := decodeBroken(t, whole[:n]); f != nil && len(f.Damage()) == 0 {
			t.Fatalf("cut to %d of %d bytes: no damage", n, len(whole))
		}
	}
}

// The same with the directory in front, so that each cut takes away data.
func TestTruncatedData(t *testing.T) {
	whole := richDump()
	dir := int(uint32(whole[12]) | uint32(whole[13])<<8 | uint32(whole[14])<<16)
	moved := bytes.Clone(whole)
	n := (len(whole) - dir) / 12
	shift := uint32(12 * n)
	out := append(bytes.Clone(moved[:32]), moved[dir:]...)
	out = append(out, moved[32:dir]...)
	at(out, 12, u32(32))
	for i := range n { // locations inside streams stay wrong: they are damage of their own
		p := 32 + 12*i + 8
		at(out, p, uint32(out[p])|uint32(out[p+1])<<8|uint32(out[p+2])<<16+shift)
	}
	for cut := len(out) - 1; cut > 32+int(shift); cut-- {
		f := decodeBroken(t, out[:cut])
		if f != nil && len(f.Damage()) == 0 {
			t.Fatalf("cut to %d of %d bytes: no damage", cut, len(out))
		}
	}
}

func TestEveryBitFlipped(t *testing.T) {
	whole := richDump()
	b := bytes.Clone(whole)
	for i := range len(b) {
		for _, bit := range []byte{1 << (i % 7), 0x80} {
			b[i] ^= bit
			decodeBroken(t, b)
			b[i] ^= bit
		}
	}
}

// Every aligned field in turn is given the values that overflow sums.
func TestEveryFieldExtreme(t *testing.T) {
	b := richDump()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := 0; i+4 <= len(b); i += 4 {
		old := bytes.Clone(b[i : i+4])
		for _, v := range []uint32{0xffffffff, 0x7fffffff, 0x80000000, 0xfffffff0, uint32(len(b)), uint32(len(b)) - 1} {
			at(b, i, v)
			decodeBroken(t, b)
		}
		copy(b[i:], old)
	}
	runtime.ReadMemStats(&after)
	decodes := uint64(len(b) / 4 * 6)
	if per := (after.TotalAlloc - before.TotalAlloc) / decodes; per > 64*uint64(len(b)) {
		t.Errorf("%d bytes allocated per decode of a file of %d", per, len(b))
	}
}

func TestRandomDamage(t *testing.T) {
	whole := richDump()
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		b := bytes.Clone(whole)
		for range 1 + rng.IntN(20) {
			switch rng.IntN(3) {
			case 0:
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			case 1:
				at(b, rng.IntN(len(b)-4), u32(0xffffffff))
			case 2: // one field's bytes in another's place
				copy(b[rng.IntN(len(b)-8):], whole[rng.IntN(len(b)-8):][:4])
			}
		}
		decodeBroken(t, b)
	}
}

func TestConcurrentUse(t *testing.T) {
	f := mustOpen(t, richDump())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f.DecodeAll()
			if len(f.Threads()) != 2 || len(f.Modules()) != 1 {
				t.Error("a half-decoded answer")
			}
			var p [8]byte
			if _, err := f.Memory().ReadAt(p[:], 0x90000); err != nil || string(p[:]) != "memory64" {
				t.Errorf("%q %v", p, err)
			}
		})
	}
	wg.Wait()
}

func FuzzOpen(f *testing.F) {
	f.Add(richDump())
	b, _ := truncatedMemory64(true)
	f.Add(b)
	w := newWriter()
	w.stream(8, u32(1), zeros(64))
	f.Add(w.bytes())
	f.Fuzz(func(t *testing.T, b []byte) { decodeBroken(t, b) })
}
