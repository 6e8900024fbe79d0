package pdata

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
)

func seeds(f *testing.F) {
	for _, name := range []string{"fixture.dll", "version2.dll", "arm64ec/ec.dll"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint32(0x1000), uint64(0))
	}
	f.Add(withTable(chained(0x1010, 0x1020, 0x4000), 0x1040, 0x1050, 0x4000, 0x1010, 0x1020, 0x4001).bytes(), uint32(0x1018), uint64(1))
	f.Add(exportPE(0xffffffff, 3, []uint32{0x1010, 0x4410}, []uint32{0x4400, 0x4402}, []uint16{0, 1}, "a\x00b\x00").bytes(), uint32(0x1018), uint64(2))
	f.Add(debugPE(0xffffffff, 0x4080, 0).bytes(), uint32(0), uint64(4))
}

// exercise calls everything that reads the image. It fails on answers that
// contradict each other; panics and hangs fail by themselves.
func exercise(t *testing.T, im *Image, rva uint32) {
	im.Identity()
	im.CodeView()
	im.HasFunctionTable()
	for _, at := range []uint32{rva, 0, 0x1000, 0xffffffff} {
		rf, ok, err := im.Lookup(at)
		if ok && err != nil {
			t.Errorf("Lookup(%#x): both %v and %v", at, rf, err)
		}
		if ok && rf.UnwindInfo&1 != 0 {
			t.Errorf("Lookup(%#x) returned an indirect entry", at)
		}
		checkError(t, err)
		im.Primary(rf)
		u, err := im.UnwindInfo(rf.UnwindInfo)
		if (u == nil) == (err == nil) {
			t.Errorf("UnwindInfo: %v, %v", u, err)
		}
		checkError(t, err)
		if s, ok := im.NearestExport(at); ok && (s.RVA > at || s.Name == "" || !im.Executable(s.RVA)) {
			t.Errorf("NearestExport(%#x) = %v", at, s)
		}
		fn, ok, err := im.LookupARM64(at)
		checkError(t, err)
		if ok && at-fn.Begin >= fn.Length {
			t.Errorf("LookupARM64(%#x) = %+v", at, fn)
		}
		_, err = im.ARM64Info(fn)
		checkError(t, err)
		if a := im.CodeArch(at); !im.Hybrid() && a != dump.ArchOfMachine(im.Identity().Machine) {
			t.Errorf("CodeArch(%#x) = %s in an image of one machine", at, a)
		}
		b := make([]byte, 300)
		if n, err := im.ReadRVA(b, at); (n == len(b)) != (err == nil) {
			t.Errorf("ReadRVA(%#x): %d, %v", at, n, err)
		}
	}
	n := 0
	for range im.Exports() {
		if n++; n == 1000 {
			break
		}
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *dump.Error
	if err != nil && !errors.As(err, &e) {
		t.Errorf("%T is not a *dump.Error: %v", err, err)
	}
}

func FuzzOpenFile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, rva uint32, _ uint64) {
		id, errID := ReadIdentity(bytes.NewReader(b), int64(len(b)))
		im, err := OpenFile(bytes.NewReader(b), int64(len(b)), "fuzz")
		checkError(t, err)
		checkError(t, errID)
		if err == nil && (errID != nil || id != im.Identity()) {
			t.Errorf("ReadIdentity says %v, %v; OpenFile %v", id, errID, im.Identity())
		}
		if err == nil {
			exercise(t, im, rva)
		}
	})
}

// FuzzOpenMapped takes the bytes as memory as they are, without the pages whose
// bits are set in holes.
func FuzzOpenMapped(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, rva uint32, holes uint64) {
		const base = 0xfffff80000010000
		mem := pages{}
		for off := 0; off < len(b); off += 0x1000 {
			if holes>>(off>>12&63)&1 == 0 {
				mem[base+uint64(off)] = append(bytes.Clone(b[off:min(len(b), off+0x1000)]), make([]byte, max(0, off+0x1000-len(b)))...)
			}
		}
		im, err := OpenMapped(mem, base, "fuzz")
		if checkError(t, err); err == nil {
			exercise(t, im, rva)
		}
		if im, err = OpenHeaderless(mem, base, uint32(len(b)), rva, uint32(holes>>32), "fuzz"); err == nil {
			exercise(t, im, rva)
		}
		checkError(t, err)
	})
}

func FuzzUnwindInfo(f *testing.F) {
	f.Add([]byte{0x02, 2, 4, 0, 0x03, 0x16, 0x00, 0x06, 0x02, 0x60, 0x01, 0x70})
	f.Add([]byte{0x21, 6, 3, 0, 6, 0x42, 4, 0x01, 0x00, 0x10, 0, 0, 0, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0, 0x40, 0, 0})
	f.Add([]byte{0x19, 4, 1, 0x35, 4, 0x03, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{3, 0, 0, 0})
	f.Add(everyWOD)
	f.Add(threeEnds)
	f.Add([]byte{3 | 12<<3, 4, 6, 1 | 1<<5, 0, 0, 0, 0x0b, 0x10, 0, 0, 0, 4, 0, 0, 0, 0x38, 0, 0, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0, 0x40, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := DecodeUnwindInfo(b)
		checkError(t, err)
		if err == nil && len(u.Codes)+len(u.Epilogs) > int(b[2]) {
			t.Errorf("%d codes and %d epilogs from %d slots", len(u.Codes), len(u.Epilogs), b[2])
		}
		if err == nil && (u.V3 != nil) != (u.Version == 3) {
			t.Errorf("version %d with %+v", u.Version, u.V3)
		}
		if err == nil && u.V3 != nil && (len(u.V3.Prolog) != int(b[3]&31) || len(u.V3.Epilogs) != int(b[3]>>5)) {
			t.Errorf("%d operations and %d epilogs by %#x", len(u.V3.Prolog), len(u.V3.Epilogs), b[3])
		}
		ParseCodeView(b)
	})
}
