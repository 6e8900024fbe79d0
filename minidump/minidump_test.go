package minidump

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

func TestOpenRefuses(t *testing.T) {
	mac := systemInfo(onAMD64, 0)
	at(mac, 20, u32(0x8101))
	odd := systemInfo(onAMD64, 0)
	at(odd, 20, u32(0x8205))
	unnamed := systemInfo(onAMD64, 0)
	at(unnamed, 20, u32(0x8abc))
	with := func(info []byte) []byte { w := newWriter(); w.stream(7, info); return w.bytes() }
	for _, tc := range []struct {
		name  string
		bytes []byte
		code  dump.Code
		says  string
	}{
		{"empty", nil, dump.Truncated, "beyond the end of the file"},
		{"cut header", []byte("MDMP\x93\xa7\x00\x00"), dump.Truncated, "beyond the end of the file"},
		{"other magic", append([]byte("PAGEDU64"), zeros(64)...), dump.UnsupportedFormat, "not a minidump"},
		{"macOS", with(mac), dump.UnsupportedPlatform, "a minidump of macOS, not Windows"},
		{"NaCl", with(odd), dump.UnsupportedPlatform, "NaCl"},
		{"unnamed platform", with(unnamed), dump.UnsupportedPlatform, "0x8abc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Open(bytes.NewReader(tc.bytes), int64(len(tc.bytes)), "test.dmp")
			e := wantCode(t, err, tc.code)
			if !strings.Contains(e.Error(), tc.says) || e.File != "test.dmp" {
				t.Errorf("error %q does not say %q", e, tc.says)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	w := newWriter()
	w.version = 0x1234a793 // the high word is the writer's own
	w.flags = 0x1 | 0x2 | 0x1000000
	w.stamp = 1700000000 // 2023-11-14 22:13:20 UTC
	w.stream(7, systemInfo(onAMD64, w.text("Service Pack 9")))
	f := w.open(t)
	wantClean(t, f)
	if got := strings.Join(f.Flags(), " "); got != "WithDataSegs WithFullMemory FilterWriteCombinedMemory" {
		t.Errorf("flags %q", got)
	}
	if got := f.Captured(); !got.Equal(time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)) {
		t.Errorf("captured %v", got)
	}
	want := dump.System{Arch: dump.AMD64, Major: 10, Build: 19045, ServicePack: "Service Pack 9", ProductType: 1, SuiteMask: 0x100,
		CPUCount: 8, CPUFamily: 6, CPUModel: 0x9e, CPUStepping: 0x0d}
	if got := *f.System(); got != want {
		t.Errorf("system %+v\nwant %+v", got, want)
	}
	if f.Format() != dump.FormatMinidump || f.BugCheck() != nil || f.CPUs() != nil || f.Exception() != nil {
		t.Error("a user dump without exception has none, and neither bugcheck nor processors")
	}
}

// The vendor is CPUID's on x86 only; elsewhere the same bytes are feature bits.
func TestCPUVendor(t *testing.T) {
	for arch, want := range map[int]string{onX86: "GenuineIntel", onAMD64: "", onARM64: ""} {
		w := newWriter()
		w.stream(7, systemInfo(arch, 0))
		if got := w.open(t).System().CPUVendor; got != want {
			t.Errorf("architecture %d: vendor %q, want %q", arch, got, want)
		}
	}
}

func TestUnknownVersionIsAWarning(t *testing.T) {
	w := newWriter()
	w.version = 0xa794
	w.stream(7, systemInfo(onAMD64, 0))
	f := w.open(t)
	if e := wantDamage(t, f, dump.BadRecord, "header"); !e.Warning {
		t.Errorf("%v is not a warning", e)
	}
	if f.System().Build != 19045 {
		t.Error("the streams were not read")
	}
}

func TestUnknownPlatformIsDamage(t *testing.T) {
	w := newWriter()
	w.stream(7, at(systemInfo(onAMD64, 0), 20, u32(0x12000002)))
	f := w.open(t)
	wantDamage(t, f, dump.BadRecord, "SystemInfo")
	if f.System().Build != 19045 {
		t.Error("the stream was not read")
	}
}

func TestDirectory(t *testing.T) {
	w := newWriter()
	w.stream(0)
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(10) // empty: the next one of its type counts
	w.stream(10, []byte("first\x00"))
	w.stream(10, []byte("second\x00"))
	w.stream(0x12345678, []byte("abc"))
	w.stream(0x12345678, []byte("defg")) // user streams may repeat
	f := w.open(t)
	if c, err := f.Comments(); c.A != "first" || err != nil {
		t.Errorf("comment %q, %v", c.A, err)
	}
	streams := f.Streams()
	if len(streams) != 7 || streams[0].Note != "unused" || streams[4].Note == "" || streams[3].Note != "" {
		t.Errorf("streams %+v", streams)
	}
	last := streams[5]
	if last.Type != 0x12345678 || last.Name != "stream 0x12345678" || last.Size != 3 {
		t.Errorf("unknown stream %+v", last)
	}
	b := make([]byte, 8)
	if n, _ := f.StreamBytes(0x12345678).ReadAt(b, 0); string(b[:n]) != "abc" {
		t.Errorf("raw bytes %q", b[:n])
	}
	if f.StreamBytes(99) != nil || f.Has(99) || f.Has(0) {
		t.Error("streams that are not there")
	}
	for _, e := range f.DecodeAll() {
		if !e.Warning {
			t.Errorf("damage %v", e)
		}
	}
	wantDamage(t, f, dump.BadRecord, "CommentA") // the duplicate's warning
}

func TestHostileDirectory(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	good := w.bytes()

	huge := bytes.Clone(good)
	at(huge, 8, u32(0xffffffff))
	f := mustOpen(t, huge)
	wantDamage(t, f, dump.BadCount, "directory")
	if f.System().Build != 19045 {
		t.Error("the entry that is there was not read")
	}

	away := bytes.Clone(good)
	at(away, 12, u32(0xfffffff0))
	f = mustOpen(t, away)
	e := wantDamage(t, f, dump.Truncated, "directory")
	if !strings.Contains(e.Msg, "beyond the end of the file") || e.Offset != 0xfffffff0 {
		t.Errorf("%v", e)
	}
	if f.Threads() != nil && len(f.Threads()) > 0 || f.System() == nil || f.Process() == nil || f.Memory() == nil {
		t.Error("an empty dump still answers")
	}

	many := bytes.Clone(good)
	at(many, 8, u32(5000))
	many = append(many, zeros(5000*12)...)
	wantDamage(t, mustOpen(t, many), dump.Limit, "directory")
}

func TestStreamOutsideTheFile(t *testing.T) {
	w := newWriter()
	w.stream(7, systemInfo(onAMD64, 0))
	w.stream(10, []byte("kept\x00"))
	w.entries = append(w.entries, entry{4, 4000, 0x7fffff00})
	b := w.bytes()
	w.entries = append(w.entries, entry{11, 1 << 20, uint32(len(b)) - 8})
	f := w.open(t)
	e := wantDamage(t, f, dump.Truncated, "ModuleList")
	if e.Offset != 0x7fffff00 || e.Size != 4000 || !strings.Contains(e.Msg, "beyond the end of the file") {
		t.Errorf("%v", e)
	}
	wantDamage(t, f, dump.Truncated, "CommentW")
	if _, err := f.ModuleList(); err == nil {
		t.Error("the accessor hides that its stream is lost")
	}
	if c, _ := f.Comments(); c.A != "kept" {
		t.Error("another stream suffered")
	}
	if s := f.Streams(); s[2].Err == nil || s[0].Err != nil {
		t.Errorf("streams %+v", s)
	}
}

func TestArchIsInferredAloud(t *testing.T) {
	w := newWriter()
	ctx := w.blob(amd64Context(0x401000, 0x10000))
	w.stream(3, u32(1), thread(7, 0, 0, 0, 0, 0x4d0, ctx))
	f := w.open(t)
	if f.Arch() != dump.AMD64 {
		t.Fatalf("arch %v", f.Arch())
	}
	if e := wantDamage(t, f, dump.BadRecord, "SystemInfo"); !strings.Contains(e.Msg, "inferred") {
		t.Errorf("%v", e)
	}
	if pc, ok := f.Threads()[0].Context.PC(); !ok || pc != 0x401000 {
		t.Errorf("pc %#x %v", pc, ok)
	}
}
