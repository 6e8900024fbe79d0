package managed

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// DescriptorExport is the export of a runtime that its contract descriptor lies at.
const DescriptorExport = "DotNetRuntimeContractDescriptor"

const (
	descriptorMagic  = 0x0043414443434e44 // "DNCCDAC\0"
	flags32          = 2                  // pointers have 32 bits
	maxDescriptor    = 1 << 20            // bytes of JSON; .NET 10 has 10,826
	maxPointerData   = 1 << 12            // slots; .NET 10 has 25
	descriptorStream = "contract descriptor"
)

// layout tells where the fields of the runtime's structures lie.
type layout struct {
	pointer int // bytes
	types   map[string]typeLayout
	globals map[string]global
	// contracts are versions by name: "1", "c1".
	contracts map[string]string

	unread []string // what has a form that is not known, such as "Thread.Id"
}

type typeLayout struct {
	size   uint64 // 0 unknown
	fields map[string]uint64
}

// global is a value of the descriptor, or the address of a variable.
type global struct {
	value uint64
	text  string
}

// offset returns where a field lies in a type.
func (l *layout) offset(typ, field string) (uint64, bool) {
	off, ok := l.types[typ].fields[field]
	return off, ok
}

// has reports whether all of some fields of a type are known.
func (l *layout) has(typ string, fields ...string) bool {
	for _, f := range fields {
		if _, ok := l.offset(typ, f); !ok {
			return false
		}
	}
	return true
}

// number returns a global, or what it is by default.
func (l *layout) number(name string, otherwise uint64) uint64 {
	if g, ok := l.globals[name]; ok {
		return g.value
	}
	return otherwise
}

// readDescriptor reads the contract descriptor at an address of the host.
func readDescriptor(host *hostMemory, va uint64) (*layout, error) {
	head, err := host.bytes(va, 16)
	if err != nil {
		return nil, err
	}
	c := cursor.New(head, descriptorStream, -1)
	magic, flags, size := c.U64(), c.U32(), c.U32()
	switch {
	case magic != descriptorMagic:
		return nil, dump.Errorf(dump.BadRecord, descriptorStream, "no descriptor at %#x: its magic is %#x", va, magic)
	case size > maxDescriptor:
		return nil, dump.Errorf(dump.BadCount, descriptorStream, "the descriptor at %#x claims %d bytes", va, size)
	}
	p := 8
	if flags&flags32 != 0 {
		p = 4
	}
	text, err := host.pointer(va+16, p)
	if err != nil {
		return nil, err
	}
	tail, err := host.bytes(va+16+uint64(p), 4)
	if err != nil {
		return nil, err
	}
	slots := cursor.New(tail, descriptorStream, -1).U32()
	data, err := host.pointer(va+24+uint64(p), p)
	if err != nil {
		return nil, err
	}
	blob, err := host.bytes(text, int(size))
	if err != nil {
		return nil, err
	}
	pointers := make([]uint64, 0, 32)
	for i := range min(slots, maxPointerData) {
		v, err := host.pointer(data+uint64(i)*uint64(p), p)
		if err != nil {
			return nil, err
		}
		pointers = append(pointers, v)
	}
	return parseDescriptor(blob, p, pointers)
}

// parseDescriptor reads the descriptor's JSON in its compact form. Pointers are
// what globals refer to by index. Keys that it does not know are passed over. Of a
// descriptor with values that it cannot read there is the rest, and an error.
func parseDescriptor(blob []byte, pointer int, pointers []uint64) (*layout, error) {
	var in struct {
		Types     map[string]map[string]json.RawMessage
		Globals   map[string]json.RawMessage
		Contracts map[string]json.RawMessage
	}
	if err := json.Unmarshal(blob, &in); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return nil, dump.Errorf(dump.BadRecord, descriptorStream, "its JSON is no descriptor: it has a %s at byte %d", typ.Value, typ.Offset)
		}
		e := dump.Errorf(dump.BadRecord, descriptorStream, "its %d bytes are no JSON", len(blob))
		e.Err = err
		return nil, e
	}
	if len(in.Types) == 0 {
		return nil, dump.Errorf(dump.BadRecord, descriptorStream, "its %d bytes of JSON tell of no types", len(blob))
	}
	l := &layout{pointer: pointer, types: map[string]typeLayout{}, globals: map[string]global{}, contracts: map[string]string{}}
	for name, fields := range in.Types {
		t := typeLayout{fields: map[string]uint64{}}
		for field, raw := range fields {
			if off, ok := parseNumber(firstOf(raw)); !ok {
				l.unread = append(l.unread, name+"."+field)
			} else if field == "!" {
				t.size = off
			} else {
				t.fields[field] = off
			}
		}
		l.types[name] = t
	}
	for name, raw := range in.Globals {
		if g, ok := parseGlobal(raw, pointers); ok {
			l.globals[name] = g
		} else {
			l.unread = append(l.unread, name)
		}
	}
	for name, raw := range in.Contracts {
		l.contracts[name] = strings.Trim(string(raw), `"`)
	}
	return l, l.damage()
}

// maxUnread is how many values a message names, and how many bytes of each name.
const maxUnread, maxUnreadName = 3, 64

// damage tells of values that were not read, nil when there are none.
func (l *layout) damage() error {
	n := len(l.unread)
	if n == 0 {
		return nil
	}
	slices.Sort(l.unread)
	var named []string
	for _, s := range l.unread[:min(n, maxUnread)] {
		named = append(named, strings.ToValidUTF8(s[:min(len(s), maxUnreadName)], ""))
	}
	more := ""
	if n > maxUnread {
		more = fmt.Sprintf(" and %d more", n-maxUnread)
	}
	return dump.Errorf(dump.BadRecord, descriptorStream, "it has values that are no numbers: %s%s", strings.Join(named, ", "), more)
}

// firstOf returns the value of "value" or of ["value", "type"].
func firstOf(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// parseGlobal reads [value, type], where value may be [index of a pointer].
func parseGlobal(raw json.RawMessage, pointers []uint64) (global, bool) {
	value := firstOf(raw)
	var index []uint64
	if json.Unmarshal(value, &index) == nil && len(index) == 1 {
		if index[0] >= uint64(len(pointers)) {
			return global{}, false
		}
		return global{value: pointers[index[0]]}, true
	}
	if n, ok := parseNumber(value); ok {
		return global{value: n}, true
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return global{}, false
	}
	return global{text: s}, true
}

// parseNumber reads 12, "12" or "0xc".
func parseNumber(raw json.RawMessage) (uint64, bool) {
	n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(string(raw)), `"`), 0, 64)
	return n, err == nil
}
