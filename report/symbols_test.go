package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/triage"
	"dumptriage/unwind"
)

func needs() []symbols.Need {
	m := &dump.Module{Path: `C:\app.exe`, TimeDateStamp: 1, Size: 0x1000}
	evil := &dump.Module{Path: "a\x1b[31m:b"}
	return []symbols.Need{
		{Module: m, Kind: symbols.NeedImage, Key: symbols.FileKey{Dir: "app.exe", ID: "000000011000", Name: "app.exe"}, InDump: true},
		{Module: m, Kind: symbols.NeedDebug, Key: symbols.FileKey{Dir: "app.pdb", ID: "AB1", Name: "app.pdb"}, Reason: "is another build", Mismatch: true,
			Attempts: []symbols.Attempt{{Place: "/s"}, {Place: "https://h", Path: "https://h/app.pdb/AB1/app.pdb", Result: "not found"}, {Place: "https://h", Path: "https://h/app.pdb/AB1/app.pd_", Result: "not found"}}},
		{Module: m, Kind: symbols.NeedDebug, Key: symbols.FileKey{Dir: "app.exe", Name: "app.exe"}, File: "/bin/app.exe", InImage: true},
		{Module: evil, Kind: symbols.NeedImage, Key: symbols.FileKey{Dir: "a\x1b[31m:b", Name: "a\x1b[31m:b"}},
	}
}

func TestSymbolList(t *testing.T) {
	l := &List{Kind: ListSymbols, System: &dump.System{}, Symbols: needs(), ThreadCount: -1, ModuleCount: -1}
	var text, js, manifest bytes.Buffer
	if err := ListText(&text, l, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in_dump", "mismatch", "4 files needed, 2 found, 2 missing", "in_image  app.exe                       inside the image\n", "app.pdb: is another build", "dumptriage symbols fetch FILE --server URL --to DIR", "Tried: /s\nTried: https://h (not found)\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("a name reaches the terminal as it is")
	}
	if err := ListJSON(&js, l, Options{}); err != nil {
		t.Fatal(err)
	}
	validate(t, js.Bytes())
	for _, want := range []string{`"state":"in_image","path":"/bin/app.exe"`, `"url_path":"app.pdb/AB1/app.pdb","state":"mismatch","tried":["/s","https://h/app.pdb/AB1/app.pdb (not found)","https://h/app.pdb/AB1/app.pd_ (not found)"]`,
		`"next_steps":["get what is missing: dumptriage symbols fetch FILE --server URL --to DIR, and give --symbols DIR then"]`} {
		if !strings.Contains(js.String(), want) {
			t.Errorf("the JSON lacks %s:\n%s", want, js.String())
		}
	}
	for _, other := range []*List{{Kind: ListSymbols, Symbols: needs(), Fetch: true}, {Kind: ListSymbols, Symbols: needs()[2:3]}} { // was fetched; nothing missing
		other.System, other.ThreadCount, other.ModuleCount = &dump.System{}, -1, -1
		text.Reset()
		js.Reset()
		if err := errors.Join(ListText(&text, other, Options{}), ListJSON(&js, other, Options{})); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "Next:") || strings.Contains(js.String(), "next_steps") {
			t.Errorf("a next step that leads to nothing:\n%s%s", text.String(), js.String())
		}
	}
	comma := l.Symbols[1]
	comma.Key.Name = "a,b.pdb"
	l.Symbols = append(l.Symbols, l.Symbols[1], comma) // two modules may share a PDB
	if err := ManifestText(&manifest, l); err != nil || manifest.String() != "app.pdb,AB1,1\n" {
		t.Errorf("%q, %v", manifest.String(), err)
	}
}

// What a server said of one file and repeats of the next is one place tried.
func TestPlacesAreNamedOnce(t *testing.T) {
	list := needs()
	list[3].Attempts = []symbols.Attempt{{Place: "https://h", Result: "not asked again: not found"}}
	var text bytes.Buffer
	if err := ListText(&text, &List{Kind: ListSymbols, System: &dump.System{}, Symbols: list, ThreadCount: -1, ModuleCount: -1}, Options{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "Tried: https://h"); n != 1 {
		t.Errorf("the server stands there %d times:\n%s", n, text.String())
	}
}

func TestStructure(t *testing.T) {
	l := &List{Kind: ListTypes, System: &dump.System{}, ThreadCount: -1, ModuleCount: -1, Struct: &pdb.Struct{Name: "S", Kind: "struct", Size: 8,
		Fields: []pdb.Field{{Type: "B", Base: true}, {Name: "f", Offset: 4, Type: "int", Bits: 1, BitStart: 0}}}}
	var text, js bytes.Buffer
	if err := ListText(&text, l, Options{}); err != nil || !strings.Contains(text.String(), "+0x000 (base)               : B\n   +0x004 f                    : int : Pos 0, 1 Bit\n") {
		t.Errorf("%v: %s", err, text.String())
	}
	if err := ListJSON(&js, l, Options{}); err != nil || !strings.Contains(js.String(), `{"name":"f","offset":4,"type":"int","bits":1,"bit_start":0}`) {
		t.Errorf("%v: %s", err, js.String())
	}
	validate(t, js.Bytes())
}

// Only names that another build's symbols gave are marked.
func TestMismatchMark(t *testing.T) {
	for _, tc := range []struct {
		state  symbols.DebugState
		source symbols.SourceKind
		want   string
	}{
		{symbols.DebugMismatch, symbols.SourcePDB, " [scan] [symbols of another build]"},
		{symbols.DebugMismatch, symbols.SourceSym, " [scan] [symbols of another build]"},
		{symbols.DebugMismatch, symbols.SourceExport, " [scan]"},
		{symbols.DebugLoaded, symbols.SourcePDB, " [scan]"},
	} {
		f := &triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustScan}, Module: &triage.Module{Symbols: tc.state}, Name: symbols.Name{Source: tc.source}}
		if got := trustMark(f, dump.AMD64); got != tc.want {
			t.Errorf("%v, %s: %q", tc.state, tc.source, got)
		}
	}
}

// The mark of a frame found by the chain of frame records is the name of the
// architecture's register.
func TestFramePointerMark(t *testing.T) {
	f := &triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustFramePointer, Method: unwind.MethodRBP}}
	for arch, want := range map[dump.Arch]string{dump.AMD64: " [rbp]", dump.ARM64: " [fp]"} {
		if got := trustMark(f, arch); got != want {
			t.Errorf("%v: %q, want %q", arch, got, want)
		}
	}
}
