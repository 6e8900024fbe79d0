package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

func textOf(t *testing.T, inc *triage.Incident) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, inc, testOptions); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPairWithoutPID: a process id that neither dump records is not printed as 0.
func TestPairWithoutPID(t *testing.T) {
	inc := &triage.Incident{Crashing: -1, Pairing: &triage.Pairing{User: "a.dmp", Kernel: "a.Kernel.dmp", How: "given"}}
	if got, want := textOf(t, inc), "Pair:    a.dmp with a.Kernel.dmp (given)\n"; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}

// TestAdjustedAddress: each kind has the one field that belongs to it, as
// rust-minidump writes them.
func TestAdjustedAddress(t *testing.T) {
	for _, c := range []struct {
		adjusted triage.AdjustedAddress
		want     string
	}{
		{triage.AdjustedAddress{Kind: "null-pointer", Offset: 0x18}, `{"kind":"null-pointer","offset":"0x0000000000000018"}`},
		{triage.AdjustedAddress{Kind: "non-canonical", Address: 0x8000000000001010}, `{"kind":"non-canonical","address":"0x8000000000001010"}`},
	} {
		inc := &triage.Incident{Crashing: -1, System: dump.System{Arch: dump.AMD64},
			Crash: &triage.Crash{Exception: dump.Exception{Code: 0xc0000005}, Adjusted: &c.adjusted}}
		var b bytes.Buffer
		if err := JSON(&b, inc, testOptions); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			CrashInfo struct {
				Adjusted json.RawMessage `json:"adjusted_address"`
			} `json:"crash_info"`
		}
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if got := string(doc.CrashInfo.Adjusted); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestSignExtendedCrashAddress: a 32-bit module above 2 GB is named by the
// address without the sign extension that the exception record gives it.
func TestSignExtendedCrashAddress(t *testing.T) {
	m := &triage.Module{Module: &dump.Module{Base: 0x80400000, Size: 0x10000, Path: `C:\app\big.exe`}}
	inc := &triage.Incident{Crashing: -1, System: dump.System{Arch: dump.X86},
		Crash: &triage.Crash{Exception: dump.Exception{Code: 0xc0000005, Address: 0xffffffff80401234}, Module: m}}
	if got, want := textOf(t, inc), "at 80401234 (big+0x1234)\n"; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}
