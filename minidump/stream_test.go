package minidump

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

func TestHandles(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	kind, name := w.text("Mutant"), w.text(`\BaseNamedObjects\lock`)
	second := w.blob(u32(0), u32(2), u32(4), []byte("tail"))
	first := w.blob(second, u32(3), u32(8), u64(0x1122334455667788))
	// Records of 48 bytes: 8 more than MINIDUMP_HANDLE_DESCRIPTOR_2.
	w.stream(12, u32(16), u32(48), u32(2), u32(0),
		u64(0x44), kind, name, u32(1), u32(0x1f0001), u32(2), u32(3), first, u32(0), zeros(8),
		u64(0x48), kind, u32(0), u32(0), u32(0), u32(1), u32(1), u32(0), u32(0), zeros(8))
	f := w.open(t)
	wantClean(t, f)
	h := f.Handles()
	if len(h) != 2 {
		t.Fatalf("%d handles", len(h))
	}
	a := h[0]
	if a.Value != 0x44 || a.Type != "Mutant" || a.Name != `\BaseNamedObjects\lock` || a.Attributes != 1 || a.Access != 0x1f0001 || a.HandleCount != 2 || a.PointerCount != 3 {
		t.Errorf("handle %+v", a)
	}
	if len(a.Info) != 2 || a.Info[0].Kind != 3 || !bytes.Equal(a.Info[0].Data, le(u64(0x1122334455667788))) || string(a.Info[1].Data) != "tail" {
		t.Errorf("object information %+v", a.Info)
	}
	if h[1].Type != "Mutant" || h[1].Name != "" || h[1].Info != nil {
		t.Errorf("handle %+v", h[1])
	}
}

func TestHandlesOf32Bytes(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onX86, 0))
	kind := w.text("Event")
	w.stream(12, u32(16), u32(32), u32(2), u32(0),
		u64(4), kind, u32(0), u32(0), u32(0), u32(1), u32(1),
		u64(8), kind, u32(0), u32(0), u32(0), u32(1), u32(1))
	f := w.open(t)
	wantClean(t, f)
	if h := f.Handles(); len(h) != 2 || h[1].Value != 8 || h[1].Type != "Event" || h[0].Info != nil {
		t.Errorf("handles %+v", h)
	}
}

func TestHandleInfoCycle(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	loop := w.blob(zeros(12))
	at(w.data, int(loop), loop, u32(1), u32(0))
	var chain uint32
	for range 40 {
		chain = w.blob(chain, u32(1), u32(0))
	}
	row := func(info uint32) []byte {
		return le(u64(4), u32(0), u32(0), u32(0), u32(0), u32(0), u32(0), info, u32(0))
	}
	w.stream(12, u32(16), u32(40), u32(3), u32(0), row(loop), row(chain), row(0xffffff00))
	f := w.open(t)
	h := f.Handles()
	if len(h) != 3 || len(h[0].Info) != 1 || len(h[1].Info) != maxHandleInfos || len(h[2].Info) != 0 {
		t.Errorf("handles %+v", h)
	}
	wantDamage(t, f, dump.Cycle, "HandleData")
	wantDamage(t, f, dump.Limit, "HandleData")
	wantDamage(t, f, dump.Truncated, "HandleData")
}

// Handles that share one chain of records, even of empty ones, have no more of them in
// sum than a file of that size can hold.
func TestHandleInfoShared(t *testing.T) {
	for _, size := range []int{0, 8, maxHandleInfoData} {
		const handles = 20000
		w := newWriter()
		w.stream(7, systemInfo(onAMD64, 0))
		var chain uint32
		for range maxHandleInfos {
			chain = w.blob(chain, u32(3), u32(size), zeros(size))
		}
		rows := le(u32(16), u32(40), u32(handles), u32(0))
		for i := range handles {
			rows = append(rows, le(u64(uint64(4*i+4)), u32(0), u32(0), u32(0), u32(0), u32(0), u32(0), chain, u32(0))...)
		}
		w.stream(12, rows)
		f := w.open(t)
		h, records := f.Handles(), 0
		for i := range h {
			records += len(h[i].Info)
		}
		if most := (len(w.data) + 0x1000 + maxText) / (handleInfoHeader + size); len(h) != handles || len(h[0].Info) != maxHandleInfos || records > most {
			t.Errorf("%d bytes each: %d handles with %d records, at most %d", size, len(h), records, most)
		}
		wantDamage(t, f, dump.Limit, "HandleData")
	}
}

