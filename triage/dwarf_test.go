package triage

import (
	"bytes"
	"debug/pe"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
)

// The debug information inside an image names frames, also when the dump's memory
// has the image: its headers say that the file has more. The function, line and
// inlined calls are those that llvm-symbolizer gives (symbols/dwarf/testdata).
func TestDWARF(t *testing.T) {
	const base = 0x140000000
	dir := filepath.Join("..", "symbols", "dwarf", "testdata")
	file, err := os.ReadFile(filepath.Join(dir, "clang-4.exe"))
	if err != nil {
		t.Fatal(err)
	}
	le32 := func(off int) uint32 {
		return uint32(file[off]) | uint32(file[off+1])<<8 | uint32(file[off+2])<<16 | uint32(file[off+3])<<24
	}
	nt := int(le32(0x3c))
	m := dump.Module{Base: base, Size: uint64(le32(nt + 24 + 56)), TimeDateStamp: le32(nt + 8), Path: `C:\lab\clang-4.exe`}
	for _, mapped := range []bool{false, true} {
		u := fake{memory: pages{}, modules: []dump.Module{m}, threads: []dump.Thread{{ID: 1, Context: regsAt(base+0x1040, 0x8000)}}}
		if mapped {
			u.memory = mappedPages(t, file, base)
		}
		inc := analyze(t, u.user(t), nil, Options{Images: []string{dir}})
		if len(inc.Threads) != 1 || len(inc.Threads[0].User.Frames) == 0 {
			t.Fatalf("%+v", inc.Threads)
		}
		f := inc.Threads[0].User.Frames[0]
		if f.Name.Source != symbols.SourceDWARF || f.Name.Function != "deep" || f.Name.File != "/src/mini.c" || f.Name.Line == 0 {
			t.Errorf("mapped %v: %+v", mapped, f.Name)
		}
		if mapped != (inc.Modules[0].Image == symbols.ImageFromMemory) {
			t.Errorf("mapped %v: image state %d", mapped, inc.Modules[0].Image)
		}
		if mod := inc.Modules[0]; mod.Symbols != symbols.DebugLoaded || filepath.Base(mod.SymbolsPath) != "clang-4.exe" {
			t.Errorf("mapped %v: state %d, %q", mapped, mod.Symbols, mod.SymbolsPath)
		}
	}
}

// mappedPages maps an image as the loader does, without the sections that hold its
// debug information: a dump need not have them.
func mappedPages(t *testing.T, file []byte, base uint64) pages {
	t.Helper()
	im, err := pe.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	out := pages{}
	header := make([]byte, 0x1000)
	copy(header, file[:0x400])
	out[base] = header
	for _, s := range im.Sections {
		if b, err := s.Data(); err == nil && s.Name[:2] != ".d" {
			out[base+uint64(s.VirtualAddress)] = append(b, make([]byte, -len(b)&0xfff)...)
		}
	}
	return out
}
