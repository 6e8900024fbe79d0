package r2r

import (
	"cmp"
	"slices"
	"sort"

	"dumptriage/dump"
)

const (
	maxMethods   = 1 << 19 // elements of all arrays of entry points; the largest known have 70,000
	maxInstances = 1 << 19
	maxFailed    = 1 << 14 // entries that could not be read, after which a table is given up
)

// Method says whose code is at an RVA.
type Method struct {
	Token     uint32 // MethodDef (06) or MemberRef (0A) in the metadata of Assembly or Component
	Component int    // 0 for the image's own metadata; else which of Components, from 1
	Assembly  string // simple name of the assembly whose metadata has Token, when it is another than Component's
	Instance  bool   // an instantiation of a generic type or method: other code may have the same token
	Start     uint32 // RVA where the method is entered
	Begin     uint32 // RVA of the block of code: Start, or that of a funclet or of a cold part
	End       uint32 // RVA behind the block; 0 when unknown
	Cold      bool   // the block is the part of a method that is seldom run
	Shared    bool   // other methods have the very same code: Token is the first of them
}

// entry is a method's entry point.
type entry struct {
	function  uint32 // index in the table of runtime functions
	token     uint32 // 0: an instance that could not be read
	component uint16
	module    uint32 // of an instance: module override, see instance.go
	instance  bool
}

// index finds methods by their runtime functions.
type index struct {
	entries   []entry // ascending by function
	functions table
	size      uint32 // bytes of a RUNTIME_FUNCTION
	count     uint32
	claimed   uint32 // elements of the arrays of entry points so far
	complete  bool   // all entries could be read: code between two entries is the first's
	err       error
}

// Lookup returns the method whose code is at an RVA. False without an error: none of the
// image's tables has code there. An error says why it cannot be known.
func (r *Image) Lookup(rva uint32) (Method, bool, error) {
	r.indexOnce.Do(r.makeIndex)
	x := &r.index
	if x.count == 0 {
		return Method{}, false, x.err
	}
	i, begin, end, err := x.function(rva)
	if err != nil || i < 0 || end != 0 && rva >= end || !r.im.Executable(rva) {
		return Method{}, false, err
	}
	m := Method{Begin: begin, End: end}
	hot, cold, err := r.hotPart(uint32(i))
	if err != nil {
		return Method{}, false, err
	}
	m.Cold = cold
	e, shared, err := x.entryOf(hot)
	if err != nil {
		return Method{}, false, err
	}
	if m.Start, _, err = x.bounds(e.function); err != nil {
		return Method{}, false, err
	}
	m.Token, m.Component, m.Instance, m.Shared = e.token, int(e.component), e.instance, shared
	if e.instance {
		m.Assembly, err = r.module(e.module)
	}
	return m, err == nil, err
}

// entryOf returns the method that a runtime function is of: the nearest that is entered at
// it or before it, since what comes between are its funclets.
func (x *index) entryOf(function uint32) (e entry, shared bool, err error) {
	k := sort.Search(len(x.entries), func(k int) bool { return x.entries[k].function > function }) - 1
	if k >= 0 {
		e = x.entries[k]
	}
	switch {
	case k >= 0 && e.function != function && !x.complete:
		return e, false, x.err // an entry that is missing may lie between
	case k < 0 && x.err != nil:
		return e, false, x.err
	case k < 0:
		return e, false, bad(x.functions, function*x.size, "runtime function %d is before the first method's", function)
	}
	for ; k > 0 && x.entries[k-1].function == e.function; k-- {
		e, shared = x.entries[k-1], true
	}
	if e.token == 0 {
		return e, shared, dump.Errorf(dump.UnsupportedFormat, "ReadyToRun instance entry points", "runtime function %d is an instance whose method has no token here", function)
	}
	return e, shared, nil
}

// Entry is where a method is entered.
type Entry struct {
	Method
	Function uint32 // index in the table of runtime functions
}

// Entries returns all methods that the image has code of, in the order of their code, and
// the first error. Instances that could not be read have no token.
func (r *Image) Entries() ([]Entry, error) {
	r.indexOnce.Do(r.makeIndex)
	var out []Entry
	for _, e := range r.index.entries {
		begin, end, err := r.index.bounds(e.function)
		if err != nil {
			return out, err
		}
		m := Method{Token: e.token, Component: int(e.component), Instance: e.instance, Start: begin, Begin: begin, End: end}
		if e.instance && e.token != 0 {
			m.Assembly, _ = r.module(e.module)
		}
		out = append(out, Entry{m, e.function})
	}
	return out, r.index.err
}

