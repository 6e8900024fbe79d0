package pdb

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"os"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"

	"dumptriage/dump"
)

// msfzOptions say how the tests' writer packs streams.
type msfzOptions struct {
	chunk       int    // bytes before compression
	fragment    int    // bytes, 0: a stream is one
	compression uint32 // of chunks and directory
	plain       func(stream int) bool
}

// writeMSFZ packs streams; nil ones do not exist. It follows the specification and
// shares nothing with the reader.
func writeMSFZ(t testing.TB, streams [][]byte, opt msfzOptions) []byte {
	t.Helper()
	le := binary.LittleEndian
	file, dir, packed := make([]byte, 80), []byte(nil), []byte(nil)
	for i, s := range streams {
		if s == nil {
			dir = le.AppendUint32(dir, 0xffffffff)
			continue
		}
		for len(s) > 0 {
			n := len(s)
			if opt.fragment > 0 {
				n = min(n, opt.fragment)
			}
			dir = le.AppendUint32(dir, uint32(n))
			if opt.plain != nil && opt.plain(i) {
				dir = le.AppendUint64(dir, uint64(len(file)))
				file = append(file, s[:n]...)
			} else {
				dir = le.AppendUint64(dir, 1<<63|uint64(len(packed)/opt.chunk)<<32|uint64(len(packed)%opt.chunk))
				packed = append(packed, s[:n]...)
			}
			s = s[n:]
		}
		dir = le.AppendUint32(dir, 0)
	}
	var table []byte
	count := 0
	for ; len(packed) > 0; count++ {
		n := min(opt.chunk, len(packed))
		b := compress(t, packed[:n], opt.compression)
		table = le.AppendUint64(table, uint64(len(file)))
		table = le.AppendUint32(table, opt.compression)
		table = le.AppendUint32(table, uint32(len(b)))
		table = le.AppendUint32(table, uint32(n))
		file, packed = append(file, b...), packed[n:]
	}
	b := compress(t, dir, opt.compression)
	copy(file, "Microsoft MSFZ Container\r\n\x1aALD\x00\x00")
	le.PutUint64(file[40:], uint64(len(file)))
	le.PutUint64(file[48:], uint64(len(file)+len(b)))
	for i, v := range []int{len(streams), int(opt.compression), len(b), len(dir), count, len(table)} {
		le.PutUint32(file[56+4*i:], uint32(v))
	}
	return append(append(file, b...), table...)
}

func compress(t testing.TB, b []byte, how uint32) []byte {
	t.Helper()
	switch how {
	case 1:
		e, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll(b, nil)
	case 2:
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 6)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
	return b
}

