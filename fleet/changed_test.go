package fleet

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dumptriage/triage"
)

// TestImageChangesBetweenDumps: an image that another build is written over, while a worker
// has it open, is not taken for the one that it was.
func TestImageChangesBetweenDumps(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("..", "fixtures", "crash", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	image := read("images/crashdemo.exe")
	other := bytes.Clone(image)
	stamp := other[binary.LittleEndian.Uint32(other[0x3c:])+8:]
	binary.LittleEndian.PutUint32(stamp, binary.LittleEndian.Uint32(stamp)+1)
	for i := range other[0x400:] { // another program
		other[0x400+i] ^= 0x5a
	}
	dir := t.TempDir()
	exe, dmp := filepath.Join(dir, "images", "crashdemo.exe"), filepath.Join(dir, "a.dmp")
	if err := os.Mkdir(filepath.Dir(exe), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dmp, read("crashdemo.dmp"), 0o666); err != nil {
		t.Fatal(err)
	}
	options := triage.Options{Images: []string{filepath.Dir(exe)}}
	kept := &Analyzer{Triage: options}
	defer kept.Close()
	var lines [][]byte
	for i, content := range [][]byte{image, other} {
		if err := os.WriteFile(exe, content, 0o666); err != nil {
			t.Skip("an open file cannot be written here:", err)
		}
		written := time.Now().Add(time.Duration(i) * time.Hour) // also where clocks are coarse
		if err := os.Chtimes(exe, written, written); err != nil {
			t.Fatal(err)
		}
		fresh := &Analyzer{Triage: options}
		want := fresh.Do(t.Context(), Job{Path: dmp}).Line
		fresh.Close()
		got := kept.Do(t.Context(), Job{Path: dmp}).Line
		if !bytes.Equal(got, want) {
			t.Errorf("build %d: another answer than that of a new worker:\n%s\n%s", i, got, want)
		}
		lines = append(lines, got)
	}
	if bytes.Equal(lines[0], lines[1]) {
		t.Error("the image has no say in the answer")
	}
}
