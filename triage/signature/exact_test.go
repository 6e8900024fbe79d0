package signature_test

import (
	"fmt"
	"testing"

	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/triage/signature"
)

// The exact id of a dump is the same with the system's symbols and without: here a
// PDB gives every function of the system a name, as Microsoft's do, and then the
// program's.
func TestExactIDWithoutSystemSymbols(t *testing.T) {
	for _, dump := range []struct{ file, images string }{
		{"../../fixtures/crashes/abort.dmp", "../../fixtures/crashes/images"},
		{"../../fixtures/crashes/thrown.dmp", "../../fixtures/crashes/images"},
		{"../../fixtures/locks/lockdemo-small.dmp", "../../fixtures/locks/images"},
		{"../../fixtures/readline/ConsoleApp1.dmp", "../../fixtures/readline/images"},
		{"../../fixtures/readline/ConsoleApp1.dmp", ""}, // no images: RVAs
	} {
		d, err := triage.Open(dump.file)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		inc, err := triage.Analyze(d, nil, "", triage.Options{Images: []string{dump.images}, NotBeside: true})
		if err != nil {
			t.Fatal(err)
		}
		defer inc.Close()
		bare := signature.Of(inc, signature.Options{})
		name := func(system bool) (named int) {
			for i := range inc.Threads {
				frames := inc.Threads[i].User.Frames
				for k := range frames {
					f := &frames[k]
					if f.Module == nil || f.Module.Module == nil {
						continue
					}
					switch m := rules.Module(f.Module.Name()); m {
					case "ntdll", "kernelbase", "kernel32", "ucrtbase", "user32":
						if system {
							f.Name = symbols.Name{Function: fmt.Sprintf("Private%d", k), Offset: f.IP - f.Module.Base, Source: symbols.SourcePDB}
							named++
						}
					default:
						if !system {
							f.Name = symbols.Name{Function: fmt.Sprintf("Private%d", k), Offset: f.IP - f.Module.Base, Source: symbols.SourcePDB}
							named++
						}
					}
				}
			}
			return named
		}
		if name(true) == 0 {
			t.Errorf("%s has no frame of the system", dump.file)
		}
		with := signature.Of(inc, signature.Options{})
		if with.ExactID != bare.ExactID {
			t.Errorf("%s: exact id %s with the system's symbols, %s without\n%q\n%q", dump.file, with.ExactID, bare.ExactID, with.Stack, bare.Stack)
		}
		if name(false); signature.Of(inc, signature.Options{}).ExactID == bare.ExactID && dump.images != "" {
			t.Errorf("%s: the program's symbols make no difference", dump.file)
		}
	}
}
