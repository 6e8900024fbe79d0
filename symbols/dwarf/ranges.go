package dwarf

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Entries of a range list of version 5.
const (
	rleEnd          = 0
	rleBasex        = 1
	rleStartxEndx   = 2
	rleStartxLength = 3
	rleOffsetPair   = 4
	rleBase         = 5
	rleStartEnd     = 6
	rleStartLength  = 7
)

// address resolves an address, or the index of one.
func (f *File) address(u *unit, v value) (uint64, bool) {
	switch v.form {
	case formAddr:
		return v.u, true
	case formAddrx:
		return f.addressAt(u, v.u)
	}
	return 0, false
}

// addressAt reads an address of the unit's part of .debug_addr.
func (f *File) addressAt(u *unit, i uint64) (uint64, bool) {
	off, ok := element(u.addrBase, i, u.addrSize)
	if !ok {
		return 0, false
	}
	c := f.addr.from(off)
	a := u.address(c)
	return a, c.Err() == nil
}

// element is the offset of an array's element.
func element(base, i uint64, size int) (uint64, bool) {
	off := base + i*uint64(size)
	return off, i < 1<<32 && off >= base
}

// extent is the addresses of an entry by its attributes. Code that the linker left
// out has the address 0 and is left out here too.
func (f *File) extent(u *unit, low, high, ranges value) ([]span, error) {
	if ranges.there() {
		return f.rangeList(u, ranges)
	}
	begin, ok := f.address(u, low)
	if !ok || !high.there() {
		return nil, nil
	}
	end, isAddress := f.address(u, high)
	if !isAddress {
		end = begin + high.u // an offset
	}
	return f.appendSpan(nil, begin, end), nil
}

// appendSpan keeps what can be code of this image.
func (f *File) appendSpan(list []span, begin, end uint64) []span {
	if begin < f.im.base || end <= begin || begin == 0 || end-f.im.base > 1<<32 {
		return list
	}
	return append(list, span{begin: begin, end: end})
}

func (f *File) rangeList(u *unit, v value) ([]span, error) {
	if u.version < 5 {
		return f.oldRanges(u, v.u)
	}
	off := v.u
	if v.form == formRnglistx {
		at, ok := element(u.rangesBase, v.u, u.offsetSize())
		if !ok {
			return nil, dump.Errorf(dump.OutOfRange, f.rnglists.name, "range list %d", v.u)
		}
		c := f.rnglists.from(at)
		off = u.rangesBase + u.offset(c)
		if c.Err() != nil || off < u.rangesBase {
			return nil, c.Err()
		}
	}
	return f.newRanges(u, f.rnglists.from(off))
}

func (e *encoding) offsetSize() int {
	if e.wide {
		return 8
	}
	return 4
}

// oldRanges reads a list of .debug_ranges: pairs of addresses that count from a
// base, which a pair with the highest address changes.
func (f *File) oldRanges(u *unit, off uint64) ([]span, error) {
	c := f.ranges.from(off)
	highest := ^uint64(0)
	if u.addrSize == 4 {
		highest = 0xffffffff
	}
	var out []span
	base := u.low
	for {
		begin, end := u.address(c), u.address(c)
		if !f.spend(1) {
			c.Fail(dump.Limit, "more ranges than are read")
		}
		switch {
		case c.Err() != nil:
			return out, c.Err()
		case begin == 0 && end == 0:
			return out, nil
		case begin == highest:
			base = end
		default:
			out = f.appendSpan(out, base+begin, base+end)
		}
	}
}

// newRanges reads a list of .debug_rnglists.
func (f *File) newRanges(u *unit, c *cursor.Cursor) ([]span, error) {
	var out []span
	base := u.low
	at := func(i uint64) uint64 { a, _ := f.addressAt(u, i); return a }
	for {
		var begin, end uint64
		kind := c.U8()
		switch kind {
		case rleEnd:
			return out, c.Err()
		case rleBasex:
			base = at(c.ULEB128())
		case rleBase:
			base = u.address(c)
		case rleStartxEndx:
			begin = at(c.ULEB128())
			end = at(c.ULEB128())
		case rleStartxLength:
			begin = at(c.ULEB128())
			end = begin + c.ULEB128()
		case rleOffsetPair:
			begin = base + c.ULEB128()
			end = base + c.ULEB128()
		case rleStartEnd:
			begin = u.address(c)
			end = u.address(c)
		case rleStartLength:
			begin = u.address(c)
			end = begin + c.ULEB128()
		default:
			c.Fail(dump.BadRecord, "range of kind %d", kind)
		}
		if !f.spend(1) {
			c.Fail(dump.Limit, "more ranges than are read")
		}
		if c.Err() != nil {
			return out, c.Err()
		}
		if kind != rleBase && kind != rleBasex {
			out = f.appendSpan(out, begin, end)
		}
	}
}
