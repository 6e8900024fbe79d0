package minidump

import (
	"strings"
	"testing"

	"dumptriage/dump"
)

// module is a MINIDUMP_MODULE of 108 bytes: base, size, checksum, time stamp,
// name, VS_FIXEDFILEINFO (13 values), CodeView and misc locations, 16 reserved.
func module(base uint64, size, stamp, name uint32, version []byte, cvSize, cvRVA, miscSize, miscRVA uint32) []byte {
	return le(base, size, u32(0xc0ffee), stamp, name, version, cvSize, cvRVA, miscSize, miscRVA, u64(0), u64(0))
}

// fixedInfo is a VS_FIXEDFILEINFO with file version 10.0.19041.3803 and product
// version 1.2.3.4.
func fixedInfo() []byte {
	return le(u32(0xfeef04bd), u32(0x10000), u32(10<<16), u32(19041<<16|3803), u32(1<<16|2), u32(3<<16|4),
		u32(0x3f), u32(1), u32(0x40004), u32(2), u32(7), u32(0x11), u32(0x22))
}

var testGUID = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func TestModules(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	a, b, c := w.text(`C:\Windows\System32\ntdll.dll`), w.text(`D:\программа.exe`), w.text("libhost.so")
	rsds := w.blob([]byte("RSDS"), testGUID, u32(3), []byte("ntdll.pdb\x00"))
	nb10 := w.blob([]byte("NB10"), u32(0), u32(0x4a5b6c7d), u32(2), []byte("old.pdb\x00"))
	elf := w.blob([]byte("BpEL"), zeros(20))
	misc := w.blob(u32(1), u32(12+8), uint8(0), zeros(3), []byte("old.dbg\x00"))
	w.stream(4, u32(3),
		module(0x7ffc00000000, 0x1f8000, 0x5e0f1a2b, a, fixedInfo(), 34, rsds, 0, 0),
		module(0x140000000, 0x9000, 1, b, zeros(52), 24, nb10, 20, misc),
		module(0x7f0000000000, 0x1000, 0, c, zeros(52), 24, elf, 0, 0))
	// Unloaded: header of 12, records of 28 bytes, 4 more than documented.
	w.stream(14, u32(12), u32(28), u32(1), u64(0x7ffb00000000), u32(0x4000), u32(7), u32(0x5d000000), w.text("gone.dll"), u32(0))
	f := w.open(t)
	wantClean(t, f)
	m := f.Modules()
	if len(m) != 3 {
		t.Fatalf("%d modules", len(m))
	}
	want := dump.Module{Base: 0x7ffc00000000, Size: 0x1f8000, TimeDateStamp: 0x5e0f1a2b, CheckSum: 0xc0ffee, Path: `C:\Windows\System32\ntdll.dll`,
		Version: dump.FileVersion{10, 0, 19041, 3803}, Product: dump.FileVersion{1, 2, 3, 4},
		CodeView: dump.CodeView{Signature: "RSDS", GUID: [16]byte(testGUID), Age: 3, PDB: "ntdll.pdb"}}
	if m[0] != want {
		t.Errorf("module %+v\nwant   %+v", m[0], want)
	}
	if m[1].Name() != "программа.exe" || m[1].Version != (dump.FileVersion{}) {
		t.Errorf("module %+v", m[1])
	}
	if m[1].CodeView != (dump.CodeView{Signature: "NB10", Stamp: 0x4a5b6c7d, Age: 2, PDB: "old.pdb"}) {
		t.Errorf("NB10 %+v", m[1].CodeView)
	}
	if m[2].CodeView.Signature != "" {
		t.Errorf("an ELF build id is no PDB: %+v", m[2].CodeView)
	}
	records, _ := f.ModuleList()
	if records[2].CodeViewSignature != 0x4c457042 { // "BpEL" little-endian
		t.Errorf("signature %#x", records[2].CodeViewSignature)
	}
	if records[1].Misc == nil || *records[1].Misc != (DebugMisc{1, "old.dbg"}) || records[0].Misc != nil {
		t.Errorf("misc %+v", records[1].Misc)
	}
	if fx := records[0].Fixed; fx == nil || *fx != (FixedFileInfo{0x3f, 1, 0x40004, 2, 7, 0x1100000022}) || records[1].Fixed != nil {
		t.Errorf("fixed info %+v", fx)
	}
	u := f.UnloadedModules()
	if len(u) != 1 || u[0].Name() != "gone.dll" || !u[0].Unloaded || u[0].Base != 0x7ffb00000000 || u[0].Size != 0x4000 || u[0].TimeDateStamp != 0x5d000000 {
		t.Errorf("unloaded %+v", u)
	}
	if p := f.Process(); p.Name != "программа.exe" || p.HasPID {
		t.Errorf("process %+v", p)
	}
}

