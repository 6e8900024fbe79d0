package bugcheck_test

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/triage/bugcheck"
)

// The record that fixtures writes by the layouts of the UEFI specification.
func TestErrorRecord(t *testing.T) {
	r, err := bugcheck.ParseErrorRecord(fixtures.HardwareErrorRecord())
	if err != nil {
		t.Fatal(err)
	}
	if r.Severity != bugcheck.Fatal || r.Notify != "machine check" || r.Truncated || len(r.Sections) != 3 ||
		!r.Timestamp.Equal(time.Date(2023, 6, 1, 12, 34, 56, 0, time.UTC)) {
		t.Fatalf("%+v", r)
	}
	s := r.Sections
	if m := s[0].MCA; m == nil || m.Processor != 3 || m.Bank != 4 || m.Vendor != 1 || m.Status != 0xbe00000000800400 || m.Address != 0x123456000 || !s[0].Primary {
		t.Errorf("machine check %+v", s[0])
	}
	if m := s[1].Memory; m == nil || !m.HasAddress || m.Address != 0x123456000 || !m.HasModule || m.Module != 2 || m.HasNode || !m.HasType || m.Type != 3 || s[1].FRU != "DIMM_A2" {
		t.Errorf("memory %+v", s[1])
	}
	if p := s[2].PCIe; p == nil || !p.HasDevice || p.Vendor != 0x8086 || p.Device != 0xa110 || p.Class != 0x060400 || p.Bus != 2 || p.Slot != 0x1c || p.Function != 1 {
		t.Errorf("PCI Express %+v", s[2].PCIe)
	}
}

// Cut anywhere, a record gives what is whole, or a *dump.Error.
func TestErrorRecordCut(t *testing.T) {
	b := fixtures.HardwareErrorRecord()
	for n := range b {
		r, err := bugcheck.ParseErrorRecord(b[:n])
		var e *dump.Error
		if n < 128 && !errors.As(err, &e) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if n >= 128 && (err != nil || !r.Truncated) {
			t.Errorf("%d bytes: %+v, %v", n, r, err)
		}
	}
	b[0] = 'X'
	if _, err := bugcheck.ParseErrorRecord(b); err == nil {
		t.Error("a record that does not begin with CPER is one")
	}
}

func FuzzErrorRecord(f *testing.F) {
	b := fixtures.HardwareErrorRecord()
	f.Add(b)
	f.Add(b[:200])
	huge := append([]byte(nil), b...)
	huge[10], huge[11] = 0xff, 0xff // sections
	f.Add(huge)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := bugcheck.ParseErrorRecord(b)
		var e *dump.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T", err)
		}
		if err == nil && len(r.Sections) > 64 {
			t.Errorf("%d sections", len(r.Sections))
		}
	})
}

// realRecord reads an error record that Windows made; see testdata/whea/README.md.
func realRecord(t *testing.T, name string) *bugcheck.ErrorRecord {
	t.Helper()
	text, err := os.ReadFile("testdata/whea/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := bugcheck.ParseErrorRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	if r.Truncated || int(r.Length) != len(b) || r.Revision != 0x210 {
		t.Errorf("%s: %+v", name, r)
	}
	return r
}

// What others read from the same records: times, severities and sections are those of
// DecodeWheaRecord's answers in the issues where the records were published. Bank,
// status and miscellaneous register of the corrected machine check are those of a
// published Windows event 19 of the same error (MCABank 27, MciStat
// 0x982000000002080b, MciMisc 0xd01a0ffe00000000).
func TestRealErrorRecords(t *testing.T) {
	r := realRecord(t, "zen3_corrected")
	if r.Severity != bugcheck.Corrected || r.Notify != "corrected machine check interrupt" || !r.Timestamp.Equal(time.Date(2024, 11, 9, 9, 55, 33, 0, time.UTC)) || len(r.Sections) != 3 {
		t.Fatalf("%+v", r)
	}
	s := r.Sections
	if p := s[0].Processor; s[0].Type != "processor" || !s[0].Primary || p == nil || p.Error != 4 || p.Level != 3 || p.ID != 0 { // a bus error
		t.Errorf("processor %+v", p)
	}
	if s[1].Type != "x86 or x64 processor" || s[1].Primary || s[1].Severity != bugcheck.Corrected {
		t.Errorf("%+v", s[1])
	}
	if m := s[2].MCA; m == nil || m.Vendor != 2 || m.Processor != 0 || m.Bank != 27 || m.Status != 0x982000000002080b || m.Address != 0 || m.Misc != 0xd01a0ffe00000000 {
		t.Errorf("machine check %+v", m)
	}

	r = realRecord(t, "amd_fatal")
	if r.Severity != bugcheck.Fatal || r.Notify != "machine check" || !r.Timestamp.Equal(time.Date(2024, 10, 24, 14, 20, 20, 0, time.UTC)) || len(r.Sections) != 4 {
		t.Fatalf("%+v", r)
	}
	s = r.Sections
	if m := s[0].Memory; !s[0].Primary || m == nil || m.HasAddress || m.HasModule || m.HasType { // "has no valid bits set"
		t.Errorf("memory %+v", m)
	}
	if p := s[1].Processor; p == nil || p.Error != 1 || p.ID != 11 { // a cache error
		t.Errorf("processor %+v", p)
	}
	if m := s[2].MCA; m == nil || m.Vendor != 2 || m.Processor != 11 || m.Bank != 0 || m.Status != 0xbaa00000000c0135 {
		t.Errorf("machine check %+v", m)
	}
	if s[3].Type != "error recovery" || s[3].Severity != bugcheck.Informational {
		t.Errorf("%+v", s[3])
	}

	r = realRecord(t, "memory_corrected")
	if r.Severity != bugcheck.Corrected || len(r.Sections) != 1 || r.Sections[0].FRU != "Slot 0=" {
		t.Fatalf("%+v", r)
	}
	// Valid are error status, node, card and type (4019h); the type is 2, single-bit ECC.
	if m := r.Sections[0].Memory; m == nil || m.HasAddress || !m.HasNode || !m.HasCard || m.HasModule || !m.HasType || m.Type != 2 {
		t.Errorf("memory %+v", m)
	}
}