// Weight is how much the index of the image's methods takes: the elements that its arrays
// claim and the entries that were read.
func (r *Image) Weight() int {
	r.indexOnce.Do(r.makeIndex)
	return int(r.index.claimed) + len(r.index.entries)
}

// makeIndex reads all tables of entry points.
func (r *Image) makeIndex() {
	x := &r.index
	x.size = 8
	if r.wide {
		x.size = 12
	}
	t, ok := r.table(r.sections, secFunctions, "runtime functions")
	if !ok {
		return
	}
	x.functions, x.count, x.complete = t, t.size/x.size, true
	if len(r.components) == 0 {
		x.note(r.readMethods(r.sections, 0))
	}
	for i, part := range r.components {
		x.note(r.readMethods(part.sections, uint16(i+1)))
	}
	x.note(r.readInstances())
	slices.SortStableFunc(x.entries, func(a, b entry) int { return cmp.Compare(a.function, b.function) })
}

func (x *index) note(err error) {
	if err != nil {
		x.complete = false
		if x.err == nil {
			x.err = err
		}
	}
}

// readMethods reads an assembly's array of entry points.
func (r *Image) readMethods(s sections, component uint16) error {
	t, ok := r.table(s, secMethodEntries, "method entry points")
	if !ok {
		return nil
	}
	a, err := openArray(t)
	if err != nil {
		return err
	}
	if a.count > maxMethods-r.index.claimed { // components may claim the same bytes
		return bad(t, 0, "claims %d methods, with %d before them", a.count, r.index.claimed)
	}
	r.index.claimed += a.count
	failed := 0
	for i := range a.count {
		off, ok, err := a.find(i)
		var function uint32
		if ok && err == nil {
			function, err = r.entryPoint(t, off)
		}
		if err != nil {
			r.index.note(err)
			if failed++; failed == maxFailed {
				return err
			}
			continue
		}
		if ok {
			r.index.entries = append(r.index.entries, entry{function: function, token: 0x06000001 + i, component: component})
		}
	}
	return nil
}

// entryPoint reads the index of a runtime function; what must be fixed up follows it.
func (r *Image) entryPoint(t table, off uint32) (uint32, error) {
	v, _, err := t.integer(off)
	if err != nil {
		return 0, err
	}
	function := v >> 1
	if v&1 != 0 { // fixups follow; bit 1: where they are
		function = v >> 2
	}
	if function >= r.index.count {
		return 0, bad(t, off, "runtime function %d of %d", function, r.index.count)
	}
	return function, nil
}

// bounds returns the RVAs of a runtime function; end is 0 when the table has none.
func (x *index) bounds(i uint32) (begin, end uint32, err error) {
	c := x.functions.at(i*x.size, 8)
	begin = c.U32()
	if x.size == 12 {
		end = c.U32()
	}
	return begin, end, c.Err()
}

// function returns the last runtime function that does not begin behind an RVA, or -1.
func (x *index) function(rva uint32) (i int, begin, end uint32, err error) {
	i = sort.Search(int(x.count), func(i int) bool {
		if err != nil {
			return true
		}
		var at uint32
		at, _, err = x.bounds(uint32(i))
		return at > rva
	}) - 1
	if err != nil || i < 0 {
		return -1, 0, 0, err
	}
	begin, end, err = x.bounds(uint32(i))
	return i, begin, end, err
}

// hotPart returns the runtime function that a cold part belongs to, or i itself.
func (r *Image) hotPart(i uint32) (hot uint32, cold bool, err error) {
	t, ok := r.table(r.sections, secHotCold, "hot and cold parts")
	if !ok || t.size < 8 {
		return i, false, nil
	}
	pair := func(k int) (cold, hot uint32) {
		c := t.at(uint32(k)*8, 8)
		cold, hot = c.U32(), c.U32()
		if err == nil {
			err = c.Err()
		}
		return cold, hot
	}
	k := sort.Search(int(t.size/8), func(k int) bool { cold, _ := pair(k); return err != nil || cold > i }) - 1
	if err != nil || k < 0 {
		return i, false, err
	}
	_, hot = pair(k)
	if err == nil && hot >= r.index.count {
		err = bad(t, uint32(k)*8, "hot part %d of %d", hot, r.index.count)
	}
	return hot, true, err
}
