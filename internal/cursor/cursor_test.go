package cursor

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"dumptriage/dump"
)

// eight is bytes of which every one differs, so that a wrong place or byte
// order shows in each value.
var eight = []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}

// reads is every fixed-size read, with what it must give at the start of eight
// (little-endian) and how far it goes.
var reads = []struct {
	name string
	size int
	want uint64
	read func(*Cursor) uint64
}{
	{"U8", 1, 0x01, func(c *Cursor) uint64 { return uint64(c.U8()) }},
	{"U16", 2, 0x2301, func(c *Cursor) uint64 { return uint64(c.U16()) }},
	{"U32", 4, 0x67452301, func(c *Cursor) uint64 { return uint64(c.U32()) }},
	{"U64", 8, 0xefcdab8967452301, func(c *Cursor) uint64 { return c.U64() }},
	{"Pointer(4)", 4, 0x67452301, func(c *Cursor) uint64 { return c.Pointer(4) }},
	{"Pointer(8)", 8, 0xefcdab8967452301, func(c *Cursor) uint64 { return c.Pointer(8) }},
}

// Every read takes its bytes when exactly they are left, and none, with an
// error that says how many it lacked and where, when one is missing.
func TestReads(t *testing.T) {
	for _, r := range reads {
		c := New(eight[:r.size], "S", 0x100)
		if got := r.read(c); got != r.want || c.Err() != nil || c.Offset() != r.size || c.Left() != 0 || c.FileOffset() != 0x100+int64(r.size) {
			t.Errorf("%s: %#x, want %#x; err %v, offset %d, left %d", r.name, got, r.want, c.Err(), c.Offset(), c.Left())
		}
		for left := range r.size {
			c := New(eight, "S", 0x100)
			at := len(eight) - left
			c.Seek(at)
			if got := r.read(c); got != 0 {
				t.Errorf("%s with %d bytes left: %#x", r.name, left, got)
			}
			wantError(t, r.name, c.Err(), dump.Truncated, 0x100+int64(at), int64(r.size))
			if c.Offset() != at {
				t.Errorf("%s with %d bytes left moved to %d", r.name, left, c.Offset())
			}
		}
	}
}

func wantError(t *testing.T, what string, err error, code dump.Code, offset, size int64) {
	t.Helper()
	var e *dump.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v, want %s", what, err, code)
		return
	}
	if e.Code != code || e.Stream != "S" || e.Offset != offset || e.Size != size {
		t.Errorf("%s: %s in %q at %d of %d bytes, want %s in S at %d of %d bytes", what, e.Code, e.Stream, e.Offset, e.Size, code, offset, size)
	}
}

// After the first error nothing is read or moved, and the error stays the first.
func TestErrorSticks(t *testing.T) {
	c := New(eight, "S", 0)
	c.Seek(6)
	c.U32()
	first := c.Err()
	if first == nil {
		t.Fatal("a read past the end gave no error")
	}
	c.Seek(0)
	for _, r := range reads {
		if got := r.read(c); got != 0 {
			t.Errorf("%s after an error: %#x", r.name, got)
		}
	}
	c.Skip(1)
	c.Fail(dump.BadRecord, "later")
	if b := c.Bytes(1); b != nil {
		t.Errorf("Bytes after an error: %x", b)
	}
	if n, err := c.Count(1, 1); n != 0 || err != first {
		t.Errorf("Count after an error: %d, %v", n, err)
	}
	sub := c.Sub(1)
	if sub.U8() != 0 || sub.Err() != first || sub.Left() != 0 {
		t.Errorf("Sub after an error: %v, %d left", sub.Err(), sub.Left())
	}
	if c.Err() != first || c.Offset() != 6 || c.Left() != 0 {
		t.Errorf("error %v, offset %d, left %d; want the first error, 6, 0", c.Err(), c.Offset(), c.Left())
	}
}

func TestFail(t *testing.T) {
	c := New(eight, "S", 0x40)
	c.Skip(3)
	c.Fail(dump.BadRecord, "kind %d", 7)
	wantError(t, "Fail", c.Err(), dump.BadRecord, 0x43, -1)
	var e *dump.Error
	if errors.As(c.Err(), &e); e == nil || e.Msg != "kind 7" {
		t.Errorf("message of %v", c.Err())
	}
}

