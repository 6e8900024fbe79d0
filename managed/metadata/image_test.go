package metadata

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// memory is bytes at an address.
type memory struct {
	base  uint64
	bytes []byte
}

func (m memory) ReadAt(p []byte, va uint64) (int, error) {
	if va < m.base || va >= m.base+uint64(len(m.bytes)) {
		return 0, &dump.MemoryError{VA: va}
	}
	n := copy(p, m.bytes[va-m.base:])
	if n < len(p) {
		return n, &dump.MemoryError{VA: va + uint64(n)}
	}
	return n, nil
}

// mapped lays an assembly out as the loader does, by its section headers.
func mapped(t *testing.T, file []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	nt := int(le.Uint32(file[0x3c:]))
	out := make([]byte, le.Uint32(file[nt+24+56:]))
	copy(out, file[:le.Uint32(file[nt+24+60:])])
	table := nt + 24 + int(le.Uint16(file[nt+20:]))
	for i := range int(le.Uint16(file[nt+6:])) {
		s := file[table+40*i:]
		copy(out[le.Uint32(s[12:]):], file[le.Uint32(s[20:]):][:le.Uint32(s[16:])])
	}
	return out
}

// The same names come from the file, from the image in memory, from the file in memory
// and from the metadata alone.
func TestPlaces(t *testing.T) {
	file, err := os.ReadFile("testdata/names.dll")
	if err != nil {
		t.Fatal(err)
	}
	const base = 0x7ff800000000
	want, err := openAssembly(t, "testdata/names.dll").Method(0x06000015)
	if err != nil || want.String() != "Shapes.Deep.Box`1+Inner.Go(!0, Shapes.Deep.Box`1<!0>, Inner<!0>)" {
		t.Fatal(want, err)
	}
	check := func(place string, im *pdata.Image, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(place, err)
		}
		m, err := FindInImage(im)
		if err != nil {
			t.Fatal(place, err)
		}
		if got, err := m.Method(0x06000015); got.String() != want.String() || err != nil {
			t.Errorf("%s: %s, %v", place, got, err)
		}
	}
	image := mapped(t, file)
	im, err := pdata.OpenMapped(memory{base, image}, base, "names.dll")
	check("mapped", im, err)
	h, err := ReadCLRHeader(im)
	if err != nil || h.RuntimeVersion != [2]uint16{2, 5} || h.ManagedNative != (Directory{}) || h.Flags != 1 { // IL only
		t.Errorf("%+v, %v", h, err)
	}
	im, err = pdata.OpenFile(Memory(memory{base, file}, base, int64(len(file))), int64(len(file)), "names.dll")
	check("flat", im, err)
	m, err := Open(Memory(memory{base, image}, base+uint64(h.MetaData.RVA), int64(h.MetaData.Size)), int64(h.MetaData.Size))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Method(0x06000015); got.String() != want.String() || err != nil {
		t.Errorf("metadata: %s, %v", got, err)
	}
}

// Memory does not wrap around the top of the address space.
func TestMemoryTop(t *testing.T) {
	r := Memory(memory{0, make([]byte, 64)}, 0xfffffffffffffff0, 0x100)
	if n, err := r.ReadAt(make([]byte, 16), 0x10); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// An image that is not .NET's says so; a CLR header that lies is an error.
func TestNotManaged(t *testing.T) {
	file, err := os.ReadFile("testdata/odd.dll")
	if err != nil {
		t.Fatal(err)
	}
	nt := int(binary.LittleEndian.Uint32(file[0x3c:]))
	dir := nt + 24 + 96 + 8*14 // PE32: IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR
	for _, tt := range []struct {
		name      string
		rva, size uint32
		want      dump.Code
	}{{"none", 0, 0, dump.UnsupportedFormat}, {"outside", 0x7fff0000, 72, dump.OutOfRange}, {"small", 0x2000, 8, dump.BadRecord}, {"zeros", 0x2ff0, 72, ""}} {
		b := bytes.Clone(file)
		copy(b[dir:], le(4, tt.rva, tt.size))
		im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "odd.dll")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := FindInImage(im); err == nil || tt.want != "" && code(err) != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, m, err, tt.want)
		}
	}
}

// METADATA_LARGE names an assembly for the benchmarks.
func BenchmarkThousandNames(b *testing.B) {
	path := os.Getenv("METADATA_LARGE")
	if path == "" {
		b.Skip("METADATA_LARGE names no file")
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		im, err := pdata.OpenFile(file, st.Size(), path)
		if err != nil {
			b.Fatal(err)
		}
		m, err := FindInImage(im)
		if err != nil {
			b.Fatal(err)
		}
		step := m.Rows(0x06000000) / 1000
		for i := range uint32(1000) {
			if _, err := m.Method(0x06000001 + i*step); err != nil {
				b.Fatal(err)
			}
		}
	}
}
