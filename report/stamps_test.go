package report

import (
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// The kernel of Windows 10.0.19041.804, of February 2021, has the stamp 0d8333e6,
// which would be of March 1977; a driver of then cannot have been built in 2031.
func TestStamps(t *testing.T) {
	captured := time.Date(2021, 2, 21, 1, 38, 22, 0, time.UTC)
	for stamp, want := range map[uint32]string{
		0x0d8333e6: "hash", 0x73a0f000: "hash", 0xffffffff: "hash", 0: "",
		0x5fda0f00: "2020-12-16", 0x38c5a1a0: "2000-03-08",
	} {
		if got := builtText(stamp, kindOfStamp(stamp, captured)); got != want {
			t.Errorf("%08x is %q, want %q", stamp, got, want)
		}
	}
	if got := kindOfStamp(0x73a0f000, time.Time{}); got != stampDate { // nothing says that it cannot be
		t.Errorf("without a time: %q", got)
	}
}

// One hash of four makes the rest doubtful; one of five does not.
func TestStampKinds(t *testing.T) {
	captured := time.Date(2021, 2, 21, 0, 0, 0, 0, time.UTC)
	list := func(stamps ...uint32) (out []*triage.Module) {
		for _, s := range stamps {
			out = append(out, &triage.Module{Module: &dump.Module{TimeDateStamp: s}})
		}
		return out
	}
	if k := stampKinds(list(0xfe185fa8, 0x5fda0f00, 0x5fda0f00, 0x5fda0f00), captured); k[0] != stampHash || k[1] != stampUnsure {
		t.Errorf("of four: %v", k)
	}
	if k := stampKinds(list(0xfe185fa8, 0x5fda0f00, 0x5fda0f00, 0x5fda0f00, 0x5fda0f00), captured); k[0] != stampHash || k[1] != stampDate {
		t.Errorf("of five: %v", k)
	}
	// An image that says so itself has a hash whatever it looks like, and nothing
	// follows for the others.
	own := list(0x5fda0f00, 0x5fda0f00)
	own[0].Reproducible = true
	if k := stampKinds(own, captured); k[0] != stampHash || k[1] != stampDate {
		t.Errorf("of its own word: %v", k)
	}
}