func TestHandleOperations(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	op := le(u64(0x44), u32(10), u32(20), u32(2), u32(0), u32(2), u32(7), u64(0x1111), u64(0x2222), zeros(30*8))
	deep := le(u64(0x48), u32(10), u32(20), u32(1), u32(0), u32(0xffffffff), u32(8), zeros(32*8))
	w.stream(18, u32(16), u32(288), u32(2), u32(0), op, deep)
	f := w.open(t)
	wantClean(t, f)
	ops, err := f.HandleOperationList()
	if err != nil || len(ops.Operations) != 2 || ops.EntrySize != 288 {
		t.Fatalf("%+v %v", ops, err)
	}
	a := ops.Operations[0]
	if a.Handle != 0x44 || a.ProcessID != 10 || a.ThreadID != 20 || a.Operation != 2 || a.BacktraceIndex != 7 || len(a.Backtrace) != 2 || a.Backtrace[1] != 0x2222 {
		t.Errorf("operation %+v", a)
	}
	if n := len(ops.Operations[1].Backtrace); n != 32 {
		t.Errorf("depth %d", n)
	}
}

// Every size comes from the stream's header: here the header is 8 bytes longer,
// descriptors 16, the native descriptor is 112 (as on Windows 10 1607) and
// there is padding everywhere.
func TestFunctionTables(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	table := func(min, max, base uint64, native byte, pad int, entries ...uint32) []byte {
		return le(min, max, base, u32(len(entries)/3), u32(pad), zeros(16), bytes.Repeat([]byte{native}, 112), entries, zeros(pad))
	}
	w.stream(13, u32(32), u32(48), u32(112), u32(12), u32(3), u32(4), zeros(8), zeros(4),
		table(0x10000, 0x20000, 0x10000, 0xaa, 4, 0x100, 0x180, 0x9000, 0x180, 0x200, 0x9010, 0x300, 0x400, 0x9020),
		table(0x30000, 0x40000, 0x30000, 0xbb, 0),
		table(0x50000, 0x60000, 0x50000, 0xcc, 8, 0x800, 0x900, 1, 0x100, 0x200, 2)) // unsorted
	f := w.open(t)
	wantClean(t, f)
	tables, err := f.FunctionTables()
	if err != nil || len(tables) != 3 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	a := tables[0]
	if a.Min != 0x10000 || a.Max != 0x20000 || a.Base != 0x10000 || a.Count != 3 || a.EntrySize != 12 || len(a.Native) != 112 || a.Native[111] != 0xaa {
		t.Errorf("table %+v", a)
	}
	if e, ok := a.Entry(2); !ok || e != (FunctionEntry{0x300, 0x400, 0x9020}) {
		t.Errorf("entry %+v %v", e, ok)
	}
	if _, ok := a.Entry(3); ok {
		t.Error("an entry beyond the table")
	}
	for va, want := range map[uint64]uint32{0x10100: 0x9000, 0x1017f: 0x9000, 0x10180: 0x9010, 0x103ff: 0x9020, 0x10200: 0, 0x10400: 0, 0x100ff: 0, 0xfff: 0} {
		e, ok := a.Lookup(va)
		if ok != (want != 0) || e.UnwindInfo != want {
			t.Errorf("lookup %#x: %+v %v, want %#x", va, e, ok, want)
		}
	}
	if tables[1].Count != 0 || !tables[1].Contains(0x3ffff) || tables[1].Contains(0x40000) {
		t.Errorf("table %+v", tables[1])
	}
	if e, ok := tables[2].Lookup(0x50110); !ok || e.UnwindInfo != 2 {
		t.Errorf("unsorted: %+v %v", e, ok)
	}
}

