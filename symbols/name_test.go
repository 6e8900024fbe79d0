package symbols

import (
	"bytes"
	"reflect"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/pdata"
)

func openImage(t *testing.T, im *fixtures.Image) *pdata.Image {
	t.Helper()
	b := im.File()
	out, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), im.Name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// nameImage has every way in which code can relate to exports and unwind data.
// What each address is called follows from the layout in the comments.
func nameImage() *fixtures.Image {
	frame := fixtures.Steps(fixtures.Push(fixtures.RBX), fixtures.Alloc(0x20))
	hot := &fixtures.Function{Name: "Hot", RVA: 0x2000, Size: 0x80, Prolog: frame}
	inner := &fixtures.Function{RVA: 0x2200, Size: 0x40, Prolog: frame}
	cold := fixtures.Steps(fixtures.Alloc(0x20))
	return &fixtures.Image{
		Name: "names.dll", Base: 0x180000000, TimeDateStamp: 0x5f000001, SizeOfImage: 0x9000,
		Functions: []*fixtures.Function{
			{RVA: 0x1000, Size: 0x20, Prolog: cold, Parent: hot}, // moved before its function
			{Name: "First", RVA: 0x1100, Size: 0x60, Prolog: frame,
				Labels: []fixtures.Label{{Name: "FirstMiddle", Offset: 0x30}}},
			hot,
			{Name: "Second", RVA: 0x2100, Size: 0x40, Prolog: frame},
			inner, // not exported
			{RVA: 0x2300, Size: 0x40, Prolog: cold, Parent: hot},   // moved behind Second
			{RVA: 0x2380, Size: 0x40, Prolog: cold, Parent: inner}, // of a function that is not exported
			{Name: "Leaf", RVA: 0x2500, Size: 0x1400, Leaf: true},  // no unwind data
			{Name: "Last", RVA: 0x5000, Size: 0x40, Prolog: frame},
		},
	}
}

func TestNameOf(t *testing.T) {
	im := openImage(t, nameImage())
	export := func(name string, off uint64) Name { return Name{Function: name, Offset: off, Source: SourceExport} }
	start := func(name string, off uint64) Name { return Name{Function: name, Offset: off, Source: SourcePdata} }
	none := Name{Source: SourceNone}
	for _, x := range []struct {
		why        string
		lookup, ip uint32
		want       Name
	}{
		{"first byte of an export", 0x1100, 0x1100, export("First", 0)},
		{"return address at a function's end: looked up inside it", 0x213f, 0x2140, export("Second", 0x40)},
		{"before a label", 0x112f, 0x112f, export("First", 0x2f)},
		{"at a label inside a function", 0x1130, 0x1130, export("FirstMiddle", 0)},
		{"after a label inside a function", 0x1158, 0x1159, export("FirstMiddle", 0x29)},
		{"the function before is exported, this one is not", 0x2210, 0x2211, start("fn@2200", 0x11)},
		{"a part behind another export", 0x2310, 0x2311, export("Hot", 0x311)},
		{"a part before its function: no offset leads there", 0x1008, 0x1009, start("fn@1000", 9)},
		{"a part of a function without export", 0x2390, 0x2391, start("fn@2200", 0x191)},
		{"a leaf has only its export", 0x2508, 0x2508, export("Leaf", 8)},
		{"code behind a function that ends before it", 0x2140, 0x2140, none},
		{"within reach of an export", 0x2500 + 0xfff, 0x2500 + 0xfff, export("Leaf", 0xfff)},
		{"out of reach of an export", 0x2500 + 0x1000, 0x2500 + 0x1000, none},
		{"headers", 0x200, 0x200, none},
		{"outside the image", 0x00fff000, 0x00fff000, none},
		{"far outside the image", 0xffffffff, 0xffffffff, none},
	} {
		if got := NameOf(im, x.lookup, x.ip); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s (%#x): %+v, want %+v", x.why, x.lookup, got, x.want)
		}
	}
}

// In an image without exports only .pdata names, and in one without .pdata
// only exports.
func TestNameOfOneSource(t *testing.T) {
	frame := fixtures.Steps(fixtures.Alloc(0x28))
	im := openImage(t, &fixtures.Image{Name: "bare.dll", Base: 0x180000000, SizeOfImage: 0x4000,
		Functions: []*fixtures.Function{{RVA: 0x1000, Size: 0x40, Prolog: frame}}})
	if got := NameOf(im, 0x1010, 0x1010); !reflect.DeepEqual(got, Name{Function: "fn@1000", Offset: 0x10, Source: SourcePdata}) {
		t.Errorf("without exports: %+v", got)
	}
	if got := NameOf(im, 0x1050, 0x1050); !reflect.DeepEqual(got, Name{Source: SourceNone}) {
		t.Errorf("without exports, behind the code: %+v", got)
	}
	im = openImage(t, &fixtures.Image{Name: "leaf.dll", Base: 0x180000000, SizeOfImage: 0x4000,
		Functions: []*fixtures.Function{{Name: "Only", RVA: 0x1000, Size: 0x40, Leaf: true}}})
	if got := NameOf(im, 0x1010, 0x1011); !reflect.DeepEqual(got, Name{Function: "Only", Offset: 0x11, Source: SourceExport}) {
		t.Errorf("without .pdata: %+v", got)
	}
}

// An export that is mangled is shown readable.
func TestNameOfMangled(t *testing.T) {
	im := openImage(t, &fixtures.Image{Name: "cpp.dll", Base: 0x180000000, SizeOfImage: 0x4000,
		Functions: []*fixtures.Function{{Name: "?run@Job@app@@QEAAHPEBD@Z", RVA: 0x1000, Size: 0x40, Leaf: true}}})
	want := Name{Function: "app::Job::run", Full: "public: int __cdecl app::Job::run(char const *)", Offset: 4, Source: SourceExport}
	if got := NameOf(im, 0x1004, 0x1004); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func FuzzNameOf(f *testing.F) {
	for _, rva := range []uint32{0x1008, 0x1130, 0x2210, 0x2310, 0x2390, 0x2508, 0x3500} {
		f.Add(nameImage().File(), rva, uint32(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, lookup, after uint32) {
		im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "f")
		if err != nil {
			return
		}
		ip := lookup + after%2
		if ip < lookup {
			return
		}
		n := NameOf(im, lookup, ip)
		if n.Offset > uint64(ip) || (n.Function == "") != (n.Source == SourceNone) {
			t.Fatalf("%#x: %+v", lookup, n)
		}
	})
}
