package symbols

import (
	"path/filepath"
	"strings"
	"testing"
)

// The names that are refused are those of Microsoft's "Naming Files, Paths, and
// Namespaces", and what means another place on any system.
func TestUnsafeNames(t *testing.T) {
	for _, name := range []string{"ntdll.dll", "app.pdb", "a b.dll", "ünï.pdb", "COM.dll", "COM10.pdb", "console.exe", "NULL.pdb", "LPT.pdb", "x.NUL", "..a", "30BE4E48D1D84E3E961D1A7E3B6B1F1B2A"} {
		if why := unsafeName(name); why != "" {
			t.Errorf("%q is refused: %s", name, why)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", `..\x`, "/etc/passwd", `C:\x`, "C:x", "a/b", `a\b`, "a:stream", "a.pdb::$DATA", "a*", "a?", `a"`, "a<", "a>", "a|",
		"a.", "a ", "a. .", " a", "a\x00b", "a\nb", "a\x7f", "a\u202eb", "\xff", "CON", "con.pdb", "Nul.a.b", "AUX", "PRN.dll", "COM1", "com9.pdb", "LPT0.sys", "COM¹.pdb", "lpt².x", "CON .pdb",
		"CONIN$", "conout$.pdb", "CLOCK$", "file.ptr", "File.Ptr", strings.Repeat("a", 256)} {
		if why := unsafeName(name); why == "" {
			t.Errorf("%q is let through", name)
		}
		for _, key := range []FileKey{{name, "1", "a"}, {"a", name, "a"}, {"a", "1", name}} {
			if key.Check() == nil {
				t.Errorf("%+v is let through", key)
			}
		}
	}
}

func TestURLPath(t *testing.T) {
	if got := (FileKey{"a b#.pdb", "1A", "a b#.pd_"}).URLPath(); got != "a%20b%23.pdb/1A/a%20b%23.pd_" {
		t.Error(got)
	}
	for in, want := range map[string]string{"ntdll.dll": "ntdll.dl_", "a.pdb": "a.pd_", "xü": "x_", "": "_"} {
		if got := compressedName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Whatever passes the check lies in the folder of its own key.
func FuzzFileKey(f *testing.F) {
	for _, s := range []string{"a.pdb", "..", "CON", `a\..\b`, "a:b", "/", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if (FileKey{s, s, s}).Check() != nil {
			return
		}
		if !filepath.IsLocal(s) || filepath.Base(s) != s || filepath.Clean(s) != s {
			t.Fatalf("%q leaves its folder", s)
		}
		if u := (FileKey{s, s, s}).URLPath(); strings.Count(u, "/") != 2 || strings.ContainsAny(u, "?#") {
			t.Fatalf("%q becomes %q", s, u)
		}
	})
}
