package triage

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
)

// A frame is named by the symbol file of its module's debug identity. What of
// the file cannot be read is a warning with the file's name, and no more.
func TestDebugInformation(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "App.sym")
	// Age 1 and a GUID of zeros but for its first field, 0x00000007.
	text := "MODULE windows x86_64 000000070000000000000000000000001 App.pdb\nFILE 1 app.cc\nFILE bad\nFUNC 1000 40 0 ns::run(int)\n1000 40 5 1\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	u := fake{
		threads: []dump.Thread{{ID: 5, Context: regsAt(0x401010, 0x1000)}},
		modules: []dump.Module{{Base: 0x400000, Size: 0x3000, Path: `C:\App.exe`, CodeView: dump.CodeView{Signature: "RSDS", GUID: [16]byte{7}, Age: 1, PDB: `C:\App.pdb`}}},
	}
	inc := analyze(t, u.user(t), nil, Options{Images: []string{dir}})
	f := inc.Threads[0].User.Frames[0]
	if f.Name.Function != "ns::run" || f.Name.Full != "ns::run(int)" || f.Name.Offset != 0x10 || f.Name.File != "app.cc" || f.Name.Line != 5 || f.Name.Source != symbols.SourceSym {
		t.Errorf("%+v", f.Name)
	}
	if m := f.Module; m.Symbols != symbols.DebugLoaded || m.SymbolsPath != file {
		t.Errorf("%+v", m)
	}
	if len(inc.Errors) != 1 || !inc.Errors[0].Warning || inc.Errors[0].File != file || inc.Errors[0].Stream != "FILE" {
		t.Errorf("%v", inc.Errors)
	}

	u.modules[0].CodeView.Age = 2
	inc = analyze(t, u.user(t), nil, Options{Images: []string{dir}})
	if f := inc.Threads[0].User.Frames[0]; f.Name.Function != "" || f.Module.Symbols != symbols.DebugMismatch || len(inc.Errors) != 0 {
		t.Errorf("of another age: %+v, %+v, %v", f.Name, f.Module, inc.Errors)
	}
}
