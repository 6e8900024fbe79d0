package pdb

import (
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// module is what a look-up needs of one object file: its symbols and lines as
// they are in the file, and indexes of where what begins.
type module struct {
	name    string
	symbols []byte // begins with the signature, as record offsets count from it
	c13     []byte
	code    intervals // procedures, thunks, separated code
	labels  intervals
	lines   lineTable
}

// symbolsC13 is the signature of symbols in the CodeView format of VC 7 and later.
const symbolsC13 = 4

// Bounds of the modules that are kept; the latest one always is.
const (
	cacheBytes   = 16 << 20
	cacheModules = 256
)

// moduleCache keeps the modules that were used last.
type moduleCache struct {
	mu    sync.Mutex
	list  []*cachedModule // most recently used first
	bytes int64
}

type cachedModule struct {
	number int
	size   int64
	get    func() *module
}

// module returns a module's symbols and lines, nil when there are none.
func (f *File) module(i int) *module {
	stream, ok := f.modules().stream(i)
	if !ok || stream == noStream {
		return nil
	}
	size, _ := f.msf.StreamSize(int(stream))
	return f.cache.entry(i, int64(size), func() *module {
		h, _ := f.modules().header(i)
		m, err := f.readModule(h)
		f.note(err)
		return m
	}).get()
}

// entry finds or makes the entry of a module and drops the ones used longest
// ago. The module is read outside the lock, once.
func (c *moduleCache) entry(number int, size int64, read func() *module) *cachedModule {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.list {
		if e.number == number {
			copy(c.list[1:i+1], c.list[:i])
			c.list[0] = e
			return e
		}
	}
	e := &cachedModule{number, size, sync.OnceValue(read)}
	c.list = append([]*cachedModule{e}, c.list...)
	c.bytes += size
	for len(c.list) > 1 && (c.bytes > cacheBytes || len(c.list) > cacheModules) {
		last := len(c.list) - 1
		c.bytes -= c.list[last].size
		c.list[last] = nil
		c.list = c.list[:last]
	}
	return e
}

// readModule reads a module's stream and indexes it. On damage it returns what
// could be read.
func (f *File) readModule(h moduleHeader) (*module, error) {
	s, err := f.msf.Stream(int(h.stream))
	if err != nil {
		return nil, err
	}
	raw, err := s.all()
	if err != nil {
		return nil, err
	}
	c := cursor.New(raw, "symbols of "+h.name, -1)
	m := &module{name: h.name, symbols: c.Bytes(int(min(int64(h.symBytes), int64(len(raw)))))}
	c.Skip(int(min(int64(h.c11Bytes), int64(c.Left()))))
	m.c13 = c.Bytes(int(min(int64(h.c13Bytes), int64(c.Left()))))
	if want := int64(h.symBytes) + int64(h.c11Bytes) + int64(h.c13Bytes); want > int64(len(raw)) {
		err = dump.Errorf(dump.Truncated, "symbols of "+h.name, "claims %d bytes, its stream has %d", want, len(raw))
	}
	f.note(f.indexSymbols(m, h.name))
	f.note(f.indexLines(m, h.name))
	return m, err
}

// indexSymbols notes where each record that covers code is.
func (f *File) indexSymbols(m *module, name string) error {
	c := cursor.New(m.symbols, "symbols of "+name, -1)
	if c.Len() == 0 {
		return nil
	}
	if sig := c.U32(); sig != symbolsC13 {
		return dump.Errorf(dump.UnsupportedFormat, "symbols of "+name, "signature %d is not %d", sig, symbolsC13)
	}
	var r record
	for nextWanted(c, &r, symbolKind.namesCode) {
		if !r.kind.namesCode() {
			continue
		}
		s, ok := decodeCode(&r, false)
		if !ok {
			continue
		}
		if r.kind.isProc() {
			skipScope(c, s.end)
		}
		rva, ok := f.sourceRVA(s.section, s.offset)
		if !ok {
			continue
		}
		v := interval{start: rva, end: rva + s.size, record: uint32(r.at), kind: r.kind}
		switch {
		case r.kind == symLabel:
			m.labels = append(m.labels, v)
		case v.end > v.start:
			m.code = append(m.code, v)
		}
	}
	m.code, m.labels = sortIntervals(m.code), sortIntervals(m.labels)
	return c.Err()
}

// skipScope moves on to the end of a procedure where its record says truly where
// that is: what lies between, most of a module, names no code that counts.
func skipScope(c *cursor.Cursor, end uint32) {
	from := c.Offset()
	if int64(end) < int64(from) || int64(end) > int64(c.Len())-4 {
		return
	}
	c.Seek(int(end))
	if n, kind := c.U16(), symbolKind(c.U16()); n < 2 || kind != symEnd && kind != symProcIDEnd {
		c.Seek(from)
		return
	}
	c.Seek(int(end))
}

// recordAt decodes the record at an offset that an index holds.
func (m *module) recordAt(at uint32) (record, bool) {
	c := cursor.New(m.symbols, "symbols", -1)
	c.Seek(int(at))
	var r record
	ok := nextRecord(c, &r)
	return r, ok
}
