package cursor

import (
	"math"
	"testing"

	"dumptriage/dump"
)

// The examples are those of the DWARF standard (version 5, 7.6), with the ends of
// the range besides.
func TestLEB128(t *testing.T) {
	for in, want := range map[string]uint64{
		"\x02": 2, "\x7f": 127, "\x80\x01": 128, "\x81\x01": 129, "\xb9\x64": 12857, "\x80\x80\x00": 0,
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": math.MaxUint64,
	} {
		c := New([]byte(in+"x"), "S", 0)
		if got := c.ULEB128(); got != want || c.Err() != nil || c.Left() != 1 {
			t.Errorf("%x: %d, %v, %d left", in, got, c.Err(), c.Left())
		}
	}
	for in, want := range map[string]int64{
		"\x02": 2, "\x7e": -2, "\xff\x00": 127, "\x81\x7f": -127, "\x80\x01": 128, "\x80\x7f": -128, "\x81\x01": 129, "\xff\x7e": -129,
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f": math.MinInt64,
	} {
		c := New([]byte(in+"x"), "S", 0)
		if got := c.SLEB128(); got != want || c.Err() != nil || c.Left() != 1 {
			t.Errorf("%x: %d, %v, %d left", in, got, c.Err(), c.Left())
		}
	}
	c := New([]byte("\x80\x80"), "S", 0x10)
	c.ULEB128()
	wantError(t, "cut", c.Err(), dump.Truncated, 0x12, 1)
	c = New([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), "S", 0)
	if c.SLEB128(); c.Err() == nil {
		t.Error("eleven bytes were read")
	}
}

func TestStringZ(t *testing.T) {
	c := New([]byte("ab\x00\x00c"), "S", 0)
	if a, b := c.StringZ(), c.StringZ(); a != "ab" || b != "" || c.Offset() != 4 {
		t.Errorf("%q, %q, offset %d", a, b, c.Offset())
	}
	c.StringZ()
	wantError(t, "without an end", c.Err(), dump.Truncated, 4, -1)
	c = New([]byte("ab\x00c"), "S", 0)
	if c.SkipZ(); c.Offset() != 3 {
		t.Errorf("offset %d", c.Offset())
	}
	c.SkipZ()
	wantError(t, "without an end", c.Err(), dump.Truncated, 3, -1)
}