func TestSeek(t *testing.T) {
	for _, off := range []int{0, 5, len(eight)} { // the very end is a place to stand at
		c := New(eight, "S", 0)
		if c.Seek(off); c.Err() != nil || c.Offset() != off || c.Left() != len(eight)-off {
			t.Errorf("Seek(%d): %v, offset %d, left %d", off, c.Err(), c.Offset(), c.Left())
		}
	}
	for _, off := range []int{-1, len(eight) + 1, math.MinInt, math.MaxInt} {
		c := New(eight, "S", 0)
		c.Skip(2)
		c.Seek(off)
		wantError(t, "Seek", c.Err(), dump.OutOfRange, 2, int64(off))
		if c.Offset() != 2 {
			t.Errorf("Seek(%d) moved to %d", off, c.Offset())
		}
	}
}

func TestBytes(t *testing.T) {
	c := New(eight, "S", 0)
	c.Skip(2)
	if b := c.Bytes(0); b == nil || len(b) != 0 || c.Err() != nil {
		t.Errorf("no bytes: %x, %v", b, c.Err())
	}
	b := c.Bytes(3)
	if !bytes.Equal(b, eight[2:5]) || c.Offset() != 5 {
		t.Errorf("%x, offset %d", b, c.Offset())
	}
	if cap(b) != 3 { // an append by the caller must not write into the input
		t.Errorf("capacity %d", cap(b))
	}
	for _, n := range []int{-1, 4, math.MaxInt, math.MinInt} {
		c := New(eight, "S", 0)
		c.Skip(5)
		if b := c.Bytes(n); b != nil {
			t.Errorf("Bytes(%d): %x", n, b)
		}
		wantError(t, "Bytes", c.Err(), dump.Truncated, 5, int64(n))
	}
}

// Bytes that lie in no file have no file offset, wherever the cursor stands.
func TestNoFile(t *testing.T) {
	c := New(eight, "S", -1)
	c.Skip(3)
	sub := c.Sub(2)
	sub.Skip(1)
	if c.FileOffset() != -1 || sub.FileOffset() != -1 {
		t.Errorf("file offsets %d and %d", c.FileOffset(), sub.FileOffset())
	}
	sub.U64()
	wantError(t, "Sub", sub.Err(), dump.Truncated, -1, 8)
}

// A Sub sees its own bytes only, and its errors are its own.
func TestSub(t *testing.T) {
	c := New(eight, "S", 0x1000)
	c.Skip(2)
	sub := c.Sub(3)
	if sub.Len() != 3 || sub.FileOffset() != 0x1002 || c.Offset() != 5 || c.Len() != 8 {
		t.Errorf("%d bytes at %#x, then %d", sub.Len(), sub.FileOffset(), c.Offset())
	}
	if got := sub.U16(); got != 0x6745 {
		t.Errorf("read %#x", got)
	}
	sub.U16() // one byte is left, though the parent has more
	wantError(t, "Sub", sub.Err(), dump.Truncated, 0x1004, 2)
	if c.Err() != nil || c.U8() != 0xab {
		t.Errorf("the parent: %v", c.Err())
	}
	short := New(eight, "S", 0x1000).Sub(9)
	wantError(t, "Sub past the end", short.Err(), dump.Truncated, 0x1000, 9)
}

func TestCount(t *testing.T) {
	for _, x := range []struct {
		n    uint64
		size int
		want int
		bad  bool
	}{
		{0, 3, 0, false},
		{2, 3, 2, false}, // 6 of 7 bytes
		{3, 3, 2, true},
		{1, 8, 0, true},
		{7, 1, 7, false},
		{8, 1, 7, true},
		{math.MaxUint64, 3, 2, true}, // n*size wraps
		{1 << 63, 2, 3, true},        // n*size is 0 in 64 bits
		{math.MaxUint64, 1 << 30, 0, true},
		{5, 0, 0, false}, // records of no bytes: none, rather than a division by zero
		{5, -4, 0, false},
	} {
		c := New(eight, "S", 0x20)
		c.Skip(1)
		n, err := c.Count(x.n, x.size)
		if n != x.want || (err != nil) != x.bad {
			t.Errorf("Count(%d, %d) of 7 bytes: %d, %v", x.n, x.size, n, err)
		}
		if x.bad {
			wantError(t, "Count", err, dump.BadCount, 0x21, -1)
		}
		if c.Err() != nil || c.Offset() != 1 {
			t.Errorf("Count(%d, %d) left error %v, offset %d: what is there must stay readable", x.n, x.size, c.Err(), c.Offset())
		}
	}
}

