package r2r

import (
	"bytes"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// small has methods 1, 2, 17 and 40 at the functions 0, 2, 3 and 7; function 1 is a funclet
// of method 1, 4 and 5 are instances, 6 is a funclet of 5's, 8 is 2's cold part.
func small() *written {
	w := newImage()
	w.section(secCompiler, []byte("a compiler\x00"))
	w.section(secFunctions, functions(9))
	w.section(secMethodEntries, sparse(1, map[uint32][]byte{0: plain(0), 1: fixups(2), 16: farther(3), 39: plain(7)}, 48))
	w.section(secInstanceEntries, hashed(
		append([]byte{sigInstantiation, 5, 2, 0x08, 0x0e}, plain(4)...),                       // method 5 of <Int32, String>
		append([]byte{sigOwnerType, 0x15, 0x12, 0x08, 1, etCanonZap, 0x81, 0}, fixups(5)...))) // method 256 of a type of <__Canon>
	w.section(secHotCold, le(4, 8, 2))
	return w
}

func TestLookup(t *testing.T) {
	r, err := small().open(t)
	if err != nil {
		t.Fatal(err)
	}
	rva := func(function uint32) uint32 { return base + 0x80 + function*0x10 }
	for _, tt := range []struct {
		rva   uint32
		token uint32 // 0: unknown
		start uint32 // function where it is entered
		inst  bool
		cold  bool
	}{
		{rva(0), 0x06000001, 0, false, false}, {rva(0) + 0xb, 0x06000001, 0, false, false},
		{rva(1), 0x06000001, 0, false, false}, // funclet
		{rva(2), 0x06000002, 2, false, false}, {rva(3) + 5, 0x06000011, 3, false, false},
		{rva(4), 0x06000005, 4, true, false}, {rva(5), 0x06000100, 5, true, false}, {rva(6), 0x06000100, 5, true, false},
		{rva(7), 0x06000028, 7, false, false}, {rva(8), 0x06000002, 2, false, true},
		{rva(0) - 1, 0, 0, false, false}, {rva(0) + 0xc, 0, 0, false, false}, {rva(8) + 0xc, 0, 0, false, false},
		{0, 0, 0, false, false}, {0xffffffff, 0, 0, false, false},
	} {
		m, ok, err := r.Lookup(tt.rva)
		want := Method{}
		if tt.token != 0 {
			begin := tt.rva &^ 0xf
			want = Method{Token: tt.token, Instance: tt.inst, Start: rva(tt.start), Begin: begin, End: begin + 0xc, Cold: tt.cold}
		}
		if err != nil || ok != (tt.token != 0) || m != want {
			t.Errorf("%#x: %+v, %v, %v; want %+v", tt.rva, m, ok, err, want)
		}
	}
	if major, minor := r.Version(); major != 16 || minor != 3 || r.String() != "ReadyToRun 16.3" || r.Compiler() != "a compiler" {
		t.Error(r, r.Compiler())
	}
	if n := r.Weight(); n != 48+6 { // elements of the array, entries of both tables
		t.Errorf("weight %d", n)
	}
	if name, ok := r.Owner(); ok {
		t.Errorf("owner %q", name)
	}
	entries, err := r.Entries()
	if err != nil || len(entries) != 6 || entries[5].Token != 0x06000028 || entries[5].Function != 7 {
		t.Errorf("%+v, %v", entries, err)
	}
}

// Every index of arrays with cells of each width is found, and no other.
func TestArray(t *testing.T) {
	for _, cells := range []uint32{1, 2, 4} {
		elements := map[uint32][]byte{}
		for i := range uint32(80) {
			if i < 16 || i%3 == 0 && i < 60 || i == 63 { // full, sparse, one only, none
				elements[i] = plain(i * 5 % 97)
			}
		}
		w := newImage()
		w.section(secFunctions, functions(97))
		w.section(secMethodEntries, sparse(cells, elements, 80))
		r, err := w.open(t)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := r.Entries()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			i := e.Token&0xffffff - 1
			if elements[i] == nil || e.Function != i*5%97 {
				t.Errorf("cells of %d: element %d is function %d", cells, i, e.Function)
			}
			delete(elements, i)
		}
		if len(elements) != 0 {
			t.Errorf("cells of %d: %d elements were not found", cells, len(elements))
		}
	}
}

