package minidump

import (
	"bytes"
	"testing"

	"dumptriage/dump"
)

// userDump builds a full user dump by the public layout of
// USERMODE_CRASHDUMP_HEADER64 or 32, its arrays in an order of its own.
// contextsFirst puts the CONTEXT array at ThreadOffset, as Ghidra reads it, else
// at ThreadStateOffset, as the name suggests.
func userDump(is64, contextsFirst bool) []byte {
	b := zeros(96)
	put := func(values ...any) uint64 {
		off := len(b)
		b = append(b, le(values...)...)
		return uint64(off)
	}
	ptr := func(v uint64) any {
		if is64 {
			return v
		}
		return uint32(v)
	}
	pad := func() any {
		if is64 {
			return uint32(0)
		}
		return []byte{}
	}
	machine, valid := 0x8664, "DU64"
	context := le(amd64Context(0x401000, 0x5fff0), amd64Context(0x402000, 0x6fff0))
	if !is64 {
		machine, valid = 0x14c, "DUMP"
		context = le(x86Context(0x401000, 0x5fff0), x86Context(0x402000, 0x6fff0))
	}
	var threads []byte
	for i := range 2 { // id, suspend count, class, priority, TEB, seven spare pointers
		threads = append(threads, le(u32(10+i), u32(i), u32(0x20), u32(8), ptr(0x7f0000+uint64(i)<<16))...)
		for range 7 {
			threads = append(threads, le(ptr(0))...)
		}
	}
	contexts, records := put(context), put(threads)
	modules := put(ptr(0x400000), u32(0x9000), u32(10), []byte("c:\\ab.exe\x00"), ptr(0x10000000), u32(0x1000), u32(6), []byte("x.dll\x00"))
	region := func(base uint64, size uint64, state int) []byte {
		return le(ptr(base), ptr(base), u32(4), pad(), ptr(size), u32(state), u32(4), u32(0x20000), pad())
	}
	regions := put(region(0x5f000, 16, 0x1000), region(0x60000, 0x1000, 0x2000), region(0x400000, 8, 0x1000))
	event := put(u32(1), u32(4242), u32(11), pad(), u32(0xc0000005), u32(0), ptr(0), ptr(0x402000), u32(2), pad(), ptr(1), ptr(0x45), zeros(13*8), u32(1))
	data := put([]byte("stack at 0x5f000MZ......"))
	header := le([]byte("USER"), []byte(valid), u32(5), u32(2600), u32(machine), u32(2), u32(2), u32(3))
	first, second := contexts, records
	if !contextsFirst {
		first, second = records, contexts
	}
	for _, off := range []uint64{first, modules, data, regions, event, second, 0, 0} {
		header = append(header, le(ptr(off))...)
	}
	return at(b, 0, header)
}

func TestUserDump(t *testing.T) {
	for _, is64 := range []bool{true, false} {
		for _, contextsFirst := range []bool{true, false} {
			b := userDump(is64, contextsFirst)
			u, err := OpenUserDump(bytes.NewReader(b), int64(len(b)), "test.dmp")
			if err != nil {
				t.Fatal(err)
			}
			th, m := u.Threads(), u.Modules()
			if len(th) != 2 || th[1].ID != 11 || th[1].SuspendCount != 1 || th[1].TEB != 0x800000 {
				t.Fatalf("threads %+v", th)
			}
			if pc, ok := th[1].Context.PC(); !ok || pc != 0x402000 {
				t.Errorf("64-bit %v, contexts first %v: pc %#x", is64, contextsFirst, pc)
			}
			if len(m) != 2 || m[0].Path != `c:\ab.exe` || m[1].Base != 0x10000000 || m[1].Size != 0x1000 {
				t.Errorf("modules %+v", m)
			}
			// The reserved region has no bytes in the file.
			if got := readAll(t, u.Memory(), 0x5f000, 16) + readAll(t, u.Memory(), 0x400000, 8); got != "stack at 0x5f000MZ......" {
				t.Errorf("memory %q", got)
			}
			if got := readAll(t, u.Memory(), 0x60000, 8); got != "" {
				t.Errorf("reserved memory %q", got)
			}
			e := u.Exception()
			if e == nil || e.ThreadID != 11 || e.Code != 0xc0000005 || e.Address != 0x402000 || len(e.Parameters) != 2 || e.Parameters[1] != 0x45 {
				t.Fatalf("exception %+v", e)
			}
			if pc, _ := e.Context.PC(); pc != 0x402000 {
				t.Errorf("exception's pc %#x", pc)
			}
			p, want := u.Process(), dump.FormatUser32
			if is64 {
				want = dump.FormatUser64
			}
			if p.PID != 4242 || !p.HasPID || p.Name != "ab.exe" || u.Format() != want || len(u.Regions()) != 3 {
				t.Errorf("process %+v, format %v", p, u.Format())
			}
			wantClean(t, u)
		}
	}
}

func TestUserDumpRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		b    []byte
		code dump.Code
	}{
		"minidump":   {richDump(), dump.UnsupportedFormat},
		"cut":        {userDump(true, true)[:80], dump.Truncated},
		"Itanium":    {at(userDump(true, true), 16, u32(0x200)), dump.UnsupportedFormat},
		"mixed size": {at(userDump(true, true), 16, u32(0x14c)), dump.UnsupportedFormat},
	} {
		_, err := OpenUserDump(bytes.NewReader(tc.b), int64(len(tc.b)), "test.dmp")
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantCode(t, err, tc.code)
	}
}

func decodeUserDump(t testing.TB, b []byte) *UserDump {
	u, err := OpenUserDump(bytes.NewReader(b), int64(len(b)), "test.dmp")
	if err != nil {
		return nil
	}
	u.Threads()
	u.Modules()
	u.Exception()
	u.Process()
	for _, r := range u.memoryRanges().Ranges() {
		if uint64(r.Off)+r.Size > uint64(len(b)) {
			t.Fatalf("range %+v outside a file of %#x bytes", r, len(b))
		}
	}
	for _, e := range u.Damage() {
		if e.Msg == "" || e.File == "" {
			t.Fatalf("%#v", e)
		}
	}
	return u
}

func TestBrokenUserDump(t *testing.T) {
	for _, is64 := range []bool{true, false} {
		whole := userDump(is64, true)
		for n := range len(whole) {
			if u := decodeUserDump(t, whole[:n]); u != nil && len(u.Damage()) == 0 {
				t.Fatalf("cut to %d of %d bytes: no damage", n, len(whole))
			}
		}
		for i := 0; i+4 <= len(whole); i += 4 {
			for _, v := range []uint32{0xffffffff, 0x7fffffff, 0} {
				decodeUserDump(t, at(bytes.Clone(whole), i, v))
			}
		}
	}
}

func FuzzOpenUserDump(f *testing.F) {
	f.Add(userDump(true, true))
	f.Add(userDump(false, false))
	f.Fuzz(func(t *testing.T, b []byte) { decodeUserDump(t, b) })
}