// streamsOf takes a PDB apart.
func streamsOf(t testing.TB, file []byte) [][]byte {
	t.Helper()
	m, err := OpenMSF(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, m.Streams())
	for i := range out {
		if _, ok := m.StreamSize(i); !ok {
			continue
		}
		s, err := m.Stream(i)
		if err != nil {
			t.Fatal(err)
		}
		if out[i], err = s.all(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A compressed PDB says of every address what the same PDB says that is not.
func TestMSFZ(t *testing.T) {
	plain, err := os.ReadFile("testdata/inline-x64.pdb")
	if err != nil {
		t.Fatal(err)
	}
	want, streams := openBytes(t, plain, "f.pdb"), streamsOf(t, plain)
	for name, opt := range map[string]msfzOptions{
		"zstd":                        {chunk: 1 << 20, compression: 1},
		"chunks shorter than streams": {chunk: 1000, compression: 1},
		"streams in fragments":        {chunk: 4096, fragment: 333, compression: 1},
		"deflate":                     {chunk: 4096, compression: 2},
		"chunks as they are":          {chunk: 4096, compression: 0},
		"some streams as they are":    {chunk: 4096, fragment: 5000, compression: 1, plain: func(i int) bool { return i%2 == 0 }},
	} {
		b := writeMSFZ(t, streams, opt)
		sameAs(t, name, want, b)
	}
	b, err := os.ReadFile("testdata/inline-x64.msfz.pdb")
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, "Microsoft's writer", want, b)
}

// sameAs compares what a compressed PDB says with what the plain one says.
func sameAs(t *testing.T, name string, want *File, b []byte) {
	t.Helper()
	f := openBytes(t, b, "f.pdb")
	if Sniff(bytes.NewReader(b)) != FormatMSFZ || !reflect.DeepEqual(f.Info(), want.Info()) {
		t.Errorf("%s: %+v, want %+v", name, f.Info(), want.Info())
	}
	named := 0
	for rva := uint32(0x1000); rva < 0x1400; rva++ {
		got, ok := f.Lookup(rva)
		wanted, _ := want.Lookup(rva)
		if !reflect.DeepEqual(got, wanted) {
			t.Fatalf("%s: %#x: %+v, want %+v", name, rva, got, wanted)
		}
		if ok {
			named++
		}
	}
	if d := f.Damage(); named == 0 || len(d) != 0 {
		t.Errorf("%s: %d named, damage %v", name, named, d)
	}
	if s, err := f.Struct("shapes::Point"); err != nil || len(s.Fields) == 0 {
		t.Errorf("%s: %+v, %v", name, s, err)
	}
}

// Claims that the file does not bear out are refused, and a file that was cut short
// never opens: a part of a download must not be taken for the whole.
func TestMSFZDamage(t *testing.T) {
	le := binary.LittleEndian
	good := writeMSFZ(t, [][]byte{{1, 2, 3}, bytes.Repeat([]byte{7}, 10000), nil}, msfzOptions{chunk: 4096, compression: 1})
	table := int(le.Uint64(good[48:]))
	for _, tc := range []struct {
		says  string
		code  dump.Code
		alter func(b []byte)
	}{
		{"version 1", dump.UnsupportedFormat, func(b []byte) { b[32] = 1 }},
		{"chunks in a table", dump.BadCount, func(b []byte) { le.PutUint32(b[72:], 1<<30) }},
		{"claims 1073741824 records", dump.BadCount, func(b []byte) { le.PutUint32(b[56:], 1<<30) }},
		{"claims to unfold", dump.Limit, func(b []byte) { le.PutUint32(b[68:], 0xffffffff) }},
		{"claims to unfold", dump.Limit, func(b []byte) { le.PutUint32(b[table+16:], 0xffffffff) }},
		{"ends beyond the end of the file", dump.Truncated, func(b []byte) { le.PutUint64(b[table:], 1<<40) }},
		{"cannot be unpacked", dump.BadRecord, func(b []byte) { le.PutUint32(b[68:], le.Uint32(b[68:])+1) }},
		{"compression 9 is not known", dump.UnsupportedFormat, func(b []byte) { b[60] = 9 }},
	} {
		b := bytes.Clone(good)
		tc.alter(b)
		_, err := Open(bytes.NewReader(b), int64(len(b)), "f.pdb")
		wantError(t, tc.says, err, tc.code, tc.says)
	}
	// Chunks that share their bytes would have them unpacked once for each.
	shared := bytes.Clone(good)
	var chunks []byte
	for range 100 {
		chunks = le.AppendUint64(chunks, 0)
		chunks = le.AppendUint32(le.AppendUint32(le.AppendUint32(chunks, 0), uint32(len(good))), 1)
	}
	le.PutUint64(shared[48:], uint64(len(shared)))
	le.PutUint32(shared[72:], 100)
	le.PutUint32(shared[76:], uint32(len(chunks)))
	shared = append(shared, chunks...)
	_, err := Open(bytes.NewReader(shared), int64(len(shared)), "f.pdb")
	wantError(t, "shared chunks", err, dump.Limit, "claim more bytes than")
	for n := range good {
		if _, err := OpenMSF(bytes.NewReader(good[:n]), int64(n)); err == nil {
			t.Errorf("%d of %d bytes were opened", n, len(good))
		}
	}
	// Streams that share their bytes would multiply them.
	var dir []byte
	for range 1 << 12 {
		dir = le.AppendUint64(le.AppendUint32(dir, 9000), 1<<63)
	}
	b := bytes.Clone(good)
	le.PutUint64(b[40:], uint64(len(b)))
	for i, v := range []int{1, 0, len(dir) + 4, len(dir) + 4} {
		le.PutUint32(b[56+4*i:], uint32(v))
	}
	b = append(append(b, dir...), 0, 0, 0, 0)
	_, err = Open(bytes.NewReader(b), int64(len(b)), "f.pdb")
	wantError(t, "shared", err, dump.Limit, "the streams of a file of")
}

// FuzzMSFZ alters compressed containers.
func FuzzMSFZ(f *testing.F) {
	streams := [][]byte{{1, 2, 3}, bytes.Repeat([]byte{7}, 500), nil, {}}
	for how := range uint32(3) {
		f.Add(writeMSFZ(f, streams, msfzOptions{chunk: 64, fragment: 100, compression: how, plain: func(i int) bool { return i == 0 }}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := OpenMSF(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for i := range min(m.Streams(), 16) {
			s, err := m.Stream(i)
			if err != nil {
				continue
			}
			if s.Size() > int64(len(b))*maxMSFZRatio+maxMSFZSmall {
				t.Fatalf("stream %d of %d bytes in a file of %d", i, s.Size(), len(b))
			}
			if all, err := s.all(); err == nil && int64(len(all)) != s.Size() {
				t.Fatalf("stream %d: %d of %d bytes", i, len(all), s.Size())
			}
		}
	})
}
