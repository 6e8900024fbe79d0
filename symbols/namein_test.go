package symbols

import (
	"reflect"
	"testing"
)

// publics is debug information of public symbols alone, by RVA, each with the
// line that Name says for it. A function that covers hides them.
type publics struct {
	Debug
	names map[uint32]string
	cover map[uint32]uint32 // start and end of functions
}

func (p publics) Name(lookup, ip uint32) (Name, bool) {
	for start, end := range p.cover {
		if lookup >= start && lookup < end {
			return Name{Function: p.names[start], Offset: uint64(ip - start), Source: SourcePDB}, true
		}
	}
	best, ok := uint32(0), false
	for rva := range p.names {
		if rva <= lookup && (!ok || rva > best) {
			best, ok = rva, true
		}
	}
	return Name{Function: p.names[best], Offset: uint64(ip - best), Source: SourcePDB, Public: true, Line: lookup}, ok
}

// Where the function table proves that the nearest public symbol is another
// function's, it is not used; the layout is nameImage's.
func TestNameIn(t *testing.T) {
	im := openImage(t, nameImage())
	d := publics{names: map[uint32]string{0x1100: "first", 0x1130: "label", 0x2000: "hot", 0x2100: "second", 0x2500: "leaf", 0x5000: "last"},
		cover: map[uint32]uint32{0x5000: 0x5100}}
	pdb := func(name string, off uint64, line uint32) Name {
		return Name{Function: name, Offset: off, Source: SourcePDB, Public: true, Line: line}
	}
	for _, x := range []struct {
		why        string
		lookup, ip uint32
		want       Name
	}{
		{"its function", 0x1108, 0x1109, pdb("first", 9, 0x1108)},
		{"a label in the function", 0x1140, 0x1140, pdb("label", 0x10, 0x1140)},
		{"a part behind another function", 0x2310, 0x2311, pdb("hot", 0x311, 0x2310)},
		{"a part before its function", 0x1008, 0x1009, Name{Function: "fn@1000", Offset: 9, Source: SourcePdata}},
		{"a function without symbol", 0x2210, 0x2211, Name{Function: "fn@2200", Offset: 0x11, Source: SourcePdata}},
		{"behind the function, in none", 0x2180, 0x2180, Name{Source: SourceNone}},
		{"a leaf, however far", 0x2500 + 0x1200, 0x2500 + 0x1200, pdb("leaf", 0x1200, 0x3700)},
		{"what covers is believed beyond .pdata", 0x5080, 0x5080, Name{Function: "last", Offset: 0x80, Source: SourcePDB}},
	} {
		if got := NameIn(d, im, x.lookup, x.ip); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %+v, want %+v", x.why, got, x.want)
		}
	}
	if got := NameIn(d, nil, 0x2210, 0x2211); !reflect.DeepEqual(got, pdb("second", 0x111, 0x2210)) {
		t.Errorf("without image: %+v", got)
	}
	if got := NameIn(nil, im, 0x1108, 0x1108); got.Function != "First" || got.Source != SourceExport {
		t.Errorf("without debug information: %+v", got)
	}
	if got := NameIn(nil, nil, 0x1108, 0x1108); got.Source != SourceNone || got.Function != "" {
		t.Errorf("without anything: %+v", got)
	}
}
