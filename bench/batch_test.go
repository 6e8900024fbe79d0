// Package bench holds what is measured across packages; README.md tells more.
package bench

import (
	"io"
	"path/filepath"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/report"
	"dumptriage/triage"
)

// answer is all of what the command does with a dump after its flags are read,
// but for hashing it.
func answer(b *testing.B, path string) {
	d, err := triage.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", triage.Options{HashLimit: 1})
	if err != nil {
		b.Fatal(err)
	}
	if len(inc.Threads) == 0 {
		b.Fatal("no threads")
	}
	if err := report.JSON(io.Discard, inc, report.Options{}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDumps answers one dump after another in one process: the small one
// is written by this project, the other is real and has 100 KB.
func BenchmarkDumps(b *testing.B) {
	paths := map[string]string{"crashdemo": filepath.Join("..", "fixtures", "crash", "crashdemo.dmp")}
	if path, ok := corpus.Find("user/A08-fastfail-x64/tiny-exe-fastfail.dmp"); ok {
		paths["100KB"] = path
	}
	for name, path := range paths {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answer(b, path)
			}
		})
	}
}
