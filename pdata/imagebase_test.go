package pdata

import (
	"bytes"
	"os"
	"testing"
)

// The bases are those that objdump -p prints.
func TestImageBase(t *testing.T) {
	for name, want := range map[string]uint64{"crash/images/crashdemo.exe": 0x7ff7a0b20000, "crash/images/legacy.exe": 0x400000} {
		b, err := os.ReadFile("../fixtures/" + name)
		if err != nil {
			t.Fatal(err)
		}
		im, err := OpenFile(bytes.NewReader(b), int64(len(b)), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := im.ImageBase(); got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
		if im.Watched() {
			t.Errorf("%s is watched", name)
		}
	}
}
