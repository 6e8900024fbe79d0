package metadata

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// root returns the metadata of an assembly file by itself.
func root(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadCLRHeader(im)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, h.MetaData.Size)
	if _, err := im.ReadRVA(out, h.MetaData.RVA); err != nil {
		t.Fatal(err)
	}
	return out
}

// all asks for everything that there is, and returns the first error. Every error must
// be a *dump.Error that names its table or heap.
func all(t testing.TB, m *Metadata, most uint32) (first error) {
	check := func(err error) {
		var e *dump.Error
		if err != nil && (!errors.As(err, &e) || e.Stream == "") {
			t.Errorf("error without a place: %v", err)
		}
		if first == nil {
			first = err
		}
	}
	for _, table := range []uint32{1, 2, 6, 0xa, 0x1b, 0x2b} {
		for rid := uint32(1); rid <= min(m.Rows(table<<24), most); rid++ {
			token := table<<24 | rid
			if table == 1 || table == 2 || table == 0x1b {
				_, err := m.Type(token)
				check(err)
				continue
			}
			method, err := m.Method(token)
			check(err)
			check(method.Signature)
			if method.RVA != 0 && rid < 4 {
				_, err := m.MethodByRVA(method.RVA)
				check(err)
			}
		}
	}
	_, err := m.Assembly()
	check(err)
	_, err = m.AssemblyRefs()
	check(err)
	_, err = m.Module()
	check(err)
	_, err = m.MVID()
	check(err)
	return first
}

// Metadata that is cut short opens or not, but where anything is missing an error says so.
func TestCut(t *testing.T) {
	whole := root(t, "testdata/odd.dll")
	m, err := Open(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if err := all(t, m, 1000); err != nil {
		t.Fatal(err)
	}
	last := int(m.guids.off + m.guids.size) // behind it is padding, or nothing that is asked for
	for n := range whole {
		m, err := Open(bytes.NewReader(whole[:n]), int64(n))
		if err != nil {
			var e *dump.Error
			if !errors.As(err, &e) || e.Stream == "" {
				t.Errorf("%d bytes: error without a place: %v", n, err)
			}
			continue
		}
		if err := all(t, m, 1000); err == nil && n < min(last, int(m.blobs.off)) {
			t.Errorf("cut to %d bytes, all is as if nothing was missing", n)
		}
	}
}

// A byte that is changed makes errors or other names, and nothing else.
func TestChangedBytes(t *testing.T) {
	whole := root(t, "testdata/odd.dll")
	for i := range whole {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] = v
			if m, err := Open(bytes.NewReader(b), int64(len(b))); err == nil {
				all(t, m, 20)
			}
		}
	}
}

// holed is a file with pages that cannot be read.
type holed struct {
	bytes   []byte
	missing func(page int64) bool
}

const testPage = 0x200

func (h holed) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		at := off + int64(i)
		if at >= int64(len(h.bytes)) || h.missing(at/testPage) {
			return i, errors.New("page is not in the dump")
		}
		p[i] = h.bytes[at]
	}
	return len(p), nil
}

// Pages that are missing take with them what lies in them, and nothing else: each
// answer is right or an error. Without one page some answers must still be right.
func TestMissingPages(t *testing.T) {
	whole := root(t, "testdata/names.dll")
	good, err := Open(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for page := int64(1); page <= int64(len(whole))/testPage; page++ {
		m, err := Open(holed{whole, func(p int64) bool { return p == page }}, int64(len(whole)))
		if err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
		known := 0
		for rid := uint32(1); rid <= good.Rows(0x06000000); rid++ {
			want, _ := good.Method(0x06000000 | rid)
			got, err := m.Method(0x06000000 | rid)
			if err != nil {
				var e *dump.Error
				if !errors.As(err, &e) || e.Code != dump.IO || e.Offset+e.Size <= page*testPage || e.Offset >= (page+1)*testPage {
					t.Errorf("page %d, method %d: error %v does not say which page is missing", page, rid, err)
				}
				continue
			}
			if got.FullName() != want.FullName() || got.Signature == nil && got.String() != want.String() {
				t.Errorf("page %d, method %d: %s, want %s", page, rid, got, want)
			}
			known++
		}
		t.Logf("page %d missing: %d of %d known", page, known, good.Rows(0x06000000))
	}
}

func FuzzMetadata(f *testing.F) {
	for _, name := range []string{"names", "odd"} {
		b := root(f, "testdata/"+name+".dll")
		f.Add(b)
		f.Add(bytes.Replace(b, []byte("#~\x00\x00"), []byte("#-\x00\x00"), 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		all(t, m, 50)
	})
}