// brokenReader gives some bytes and then fails.
type brokenReader struct {
	b   []byte
	err error
}

func (r brokenReader) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, r.b[min(off, int64(len(r.b))):])
	if n < len(p) {
		return n, r.err
	}
	return n, nil
}

func TestAt(t *testing.T) {
	file := bytes.NewReader(eight)
	for _, x := range []struct {
		off, size int64
		len       int
	}{
		{0, 8, 8}, {2, 3, 3}, {6, 8, 2}, {8, 1, 0}, {0, math.MaxInt64, 8}, {3, math.MaxInt64, 5},
		{5, -1, 3}, // a size that wrapped: what the file holds
	} {
		c := At(file, 8, x.off, x.size, "S")
		if c.Err() != nil || c.Len() != x.len || c.FileOffset() != x.off {
			t.Errorf("At(%d, %d): %d bytes at %d, %v; want %d", x.off, x.size, c.Len(), c.FileOffset(), c.Err(), x.len)
		}
		if x.len > 0 && c.U8() != eight[x.off] {
			t.Errorf("At(%d, %d) begins with another byte", x.off, x.size)
		}
	}
	for _, off := range []int64{-1, 9, math.MinInt64, math.MaxInt64} {
		c := At(file, 8, off, 4, "S")
		wantError(t, "At", c.Err(), dump.OutOfRange, off, 4)
		if c.Left() != 0 {
			t.Errorf("At(%d): %d bytes left", off, c.Left())
		}
	}
}

// A file that became shorter gives what it still holds; one that cannot be read
// gives the reason.
func TestAtShort(t *testing.T) {
	c := At(brokenReader{eight[:5], io.EOF}, 8, 2, 6, "S")
	if c.Err() != nil || c.Len() != 3 {
		t.Fatalf("%d bytes, %v", c.Len(), c.Err())
	}
	if c.U32(); c.Err() == nil {
		t.Error("a read past the bytes that are there gave no error")
	}
	cause := errors.New("bad sector")
	c = At(brokenReader{eight[:5], cause}, 8, 2, 6, "S")
	wantError(t, "At", c.Err(), dump.IO, 2, 6)
	if !errors.Is(c.Err(), cause) {
		t.Errorf("%v does not name its cause", c.Err())
	}
}

func TestCString(t *testing.T) {
	for in, want := range map[string]string{"": "", "\x00": "", "abc": "abc", "ab\x00c\x00": "ab"} {
		if got := CString([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzCursor drives a cursor by a program in the input and checks it against
// plain slicing.
func FuzzCursor(f *testing.F) {
	f.Add([]byte("abcdefgh"), []byte{0, 1, 2, 3, 4, 5, 6})
	f.Add([]byte("abcdefgh"), []byte{4, 0x77, 5, 3, 0, 0})
	f.Fuzz(func(t *testing.T, data, program []byte) {
		c := New(data, "S", 0)
		pos := 0
		for i := 0; i+1 < len(program); i += 2 {
			arg := int(int8(program[i+1]))
			size := 0
			switch program[i] % 5 {
			case 0:
				if c.Seek(arg); arg >= 0 && arg <= len(data) {
					pos = arg
				} else if c.Err() == nil {
					t.Fatalf("Seek(%d) in %d bytes", arg, len(data))
				}
			case 1:
				size = 1
				c.U8()
			case 2:
				size = 8
				c.U64()
			case 3:
				size = arg
				if b := c.Bytes(arg); b != nil && !bytes.Equal(b, data[pos:pos+arg]) {
					t.Fatalf("Bytes(%d) at %d: %x", arg, pos, b)
				}
			case 4:
				size = arg
				if sub := c.Sub(arg); sub.Err() == nil && sub.Len() != arg {
					t.Fatalf("Sub(%d) has %d bytes", arg, sub.Len())
				}
			}
			if size < 0 || size > len(data)-pos {
				if c.Err() == nil {
					t.Fatalf("%d bytes at %d of %d gave no error", size, pos, len(data))
				}
			} else if c.Err() == nil {
				pos += size
			}
			if c.Err() != nil {
				return
			}
			if c.Offset() != pos || c.Left() != len(data)-pos {
				t.Fatalf("offset %d, left %d; want %d of %d", c.Offset(), c.Left(), pos, len(data))
			}
		}
	})
}