func TestBrokenModules(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	long := w.blob(u32(0xfffffff0), wide("x"))
	half := w.blob([]byte("RSDS"), zeros(4))
	w.stream(4, u32(0xffffffff),
		module(0x10000, 0x1000, 1, 0xfffffff0, zeros(52), 24, 0xffffff00, 0, 0),
		module(0x20000, 0x1000, 2, long, zeros(52), 8, half, 20, 0xffffff00))
	f := w.open(t)
	m := f.Modules()
	if len(m) != 2 || m[0].Base != 0x10000 || m[1].TimeDateStamp != 2 || m[0].Path != "" || m[1].Path != "" {
		t.Fatalf("modules %+v", m)
	}
	if m[0].CodeView != (dump.CodeView{}) || m[1].CodeView != (dump.CodeView{}) {
		t.Error("half an identity was taken for one")
	}
	if e := wantDamage(t, f, dump.BadCount, "ModuleList"); !strings.Contains(e.Msg, "4294967295") {
		t.Errorf("%v", e)
	}
	wantDamage(t, f, dump.Truncated, "ModuleList")
	if e := wantDamage(t, f, dump.BadRecord, "ModuleList"); e.Offset != int64(long) {
		t.Errorf("%v", e)
	}
}

// Names that overlap must not make memory of what the file does not hold: 4000
// names of 16,705 bytes and as many records of 8 KB, in a file of about 500 KB.
func TestOverlappingNames(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	var pool []byte
	for range 8000 {
		pool = append(pool, le(u32(0x4141))...) // a length of 16,705 bytes at every place
	}
	for i := 2; i < len(pool); i += 4 {
		at(pool, i, u16(0)) // the length's upper half; text ends at it, so count by the budget
	}
	rva := w.blob(pool)
	var list []byte
	for i := range 4000 {
		list = append(list, module(0x10000, 1, 0, rva+uint32(4*i), zeros(52), 0x2000, rva+uint32(i), 0, 0)...)
	}
	w.stream(4, u32(4000), list)
	f := w.open(t)
	if len(f.Modules()) != 4000 {
		t.Errorf("%d modules", len(f.Modules()))
	}
	text := 0
	for _, m := range f.Modules() {
		text += len(m.Path)
	}
	if text == 0 || int64(text) > f.Size() {
		t.Errorf("%d bytes of names from a file of %d", text, f.Size())
	}
	wantDamage(t, f, dump.Limit, "ModuleList")
}

func TestTableHeaders(t *testing.T) {
	for name, stream := range map[string][]byte{
		"header too small": le(u32(8), u32(24), u32(1), zeros(24)),
		"record too small": le(u32(12), u32(20), u32(1), zeros(24)),
		"record zero":      le(u32(12), u32(0), u32(1), zeros(24)),
		"header too large": le(u32(0xfffffff0), u32(24), u32(1), zeros(24)),
		"record too large": le(u32(12), u32(0xffffffff), u32(1), zeros(24)),
		"cut header":       le(u32(12), u32(24)),
	} {
		w := newWriter()
		w.stream(7, systemInfo(onAMD64, 0))
		w.stream(14, stream)
		if _, err := w.open(t).UnloadedModuleList(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(14, u32(12), u32(0), u32(0)) // an empty list needs no record size
	wantClean(t, w.open(t))
}

func TestHostModules(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(0xfff0, u32(1), module(0x7f1200000000, 0x1000, 0, w.text("/lib/libc.so.6"), zeros(52), 0, 0, 0, 0))
	f := w.open(t)
	wantClean(t, f)
	if h, err := f.HostModules(); err != nil || len(h) != 1 || h[0].Path != "/lib/libc.so.6" {
		t.Errorf("%+v %v", h, err)
	}
	if len(f.Modules()) != 0 {
		t.Error("modules of the Unix side are not the process's")
	}
}