// The numbers of the public page, and the longest of each length.
func TestIntegers(t *testing.T) {
	for _, tt := range []struct {
		b    []byte
		want uint32
		sign int32
	}{
		{[]byte{0x18}, 12, 12}, {[]byte{0xa1, 0x0f}, 1000, 1000}, {[]byte{0xfe}, 127, -1}, {[]byte{0xfd, 0xff}, 1<<14 - 1, -1},
		{[]byte{0xfb, 0xff, 0xff}, 1<<21 - 1, -1}, {[]byte{0xf7, 0xff, 0xff, 0xff}, 1<<28 - 1, -1},
		{[]byte{0x0f, 0xff, 0xff, 0xff, 0xff}, 1<<32 - 1, -1}, {[]byte{0x0f, 0, 0, 0, 0x80}, 1 << 31, -1 << 31},
	} {
		in := table{in: reader(tt.b), size: uint32(len(tt.b)), name: "test"}
		if v, next, err := in.integer(0); v != tt.want || int(next) != len(tt.b) || err != nil {
			t.Errorf("% x: %d, %d, %v; want %d", tt.b, v, next, err, tt.want)
		}
		if v := signed(in.at(0, 5)); v != tt.sign {
			t.Errorf("% x: %d; want %d", tt.b, v, tt.sign)
		}
		if _, _, err := (table{in: reader(tt.b), size: uint32(len(tt.b)) - 1, name: "test"}).integer(0); err == nil {
			t.Errorf("% x cut by a byte: no error", tt.b)
		}
	}
}

// A composite image has the entry points of each assembly by itself. Its instances'
// methods are not told: they are unknown, and end what is the method's before them.
func TestComposite(t *testing.T) {
	w := newImage()
	part := func(element []byte) uint32 {
		methods := sparse(1, map[uint32][]byte{0: element}, 1)
		return w.put(coreHeader(0x20, [][3]uint32{{secMethodEntries, w.put(methods), uint32(len(methods))}}))
	}
	first, second := part(plain(0)), part(plain(2))
	w.section(secFunctions, functions(5))
	w.section(secInstanceEntries, hashed(append([]byte{0, 7}, plain(3)...)))
	w.section(secComponents, le(4, 0, 0, first, 20, 0, 0, second, 20))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	for function, component := range []int{1, 1, 2, 0, 0} {
		m, ok, err := r.Lookup(base + 0x80 + uint32(function)*0x10)
		if ok != (component > 0) || m.Component != component || ok && m.Token != 0x06000001 || (err == nil) != ok {
			t.Errorf("%d: %+v, %v, %v", function, m, ok, err)
		}
	}
	if len(r.Components()) != 2 {
		t.Errorf("%+v", r.Components())
	}
	if _, err := r.Metadata(1); dump.AsError(err).Code != dump.OutOfRange { // its IL is a file of its own
		t.Error(err)
	}
	if _, err := r.Metadata(3); dump.AsError(err).Code != dump.OutOfRange {
		t.Error(err)
	}
}

// Components may claim the same bytes: all together have no more methods than one may.
func TestCompositeLimit(t *testing.T) {
	w := newImage()
	methods := sparse(4, map[uint32][]byte{0: plain(0)}, maxMethods/2+1)
	list := w.put(methods)
	part := func() uint32 {
		return w.put(coreHeader(0x20, [][3]uint32{{secMethodEntries, list, uint32(len(methods))}}))
	}
	w.section(secFunctions, functions(1))
	w.section(secComponents, le(4, 0, 0, part(), 20, 0, 0, part(), 20))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := r.Entries()
	if len(entries) != 1 || entries[0].Component != 1 || dump.AsError(err).Code != dump.BadRecord {
		t.Errorf("%+v, %v", entries, err)
	}
}

// An assembly whose code is in a composite image names that.
func TestOwner(t *testing.T) {
	w := newImage()
	w.section(secOwner, []byte("framework-r2r.dll\x00"))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := r.Owner(); name != "framework-r2r.dll" || !ok {
		t.Error(name, ok)
	}
	if m, ok, err := r.Lookup(base + 0x80); ok || err != nil {
		t.Error(m, ok, err)
	}
}

