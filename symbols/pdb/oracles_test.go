package pdb

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
)

// Breakpad's dump_syms read this PDB through Microsoft's DIA: its line records,
// an address, a size, a line, are DIA's answers.
func TestLinesOfDIA(t *testing.T) {
	dir := filepath.Join(corpus.Need(t, ""), "user", "A15-pe-unwind-fixtures")
	text, err := os.ReadFile(filepath.Join(dir, "dump_syms_regtest64.sym"))
	if err != nil {
		t.Skip(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "dump_syms_regtest64.pdb"))
	if err != nil {
		t.Skip(err)
	}
	f := openBytes(t, raw, "dump_syms_regtest64.pdb")
	record := regexp.MustCompile(`^([0-9a-f]+) ([0-9a-f]+) (\d+) (\d+)$`)
	files := map[string]string{}
	n, bad := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if fields := strings.SplitN(line, " ", 3); fields[0] == "FILE" {
			files[fields[1]] = fields[2]
		}
		m := record.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rva, _ := strconv.ParseUint(m[1], 16, 32)
		size, _ := strconv.ParseUint(m[2], 16, 32)
		want, _ := strconv.ParseUint(m[3], 10, 32)
		for at := rva; at < rva+size; at++ {
			n++
			loc, _ := f.Lookup(uint32(at))
			if loc.Line != uint32(want) || loc.File != files[m[4]] {
				if bad++; bad < 8 {
					t.Errorf("%#x: %s:%d, want %s:%d", at, loc.File, loc.Line, files[m[4]], want)
				}
			}
		}
	}
	t.Logf("%d bytes of code, %d differ", n, bad)
	if n < 10000 {
		t.Errorf("only %d bytes of code compared", n)
	}
}

// The chains of calls of a real dump, by another reader of PDBs: a return
// address, then function, file and line for each frame at the call before it.
func TestChainsOfRealDump(t *testing.T) {
	file := filepath.Join(corpus.Need(t, ""), "wine", "msvc", "winpty-agent.bp.sym.txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	packed, err := os.ReadFile(filepath.Join(filepath.Dir(file), "winpty-agent.pdb.zst"))
	if err != nil {
		t.Skip(err)
	}
	raw, err := unzstd(packed)
	if err != nil {
		t.Skip(err)
	}
	f := openBytes(t, raw, "winpty-agent.pdb")
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 0
	for lines.Scan() {
		rva, rest, ok := strings.Cut(lines.Text(), " ")
		at, err := strconv.ParseUint(rva, 0, 32)
		if !ok || err != nil {
			continue
		}
		n++
		loc, ok := f.Lookup(uint32(at) - 1)
		if !ok || loc.Source != SourceProc {
			if n == 1 { // the address of frame 0 is no return address
				loc, _ = f.Lookup(uint32(at))
			}
		}
		var got []string
		for _, fr := range frames(loc) {
			got = append(got, fmt.Sprintf("%s %s:%d:0", fr.name, fr.file, fr.line))
		}
		if s := strings.Join(got, " "); s != rest {
			t.Errorf("%s:\n got %s\nwant %s", rva, s, rest)
		}
	}
	if n < 5 {
		t.Errorf("%d chains", n)
	}
}
