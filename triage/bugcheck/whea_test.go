package bugcheck_test

import (
	"errors"
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