func TestBrokenFunctionTables(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(13, u32(24), u32(32), u32(0), u32(12), u32(9), u32(0), u64(1), u64(2), u64(1), u32(0xffffffff), u32(0), zeros(24))
	f := w.open(t)
	tables, err := f.FunctionTables()
	if len(tables) != 1 || tables[0].Count != 2 || err == nil {
		t.Errorf("%+v %v", tables, err)
	}
	wantDamage(t, f, dump.BadCount, "FunctionTable")
	for _, header := range [][]byte{le(u32(0), u32(32), u32(0), u32(12), u32(1), u32(0)), le(u32(24), u32(32), u32(0), u32(0), u32(1), u32(0)), le(u32(24), u32(32), u32(0xffffffff), u32(12), u32(1), u32(0)), le(u32(24), u32(32))} {
		w := newWriter()
		w.stream(7, systemInfo(onAMD64, 0))
		w.stream(13, header, zeros(64))
		if tables, err := w.open(t).FunctionTables(); len(tables) != 0 && err == nil {
			t.Errorf("header %x: %+v", header, tables)
		}
	}
}

// TokenSize counts the element's header or not: the list's size tells.
func TestTokens(t *testing.T) {
	for name, extra := range map[string]int{"with header": 16, "without": 0} {
		w := newWriter()
		w.stream(7, systemInfo(onAMD64, 0))
		w.stream(19, u32(16+16+4+16+8), u32(2), u32(16), u32(16),
			u32(4+extra), u32(500), u64(0x10), []byte("aaaa"), u32(8+extra), u32(501), u64(0x14), []byte("bbbbbbbb"))
		f := w.open(t)
		wantClean(t, f)
		tokens, err := f.Tokens()
		if err != nil || len(tokens) != 2 || tokens[0].ID != 500 || string(tokens[0].Data) != "aaaa" || tokens[1].Handle != 0x14 || string(tokens[1].Data) != "bbbbbbbb" {
			t.Errorf("%s: %+v %v", name, tokens, err)
		}
	}
}

func TestSystemMemory(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	counters := make([]uint32, 70)
	for i := range counters {
		counters[i] = uint32(1000 + i)
	}
	body := le(u16(1), u16(0x1|0x2|0x8), // no dirty page counts
		u32(156250), u32(4096), u32(0x400000), u32(1), u32(0x43ffff), u32(65536), u64(0x10000), u64(0x7ffffffeffff), u64(0xff), u32(8),
		u64(11), u64(12), u32(13), u64(14), u64(15), u64(16), u64(17), u32(18), u32(19),
		u64(21), u64(22), u64(23), u64(24),
		u64(31), u64(32), u64(33), u64(34), counters, u64(41), u64(42), u64(51), u64(52))
	if len(body) != 492 { // the size in real dumps
		t.Fatalf("the structure has %d bytes", len(body))
	}
	w.stream(21, body)
	f := w.open(t)
	wantClean(t, f)
	m, err := f.SystemMemory()
	if err != nil {
		t.Fatal(err)
	}
	if m.Basic != (SystemBasic{156250, 4096, 0x400000, 1, 0x43ffff, 65536, 0x10000, 0x7ffffffeffff, 0xff, 8}) {
		t.Errorf("basic %+v", m.Basic)
	}
	if *m.FileCache != (FileCache{11, 12, 13, 14, 15, 16, 17, 18, 19}) || *m.Performance != (BasicPerformance{21, 22, 23, 24}) {
		t.Errorf("%+v %+v", *m.FileCache, *m.Performance)
	}
	if m.Counters.IdleTime != 31 || m.Counters.OtherBytes != 34 || m.Counters.Values[69] != 1069 || PerformanceCounterNames[69] != "SystemCalls" || PerformanceCounterNames[48] != "CcPinMappedDataCount" {
		t.Errorf("counters %+v", *m.Counters)
	}
	if m.DirtyPages != nil || m.ResidentAndCommitted == nil || *m.ResidentAndCommitted != [2]uint64{51, 52} {
		t.Errorf("%v %v", m.DirtyPages, m.ResidentAndCommitted)
	}
}

