package pdata_test

import (
	"bytes"
	"errors"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/pdata"
)

// A file that was cut short proves its identity by its headers all the same.
func TestComplete(t *testing.T) {
	whole := (&fixtures.Image{Name: "a.dll", Base: 0x180000000, TimeDateStamp: 1, SizeOfImage: 0x6000,
		Functions: []*fixtures.Function{{Name: "Entry", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))}}}).File()
	for _, tc := range []struct {
		size int
		ok   bool
	}{{len(whole), true}, {len(whole) - 0x200, false}, {0x400, false}} {
		b := whole[:tc.size]
		im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "a.dll")
		if err != nil {
			t.Fatal(err)
		}
		err = im.Complete()
		if e, ok := errors.AsType[*dump.Error](err); (err == nil) != tc.ok || !tc.ok && (!ok || e.Code != dump.Truncated) {
			t.Errorf("%d of %d bytes: %v", tc.size, len(whole), err)
		}
	}
}
