package minidump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unicode/utf16"

	"dumptriage/dump"
)

// le lays values out in little-endian order, without padding: integers by their
// type, byte slices as they are. It is all that the tests share with the
// format; every offset and size in a test is written by hand from the
// documentation.
func le(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if p, ok := v.([]byte); ok {
			b.Write(p)
			continue
		}
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(fmt.Sprintf("%T: %v", v, err))
		}
	}
	return b.Bytes()
}

func u16(v int) uint16    { return uint16(v) }
func u32(v int) uint32    { return uint32(v) }
func u64(v uint64) uint64 { return v }
func zeros(n int) []byte  { return make([]byte, n) }

// at overwrites bytes of b at an offset.
func at(b []byte, off int, values ...any) []byte {
	copy(b[off:], le(values...))
	return b
}

func wide(s string) []byte { return le(utf16.Encode([]rune(s))) }

// field is text in a fixed number of 16-bit units.
func field(s string, units int) []byte { return at(zeros(units*2), 0, wide(s)) }

// writer collects blobs and streams of a minidump. The directory comes last, so
// that offsets are known when streams are written.
type writer struct {
	data    []byte
	entries []entry
	version uint32
	flags   uint64
	stamp   uint32
	shared  uint32 // offset of a text that several records use
}

type entry struct {
	kind, size, rva uint32
}

func newWriter() *writer { return &writer{data: zeros(32), version: 0xa793} }

// blob appends bytes and returns their offset in the file.
func (w *writer) blob(values ...any) uint32 {
	for len(w.data)%4 != 0 {
		w.data = append(w.data, 0)
	}
	rva := len(w.data)
	w.data = append(w.data, le(values...)...)
	return uint32(rva)
}

// text appends a MINIDUMP_STRING.
func (w *writer) text(s string) uint32 {
	return w.blob(u32(2*len(utf16.Encode([]rune(s)))), wide(s), u16(0))
}

func (w *writer) stream(kind uint32, values ...any) {
	b := le(values...)
	w.entries = append(w.entries, entry{kind, uint32(len(b)), w.blob(b)})
}

func (w *writer) bytes() []byte {
	out := bytes.Clone(w.data)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	at(out, 0, []byte("MDMP"), w.version, u32(len(w.entries)), u32(len(out)), u32(0), w.stamp, w.flags)
	for _, e := range w.entries {
		out = append(out, le(e.kind, e.size, e.rva)...)
	}
	return out
}

func (w *writer) open(t testing.TB) *File {
	t.Helper()
	return mustOpen(t, w.bytes())
}

func mustOpen(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)), "test.dmp")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// systemInfo is a MINIDUMP_SYSTEM_INFO of Windows 10.0.19045 with 8 processors.
func systemInfo(arch int, csd uint32) []byte {
	return le(u16(arch), u16(6), u16(0x9e0d), uint8(8), uint8(1), u32(10), u32(0), u32(19045), u32(2), csd, u16(0x100), u16(0),
		[]byte("GenuineIntel"), u32(0x906ed), u32(0xbfebfbff), u32(0))
}

const (
	onX86   = 0
	onAMD64 = 9
	onARM64 = 12
)

// amd64Context is a CONTEXT: ContextFlags at 0x30, Rsp at 0x98, Rip at 0xf8.
func amd64Context(rip, rsp uint64) []byte {
	c := zeros(0x4d0)
	at(c, 0x30, u32(0x10001f))
	at(c, 0x98, rsp)
	return at(c, 0xf8, rip)
}

// x86Context is a CONTEXT: flags at 0, Eip at 0xb8, Esp at 0xc4.
func x86Context(eip, esp uint32) []byte {
	c := zeros(0x2cc)
	at(c, 0, u32(0x1003f))
	at(c, 0xb8, eip)
	return at(c, 0xc4, esp)
}

// thread is a MINIDUMP_THREAD: id, suspend count, priority class, priority,
// TEB, stack descriptor, context location.
func thread(id uint32, teb, stackVA uint64, stackSize, stackRVA, contextSize, contextRVA uint32) []byte {
	return le(id, u32(1), u32(0x20), u32(2), teb, stackVA, stackSize, stackRVA, contextSize, contextRVA)
}

// damageOf returns the damage with a code in a stream.
func damageOf(s dump.Source, code dump.Code, stream string) []*dump.Error {
	var out []*dump.Error
	for _, e := range s.Damage() {
		if e.Code == code && e.Stream == stream {
			out = append(out, e)
		}
	}
	return out
}

func wantDamage(t *testing.T, s dump.Source, code dump.Code, stream string) *dump.Error {
	t.Helper()
	found := damageOf(s, code, stream)
	if len(found) == 0 {
		t.Errorf("no %s damage in %s, only %v", code, stream, s.Damage())
		return &dump.Error{}
	}
	if found[0].File != "test.dmp" {
		t.Errorf("damage without its file: %v", found[0])
	}
	return found[0]
}

func wantClean(t *testing.T, s dump.Source) {
	t.Helper()
	if f, ok := s.(*File); ok {
		f.DecodeAll()
	}
	for _, e := range s.Damage() {
		t.Errorf("unexpected damage: %v", e)
	}
}

func wantCode(t *testing.T, err error, code dump.Code) *dump.Error {
	t.Helper()
	var e *dump.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want a *dump.Error with code %s", err, code)
	}
	return e
}