func TestVMCounters(t *testing.T) {
	values := make([]uint64, 18)
	for i := range values {
		values[i] = uint64(i + 1)
	}
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(22, u16(2), u16(0x1|0x2|0x4|0x8), u32(99), values)
	f := w.open(t)
	wantClean(t, f)
	v, _ := f.VMCounters()
	if v == nil || v.PageFaults != 99 || v.PeakWorkingSet != 1 || v.PeakPagefile != 8 || *v.VirtualSize != 10 || *v.Private != 11 || *v.SharedCommit != 13 || v.JobTotals != nil {
		t.Errorf("revision 2: %+v", v)
	}
	w = newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(22, u16(1), u16(0), u32(99), values[:9])
	f = w.open(t)
	wantClean(t, f)
	if v, _ := f.VMCounters(); v == nil || *v.Private != 9 || v.VirtualSize != nil {
		t.Errorf("revision 1: %+v", v)
	}
}

func TestComments(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(10, []byte("*** procdump\x00rest"))
	w.stream(11, wide("käse"))
	f := w.open(t)
	wantClean(t, f)
	if c, err := f.Comments(); err != nil || c != (Comments{"*** procdump", "käse"}) {
		t.Errorf("%+v %v", c, err)
	}
}

func TestBreakpadStreams(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(0x47670001, u32(2), u32(5), u32(6))
	w.stream(0x47670002, field("format != nullptr", 128), field("common_vfprintf", 128), field("output.cpp", 128), u32(32), u32(1))
	f := w.open(t)
	wantClean(t, f)
	if b, _ := f.BreakpadInfo(); b == nil || b.DumpThread != nil || *b.RequestingThread != 6 {
		t.Errorf("%+v", b)
	}
	if a, _ := f.Assertion(); a == nil || *a != (Assertion{"format != nullptr", "common_vfprintf", "output.cpp", 32, 1}) {
		t.Errorf("%+v", a)
	}
}

func TestCrashpad(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	utf8 := func(s string) uint32 { return w.blob(u32(len(s)), []byte(s), uint8(0)) }
	dict := func(pairs ...string) (uint32, uint32) {
		b := le(u32(len(pairs) / 2))
		for _, s := range pairs {
			b = append(b, le(utf8(s))...)
		}
		return uint32(len(b)), w.blob(b)
	}
	procSize, procAt := dict("ptype", "browser", "ver", "1.2 ü")
	simpleSize, simpleAt := dict("k", "v")
	list := w.blob(u32(1), utf8("loose"))
	value := w.blob(u32(5), []byte("value"))
	objects := w.blob(u32(1), utf8("obj"), u16(1), u16(0), value)
	info := w.blob(u32(1), u32(8), list, simpleSize, simpleAt, u32(16), objects)
	modules := w.blob(u32(1), u32(4), u32(28), info)
	guid := []byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	w.stream(0x43500001, u32(1), guid, testGUID, procSize, procAt, u32(16), modules)
	f := w.open(t)
	wantClean(t, f)
	c, err := f.Crashpad()
	if err != nil || c.Version != 1 || c.ReportID.String() != "00112233-4455-6677-8899-aabbccddeeff" || c.ClientID != GUID(testGUID) {
		t.Fatalf("%+v %v", c, err)
	}
	if len(c.Annotations) != 2 || c.Annotations[1] != (Annotation{"ver", "1.2 ü", 0}) {
		t.Errorf("annotations %+v", c.Annotations)
	}
	if len(c.Modules) != 1 {
		t.Fatalf("modules %+v", c.Modules)
	}
	m := c.Modules[0]
	if m.Index != 4 || strings.Join(m.List, ",") != "loose" || len(m.Simple) != 1 || m.Simple[0].Value != "v" || len(m.Objects) != 1 || m.Objects[0] != (Annotation{"obj", "value", 1}) {
		t.Errorf("module %+v", m)
	}
}

