package sym

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
)

// Every line record of real files is what a look-up of its first and last byte
// says, and every function's name is that of its record; a public symbol's unless
// a function covers it. Lines beyond the end of their function are nobody's. The
// records are read here by other means.
func TestCorpus(t *testing.T) {
	for _, name := range []string{
		"user/A03-breakpad-minidump2-x86/test_app.sym", "user/A03-breakpad-minidump2-x86/kernel32.sym",
		"user/A15-pe-unwind-fixtures/dump_syms_regtest64.sym", "user/A04-lldb-fizzbuzz-x86/fizzbuzz.syms",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(corpus.Need(t, name))
			if err != nil {
				t.Fatal(err)
			}
			f, err := Open(bytes.NewReader(b), int64(len(b)), name)
			if err != nil {
				t.Fatal(err)
			}
			checked := checkRecords(t, f, string(b))
			if d := f.Damage(); d != nil {
				t.Errorf("damage: %v", d)
			}
			t.Logf("%d addresses", checked)
			if checked == 0 {
				t.Error("nothing was checked")
			}
		})
	}
}

func checkRecords(t *testing.T, f *File, text string) (checked int) {
	files := map[string]string{}
	for line := range strings.Lines(text) {
		if w := strings.SplitN(strings.TrimRight(line, "\r\n"), " ", 3); w[0] == "FILE" {
			files[w[1]] = w[2]
		}
	}
	hex := func(s string) uint32 {
		v, err := strconv.ParseUint(s, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(v)
	}
	fn, end := "", uint32(0)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		w := strings.Split(strings.Replace(line, " m ", " ", 1), " ")
		switch w[0] {
		case "MODULE", "FILE", "STACK", "INFO", "INLINE", "INLINE_ORIGIN":
		case "FUNC", "PUBLIC":
			skip := 4
			if w[0] == "PUBLIC" {
				skip = 3
			}
			name := strings.Join(w[skip:], " ")
			if w[0] == "FUNC" {
				fn, end = name, hex(w[1])+hex(w[2])
			}
			loc, ok := f.Lookup(hex(w[1]))
			if inside := w[0] == "PUBLIC" && !loc.Public; !ok || loc.Function != name && loc.RVA != hex(w[1]) && !inside {
				t.Errorf("%s: %+v", line, loc)
			}
			checked++
		default:
			at, size := hex(w[0]), hex(w[1])
			for _, rva := range []uint32{at, at + max(size, 1) - 1} {
				if rva >= end {
					continue
				}
				loc, ok := f.Lookup(rva)
				num, _ := strconv.Atoi(w[2])
				if !ok || loc.Function != fn || size > 0 && (int(loc.Line) != num || num != 0 && loc.File != files[w[3]]) {
					t.Errorf("%#x in %s, line %s of %s: %+v", rva, fn, w[2], files[w[3]], loc)
				}
				checked++
			}
		}
	}
	return checked
}