// The module of an instance counts the references of the image's metadata, then, past one
// that is the manifest itself, those of the manifest.
func TestModules(t *testing.T) {
	w := newImage()
	w.meta = references("System.Runtime", "Shapes")
	manifest := references("Colours", "Sounds")
	w.section(secManifestMetadata, manifest)
	w.section(secFunctions, functions(7))
	var items [][]byte
	for module := range uint32(7) {
		item := append([]byte{sigOwnerType, 0x15, etModuleZap, byte(module), 0x12, 0x08, 1, etCanonZap, 9}, plain(module)...)
		if module == 1 { // the other way to say it
			item = append([]byte{0x80, sigUpdateContext | sigInstantiation, byte(module), 9, 1, 0x08}, plain(module)...)
		}
		items = append(items, item)
	}
	w.section(secInstanceEntries, hashed(items...))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	for module, want := range []string{"", "System.Runtime", "Shapes", "!", "Colours", "Sounds", "!"} {
		m, ok, err := r.Lookup(base + 0x80 + uint32(module)*0x10)
		if want == "!" {
			if ok || err == nil {
				t.Errorf("module %d: %+v, %v", module, m, ok)
			}
			continue
		}
		if !ok || err != nil || m.Assembly != want || m.Token != 0x06000009 || !m.Instance {
			t.Errorf("module %d: %+v, %v, %v; want %s", module, m, ok, err, want)
		}
	}
}

// The header of a composite image is at an export.
func TestExport(t *testing.T) {
	w := small()
	w.export = "RTR_HEADER"
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok, err := r.Lookup(base + 0x80); m.Token != 0x06000001 || !ok || err != nil {
		t.Errorf("%+v, %v, %v", m, ok, err)
	}
	w = small()
	w.export = "SOMETHING_ELSE"
	if _, err := w.open(t); err == nil || dump.AsError(err).Code != dump.UnsupportedFormat {
		t.Error(err)
	}
}

// Functions of ARM64 have no end.
func TestARM64(t *testing.T) {
	w := newImage()
	w.machine = 0xaa64
	w.section(secFunctions, le(4, base+0x80, 0, base+0x90, 0))
	w.section(secMethodEntries, sparse(1, map[uint32][]byte{0: plain(0), 1: plain(1)}, 2))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	want := Method{Token: 0x06000001, Start: base + 0x80, Begin: base + 0x80}
	if m, ok, err := r.Lookup(base + 0x8f); m != want || !ok || err != nil {
		t.Errorf("%+v, %v, %v", m, ok, err)
	}
}

// Two methods with the same code are said to be two.
func TestShared(t *testing.T) {
	w := newImage()
	w.section(secFunctions, functions(2))
	w.section(secMethodEntries, sparse(1, map[uint32][]byte{3: plain(1), 5: plain(1), 6: plain(0)}, 7))
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err := r.Lookup(base + 0x90); m.Token != 0x06000004 || !m.Shared || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if m, _, err := r.Lookup(base + 0x80); m.Token != 0x06000007 || m.Shared || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// An array that is damaged still gives the methods that can be read, by the function that
// they begin with; what lies between two is unknown, since another's entry may be lost.
func TestIncomplete(t *testing.T) {
	w := newImage()
	w.section(secFunctions, functions(4))
	w.section(secMethodEntries, sparse(1, map[uint32][]byte{0: plain(0), 16: plain(99), 32: plain(3)}, 48)) // no function 99
	r, err := w.open(t)
	if err != nil {
		t.Fatal(err)
	}
	for function, token := range []uint32{0x06000001, 0, 0, 0x06000021} {
		m, ok, err := r.Lookup(base + 0x80 + uint32(function)*0x10)
		if ok != (token != 0) || m.Token != token || (err == nil) != ok {
			t.Errorf("%d: %+v, %v, %v", function, m, ok, err)
		}
	}
}

// Images without such code say so.
func TestNotReadyToRun(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"no native code": func(b []byte) { copy(b[0x400+64:], le(4, 0, 0)) },
		"no CLR header":  func(b []byte) { copy(b[0x80+24+112+14*8:], le(4, 0, 0)) },
		"NGEN":           func(b []byte) { copy(b[bytes.Index(b, []byte("RTR\x00")):], "NGE\x00") },
	} {
		b := small().bytes()
		change(b)
		im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "r2r.dll")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Open(im); err == nil || dump.AsError(err).Code != dump.UnsupportedFormat {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}