// miscInfo builds MINIDUMP_MISC_INFO_5: 24 bytes, power to 44, security and
// time zone to 232, build strings to 832, XSTATE and cookie to 1364.
func miscInfo(flags int) []byte {
	systemTime := make([]uint16, 8)
	b := le(u32(1364), u32(flags), u32(4242), u32(1700000000), u32(5), u32(6),
		u32(3600), u32(1200), u32(3500), u32(2), u32(1),
		u32(0x3000), u32(0x4d), u32(0), u32(2), int32(-60), field("W. Europe Standard Time", 32), systemTime, int32(0), field("W. Europe Daylight Time", 32), systemTime, int32(-60),
		field("19041.1.amd64fre.vb_release.191206-1406", 260), field("dbgcore.amd64,10.0.19041.1", 40),
		u32(528), u32(0x640), u64(0b111))
	for i := range 64 {
		b = append(b, le(u32(i*16), u32(i))...)
	}
	return append(b, le(u32(0xc00c1e))...)
}

func TestMiscInfo(t *testing.T) {
	open := func(b []byte) *MiscInfo {
		t.Helper()
		w := newWriter()
		w.stream(7, systemInfo(onAMD64, 0))
		w.stream(15, b)
		f := w.open(t)
		wantClean(t, f)
		m, err := f.MiscInfo()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	whole := miscInfo(0x3f7)
	if len(whole) != 1364 {
		t.Fatalf("the structure has %d bytes", len(whole))
	}
	m := open(whole)
	if m.PID != 4242 || m.User != 5*time.Second || m.Power.CurrentMHz != 1200 || *m.IntegrityLevel != 0x3000 || *m.ExecuteFlags != 0x4d || *m.Protected != 0 ||
		m.TimeZone.ID != 2 || m.TimeZone.Bias != -60 || m.TimeZone.DaylightName != "W. Europe Daylight Time" || m.TimeZone.DaylightBias != -60 ||
		m.BuildString != "19041.1.amd64fre.vb_release.191206-1406" || m.DebuggerBuild != "dbgcore.amd64,10.0.19041.1" || m.XStateSize != 0x640 ||
		len(m.XStateFeatures) != 3 || m.XStateFeatures[2] != (XStateFeature{2, 32, 2}) || !m.HasCookie || m.ProcessCookie != 0xc00c1e {
		t.Errorf("%+v", m)
	}
	for size, check := range map[int]func(*MiscInfo) bool{
		24:  func(m *MiscInfo) bool { return m.HasPID && m.HasTimes && m.Power == nil },
		44:  func(m *MiscInfo) bool { return m.Power != nil && m.IntegrityLevel == nil && m.TimeZone == nil },
		232: func(m *MiscInfo) bool { return m.TimeZone != nil && m.BuildString == "" },
		832: func(m *MiscInfo) bool { return m.BuildString != "" && m.XStateFeatures == nil && !m.HasCookie },
	} {
		if m := open(at(bytes.Clone(whole[:size]), 0, u32(size))); !check(m) {
			t.Errorf("size %d: %+v", size, m)
		}
	}
	if m := open(miscInfo(0)); m.HasPID || m.HasTimes || m.Power != nil || m.IntegrityLevel != nil || m.TimeZone != nil || m.BuildString != "" || m.HasCookie {
		t.Errorf("nothing is marked valid: %+v", m)
	}
	w := newWriter()
	w.stream(15, at(miscInfo(1), 0, u32(0xffffffff)))
	f := w.open(t)
	if m, _ := f.MiscInfo(); m == nil || m.PID != 4242 {
		t.Errorf("a wrong size: %+v", m)
	}
	wantDamage(t, f, dump.BadRecord, "MiscInfo")
}
