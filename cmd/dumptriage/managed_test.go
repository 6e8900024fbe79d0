package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedDescriptor: what of a .NET runtime's descriptor is damaged is said, and is a
// part of the answer that is missing; what the rest of it tells is told.
func TestDamagedDescriptor(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "managed", "shop.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ what, old, now, tells string }{
		{"an offset", `"Next":32`, `"Next":[]`, "it has values that are no numbers: CodeHeapListNode.Next"},
		{"the JSON", `"types":`, `"types";`, "bytes are no JSON"},
		{"the types", `"types":`, `"typos":`, "tell of no types"},
		{"the magic", "DNCCDAC\x00", "DNCCDAD\x00", "its magic is "},
	} {
		b := bytes.Clone(whole)
		at := bytes.Index(b, []byte(tc.old))
		if at < 0 {
			t.Fatalf("%q is not in the dump", tc.old)
		}
		copy(b[at:], tc.now)
		path := filepath.Join(t.TempDir(), "shop.dmp")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"triage", "stacks", "threads"} {
			var text, json, stderr bytes.Buffer
			if status := run([]string{verb, path}, &text, &stderr); status != exitPartial {
				t.Errorf("%s damaged: %s exits with %d: %s", tc.what, verb, status, &text)
			}
			run([]string{verb, path, "--json"}, &json, &stderr)
			if !strings.Contains(text.String(), tc.tells) || !strings.Contains(json.String(), `"status":"PARTIAL"`) || !strings.Contains(json.String(), `"stream":"contract descriptor"`) {
				t.Errorf("%s damaged: %s does not say so:\n%s\n%s", tc.what, verb, &text, &json)
			}
		}
	}
	// What is missing from a dump is no damage of it.
	var out bytes.Buffer
	if status := run([]string{"threads", filepath.Join("..", "..", "fixtures", "managed", "shop.dmp")}, &out, &out); status != exitOK {
		t.Errorf("the whole dump: %d, %s", status, &out)
	}
}
