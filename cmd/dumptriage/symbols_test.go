package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is fetched from a server is in the store afterwards, verified; a server
// with another build's file under the name leaves nothing there.
func TestSymbolsFetch(t *testing.T) {
	fixtures := filepath.Join("..", "..", "fixtures", "crash")
	good, err := os.ReadFile(filepath.Join(fixtures, "images", "crashdemo.exe"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(fixtures, "images", "legacy.exe"))
	if err != nil {
		t.Fatal(err)
	}
	const place = "crashdemo.exe/7E57AB606000/crashdemo.exe"
	for _, tc := range []struct {
		name    string
		content []byte
		want    string
	}{{"good", good, "1 found, 1 missing"}, {"poisoned", other, "0 found, 2 missing"}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/sym/"+place {
				http.NotFound(w, r)
				return
			}
			w.Write(tc.content)
		}))
		defer s.Close()
		dir := filepath.Join(t.TempDir(), "store")
		var stdout, stderr bytes.Buffer
		status := run([]string{"symbols", "fetch", filepath.Join(fixtures, "crashdemo.dmp"), "--server", s.URL + "/sym", "--to", dir}, &stdout, &stderr)
		if status != exitPartial || !strings.Contains(stdout.String(), tc.want) || !strings.Contains(stdout.String(), "Tried: "+s.URL+"/sym") || !strings.Contains(stderr.String(), "files are missing still") {
			t.Errorf("%s: status %d\n%s%s", tc.name, status, stdout.String(), stderr.String())
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(place)))
		if tc.name == "good" != bytes.Equal(got, good) || (tc.name == "poisoned") != os.IsNotExist(err) {
			t.Errorf("%s: the store has %d bytes, %v", tc.name, len(got), err)
		}
	}
}

// The layout follows from the declaration in inline.cpp, which the PDB was compiled
// from, for x64: two ints of which the second is shared by bit fields, a pointer.
func TestSymbolsTypes(t *testing.T) {
	pdb := filepath.Join("..", "..", "symbols", "pdb", "testdata", "inline-x64.pdb")
	var stdout, stderr bytes.Buffer
	status := run([]string{"symbols", "types", pdb, "shapes::Point"}, &stdout, &stderr)
	fields := strings.Join(strings.Fields(stdout.String()), " ")
	const want = "struct shapes::Point, 0x10 bytes +0x000 x : int +0x004 y : int : Pos 0, 5 Bits +0x004 z : int : Pos 5, 27 Bits +0x008 name : "
	if status != exitOK || !strings.HasPrefix(fields, want) {
		t.Errorf("status %d: %s%s", status, stdout.String(), stderr.String())
	}
	if status := run([]string{"symbols", "types", pdb, "_NO_SUCH"}, &stdout, &stderr); status != exitFailed || !strings.Contains(stderr.String(), `no structure is named "_NO_SUCH"`) {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}
