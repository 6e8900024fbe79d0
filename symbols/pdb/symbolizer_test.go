package pdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// tool finds an LLVM tool, preferring the version that the figures are from.
func tool(tb testing.TB, name string) string {
	tb.Helper()
	for _, n := range []string{name + "-19", name} {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	tb.Skip(name + " is not installed")
	return ""
}

// stubImage writes the least PE file that llvm-symbolizer takes: the sections of
// the PDB without contents, and a debug directory that names the PDB.
func stubImage(f *File, pdbPath string) []byte {
	le := binary.LittleEndian
	machine, optional, plus := f.info.Machine, 240, true
	if machine == 0x14C {
		optional, plus = 224, false
	}
	sections := f.Sections()
	end := uint32(0)
	for _, s := range sections {
		end = max(end, s.RVA+s.VirtualSize)
	}
	debugRVA := (end + 0x1FFF) &^ 0xFFF
	b := make([]byte, 64)
	copy(b, "MZ")
	le.PutUint32(b[60:], 64)
	b = append(b, "PE\x00\x00"...)
	b = le.AppendUint16(b, machine)
	b = le.AppendUint16(b, uint16(len(sections)+1))
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint16(b, uint16(optional))
	b = le.AppendUint16(b, 0x22)
	o := make([]byte, optional)
	dirs := 96
	le.PutUint16(o, 0x10B)
	if plus {
		le.PutUint16(o, 0x20B)
		dirs = 112
	}
	le.PutUint32(o[32:], 0x1000) // section alignment
	le.PutUint32(o[36:], 0x200)  // file alignment
	le.PutUint32(o[56:], debugRVA+0x1000)
	le.PutUint32(o[60:], 0x1000) // headers
	le.PutUint32(o[dirs-4:], 16) // data directories
	le.PutUint32(o[dirs+6*8:], debugRVA)
	le.PutUint32(o[dirs+6*8+4:], 28)
	b = append(b, o...)
	const raw = 0x2000
	header := func(name string, rva, virtual, size, at, flags uint32) {
		h := make([]byte, 40)
		copy(h, name)
		for i, v := range []uint32{virtual, rva, size, at} {
			le.PutUint32(h[8+4*i:], v)
		}
		le.PutUint32(h[36:], flags)
		b = append(b, h...)
	}
	for _, s := range sections {
		header(s.Name, s.RVA, s.VirtualSize, 0, 0, s.Characteristics)
	}
	header(".dbg", debugRVA, 0x1000, 0x1000, raw, 0x40000040)
	b = append(b, make([]byte, raw+0x1000-len(b))...)
	d := b[raw:]
	rsds := append(append([]byte("RSDS"), f.info.GUID[:]...), 0, 0, 0, 0)
	le.PutUint32(rsds[20:], f.info.Age)
	rsds = append(append(rsds, pdbPath...), 0)
	le.PutUint32(d[12:], 2) // CodeView
	le.PutUint32(d[16:], uint32(len(rsds)))
	le.PutUint32(d[20:], debugRVA+0x100)
	le.PutUint32(d[24:], raw+0x100)
	copy(d[0x100:], rsds)
	return b
}

// symbolized is one answer of llvm-symbolizer.
type symbolized struct {
	Address string
	Symbol  []struct {
		FunctionName, FileName, StartAddress string
		Line                                 uint32
	}
}

// symbolize asks llvm-symbolizer about addresses of a PDB.
func symbolize(t *testing.T, f *File, b []byte, rvas []uint32) []symbolized {
	t.Helper()
	dir := t.TempDir()
	pdbPath, exe := filepath.Join(dir, "x.pdb"), filepath.Join(dir, "x.exe")
	if err := os.WriteFile(pdbPath, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, stubImage(f, pdbPath), 0o666); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	for _, rva := range rvas {
		fmt.Fprintf(&in, "%#x\n", rva)
	}
	cmd := exec.Command(tool(t, "llvm-symbolizer"), "--obj="+exe, "--relative-address", "--functions=short", "--no-demangle", "--output-style=JSON")
	cmd.Stdin = &in
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out []symbolized
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s symbolized
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		out = append(out, s)
	}
	if len(out) != len(rvas) {
		t.Fatalf("llvm-symbolizer answered %d of %d addresses", len(out), len(rvas))
	}
	return out
}

// codeAddresses returns every 16th byte of the executable sections.
func codeAddresses(f *File) []uint32 {
	const executable = 0x20000000
	var out []uint32
	for _, s := range f.Sections() {
		if s.Characteristics&executable == 0 {
			continue
		}
		for off := uint32(0); off < s.VirtualSize; off += 16 {
			out = append(out, s.RVA+off)
		}
	}
	return out
}

func TestAgainstSymbolizer(t *testing.T) {
	tool(t, "llvm-symbolizer")
	pdbs := corpusPDBs(t)
	var names []string
	for name := range pdbs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compareSymbolizer(t, pdbs[name], name) })
	}
}

func compareSymbolizer(t *testing.T, b []byte, name string) {
	f := openBytes(t, b, name)
	rvas := codeAddresses(f)
	answers := symbolize(t, f, b, rvas)
	diff := map[string]int{}
	for i, rva := range rvas {
		loc, _ := f.Lookup(rva)
		for kind, text := range differences(loc, answers[i]) {
			if diff[kind]++; diff[kind] <= 8 {
				t.Logf("%#x %s: %s", rva, kind, text)
			}
		}
	}
	t.Logf("%s: %d addresses, differences: %v", name, len(rvas), diff)
	for _, d := range f.Damage() {
		t.Log("damage:", d)
	}
}

func frames(loc Location) []string {
	var out []string
	for _, in := range loc.Inlines {
		out = append(out, fmt.Sprintf("%s|%s:%d", in.Function, in.File, in.Line))
	}
	if loc.Source == SourceProc {
		out = append(out, fmt.Sprintf("%s|%s:%d", loc.Function, loc.File, loc.Line))
	}
	return out
}

func differences(loc Location, s symbolized) map[string]string {
	var want []string
	for _, fr := range s.Symbol {
		if fr.FunctionName == "" && fr.Line == 0 {
			continue
		}
		want = append(want, fmt.Sprintf("%s|%s:%d", fr.FunctionName, fr.FileName, fr.Line))
	}
	got := frames(loc)
	if strings.Join(got, "\n") == strings.Join(want, "\n") {
		return nil
	}
	kind := "frames"
	if len(got) == len(want) {
		kind = "text"
	}
	return map[string]string{kind: fmt.Sprintf("\n got %v %s\nwant %v", got, loc.Source, want)}
}
