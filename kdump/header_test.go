package kdump

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
)

// Every DumpType is named. Of a dump that ends behind its header, the header is
// shown and the rest reported, but for the kind that has no rest.
func TestOtherKinds(t *testing.T) {
	for dumpType, want := range map[uint32]string{1: "complete", 2: "summary", 3: "header only", 5: "bitmap", 6: "bitmap", 7: "automatic",
		8: ".dump /k", 9: ".dump /ka", 10: ".dump /f", 77: "unknown DumpType 0x4d"} {
		h := header64Bytes(dumpType, 0xd1, [4]uint64{1, 2, 3, 4})
		h.put(0x348, amd64Context(entryIP, entrySP))
		f := openBytes(t, h.b)
		if !strings.Contains(f.Kind(), want) || f.DumpType() != dumpType {
			t.Errorf("type %d: kind %q", dumpType, f.Kind())
		}
		d := f.Damage()
		code := dump.Truncated
		switch dumpType {
		case 1:
			code = dump.BadRecord // its list of runs lies in the header
		case 77:
			code = dump.UnsupportedFormat
		}
		if dumpType == 3 {
			if len(d) != 1 || !d[0].Warning {
				t.Errorf("type 3: damage %v", d)
			}
		} else if len(d) != 1 || d[0].Code != code || d[0].File != "built.dmp" {
			t.Errorf("type %d: damage %v", dumpType, d)
		}
		if bc := f.BugCheck(); bc.Code != 0xd1 || bc.Parameters != [4]uint64{1, 2, 3, 4} {
			t.Errorf("type %d: bugcheck %+v", dumpType, bc)
		}
		if s := f.System(); s.Build != 19041 || s.CPUCount != 2 || s.NTVersion != "" {
			t.Errorf("type %d: system %+v", dumpType, s)
		}
		ts := f.Threads()
		if len(ts) != 1 || ts[0].ContextSource != dump.ContextHeader || ts[0].Kernel.Note == "" || pcsp(&ts[0].Context) != [2]uint64{entryIP, entrySP} {
			t.Errorf("type %d: threads %+v", dumpType, ts)
		}
		if _, err := dump.ReadUint64(f.Memory(), ntBase); err == nil {
			t.Errorf("type %d: memory out of nothing", dumpType)
		}
	}
}

// What the writer never wrote still holds PAGE and is no value.
func TestFillerIsAbsent(t *testing.T) {
	b := bytes.Repeat([]byte("PAGE"), 0x2000/4)
	h := &bin{b}
	h.put(0, []byte("PAGEDU64"))
	h.u32(0x30, 0x8664)
	h.u32(0xf98, 3)
	f := openBytes(t, b)
	if f.BugCheck() != nil || f.Exception() != nil || f.HeaderException() != nil || !f.Captured().IsZero() || f.Comment() != "" || f.Flags() != nil || len(f.Threads()) != 0 {
		t.Errorf("values out of filler: %v %v %v %q %v", f.BugCheck(), f.HeaderException(), f.Captured(), f.Comment(), f.Flags())
	}
	if s := f.System(); s.CPUCount != 0 || s.ProductType != 0 || s.SuiteMask != 0 || s.Uptime != 0 {
		t.Errorf("system %+v", *s)
	}
	if p := f.Process(); p.DirBase != 0 || p.HasPID {
		t.Errorf("process %+v", *p)
	}
}

func TestFlags(t *testing.T) {
	h := header64Bytes(4, 0, [4]uint64{})
	h.u32(0x1050, 1<<3|1<<4|1<<9)
	h.u32(0x1038, 0x10|0x400)
	h.grow(0x2080)
	f := openBytes(t, h.b)
	if got := f.Flags(); !slices.Equal(got, []string{"KernelGeneratedTriageDump", "LiveDumpGeneratedDump", "Attributes(0x200)", "Thread", "DebuggerData"}) {
		t.Errorf("flags %q", got)
	}
}

func TestBugCheckCodes(t *testing.T) {
	for raw, want := range map[uint32]uint32{0x1000007e: 0x7e, 0x4a: 0x4a, 0x100000ea: 0xea, 0xc000021a: 0xc000021a, 0xdeaddead: 0xdeaddead} {
		f := openBytes(t, header64Bytes(3, raw, [4]uint64{}).b)
		if bc := f.BugCheck(); bc.Code != want || bc.Raw != raw {
			t.Errorf("%#x: %+v", raw, *bc)
		}
	}
}

// What is no kernel dump is refused by a typed error with the file's name.
func TestOpenRefuses(t *testing.T) {
	itanium := header64Bytes(4, 0, [4]uint64{})
	itanium.u32(0x30, 0x200)
	wide := header64Bytes(4, 0, [4]uint64{})
	wide.u32(0x30, 0x14c) // a 32-bit machine under a 64-bit magic
	for name, c := range map[string]struct {
		b    []byte
		code dump.Code
		text string
	}{
		"empty":    {nil, dump.UnsupportedFormat, "only 0 bytes"},
		"short":    {[]byte("PAGEDU64 and no more"), dump.Truncated, "beyond the end"},
		"minidump": {append([]byte("MDMP\x93\xa7\x00\x00"), make([]byte, 64)...), dump.UnsupportedFormat, "not a kernel dump"},
		"itanium":  {itanium.b, dump.UnsupportedFormat, "0x200"},
		"mixed":    {wide.b, dump.UnsupportedFormat, "x86"},
	} {
		f, err := Open(bytes.NewReader(c.b), int64(len(c.b)), "some.dmp")
		var e *dump.Error
		if f != nil || !errors.As(err, &e) || e.Code != c.code || e.File != "some.dmp" || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: %v %v", name, f != nil, err)
		}
	}
}

// A kernel dump whose KDBG is gone still shows drivers and memory.
func TestWithoutKDBG(t *testing.T) {
	b := system7E().bytes()
	i := bytes.Index(b, []byte("KDBG"))
	copy(b[i:], "XXXX")
	f := openBytes(t, b)
	if len(f.Modules()) != 2 || f.System().NTVersion != "10.0.19041.804" {
		t.Errorf("modules %v", f.Modules())
	}
	if ts := f.Threads(); len(ts) != 1 || ts[0].ContextSource != dump.ContextParameter || ts[0].Kernel.Note == "" {
		t.Errorf("threads %+v", ts)
	}
	if d := f.Damage(); len(d) != 1 || d[0].Code != dump.BadRecord || d[0].Stream != "KDDEBUGGER_DATA64" {
		t.Errorf("damage %v", d)
	}
}
