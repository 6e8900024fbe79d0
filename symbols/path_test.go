package symbols

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dumptriage/dump"
)

// home gives the user a cache directory of the test's own.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	cache, err := DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(dir, cache); err != nil || strings.HasPrefix(rel, "..") {
		t.Fatalf("the cache is %s", cache)
	}
	return cache
}

// The forms are those of Microsoft's "Symbol path for Windows debuggers".
func TestParsePath(t *testing.T) {
	cache := home(t)
	const ms = "https://msdl.microsoft.com/download/symbols"
	plain := func(dir string) Element { return Element{Stores: []string{dir}, Plain: true} }
	stores := func(s ...string) Element { return Element{Stores: s} }
	for _, tc := range []struct {
		in   string
		want Path
	}{
		{"", nil},
		{" ; ;", nil},
		{`C:\sym`, Path{plain(`C:\sym`)}},
		{`C:\a; "D:\b c" ;/e`, Path{plain(`C:\a`), plain(`D:\b c`), plain("/e")}},
		{`srv*C:\cache*` + ms, Path{stores(`C:\cache`, ms)}},
		{`SRV*C:\cache*\\share\sym*` + ms + "/", Path{stores(`C:\cache`, `\\share\sym`, ms)}},
		{`symsrv*symsrv.dll*C:\cache*` + ms, Path{stores(`C:\cache`, ms)}},
		{`SymSrv*SymSrv.DLL*\\share`, Path{stores(`\\share`)}},
		{"srv*" + ms, Path{stores(cache, ms)}},
		{"srv**" + ms, Path{stores(cache, ms)}},
		{`srv*C:\a**` + ms, Path{stores(`C:\a`, cache, ms)}},
		{ms, Path{stores(cache, ms)}},
		{"HTTP://h", Path{stores(cache, "HTTP://h")}},
		{`C:\x;cache*C:\c;srv*\\s;srv*C:\c*` + ms + ";D:/", Path{plain(`C:\x`), stores(`C:\c`), stores(`C:\c`, `\\s`), stores(`C:\c`, ms), plain("D:/")}},
		{"cache*;" + ms, Path{stores(cache), stores(cache, ms)}},
	} {
		got, err := ParsePath(tc.in)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q:\n%v, %v\nwant %v", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{"srv*", "srv**", "symsrv*other.dll*x", "symsrv*", "foo*bar", "cache*a*b", "cache*https://h", "srv*a*ftp://h", "srv*http://",
		"srv*https://h/?q=1", "srv*https://h/#f", "srv*" + strings.Repeat("a*", 20), strings.Repeat("a;", 300), strings.Repeat("a", 1<<16)} {
		var e *dump.Error
		if p, err := ParsePath(in); !errors.As(err, &e) || e.Code != dump.BadRecord {
			t.Errorf("%.40q: %v, %v", in, p, err)
		}
	}
	if _, err := ParsePath("srv*https://u:secret@h/?q"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestEnvPath(t *testing.T) {
	env := map[string]string{"_NT_SYMBOL_PATH": "a;b", "_NT_EXECUTABLE_IMAGE_PATH": "c"}
	if p, err := EnvPath(func(n string) string { return env[n] }); err != nil || !reflect.DeepEqual(p, DirPath("a", "b", "c")) || p.HasServer() {
		t.Errorf("%v, %v", p, err)
	}
	env["_NT_ALT_SYMBOL_PATH"] = "srv*"
	if _, err := EnvPath(func(n string) string { return env[n] }); err == nil || !strings.Contains(err.Error(), "_NT_ALT_SYMBOL_PATH") {
		t.Errorf("%v", err)
	}
	if !(Path{{Stores: []string{"x", "https://h"}}}).HasServer() {
		t.Error("a server is not seen")
	}
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"srv*a*https://h;b", "symsrv*symsrv.dll*c", "cache*;http://u:p@h/x", `"C:\x";;*`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil && p != nil {
			t.Fatal("a path and an error")
		}
		for _, e := range p {
			if len(e.Stores) == 0 || e.Plain && (len(e.Stores) != 1 || IsURL(e.Stores[0])) || IsURL(e.Stores[0]) {
				t.Fatalf("%q: %v", s, e)
			}
		}
	})
}
