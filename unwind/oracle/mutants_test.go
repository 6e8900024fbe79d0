//go:build oracle

package oracle

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "write the table of mutants to docs/unwinding.md")

// mutant is one fault put into the unwinder's source.
type mutant struct {
	name     string
	file     string // in the module
	old, new string
}

var mutants = []mutant{
	{"no epilog is detected", "unwind/amd64_stopped.go",
		"info, err := s.image.UnwindInfo(s.rf.UnwindInfo)\n\tif err != nil {", "info, err := s.image.UnwindInfo(s.rf.UnwindInfo)\n\tif err != nil || info != nil {"},
	{"every jmp is an epilog", "unwind/epilog.go",
		"to := uint32(s.addr-s.base) + rel\n", "to := uint32(s.addr-s.base) + rel\n\tif rel != 0 {\n\t\treturn true\n\t}\n"},
	{"a jmp to another fragment of the function is an epilog", "unwind/epilog.go",
		"return s.image.Primary(other).Begin != mine.Begin || to == mine.Begin", "_, _ = other, mine\n\treturn true"},
	{"jmp with REX.W is no tail jump", "unwind/epilog.go",
		"b[1] == 0xff && b[2]>>3&7 == 4:", "b[1] == 0xff && b[2]>>3&7 == 4 && s == nil:"},
	{"every jmp through a register or memory is a tail jump", "unwind/epilog.go",
		"case b[0] == 0xff && b[1] == 0x25: // jmp [rip+disp32]", "case b[0] == 0xff && b[1]>>3&7 == 4:"},
	{"prolog offsets are ignored", "unwind/rule.go", "if offset < uint32(c.PrologOffset) {", "if offset == 1<<31 {"},
	{"prolog offsets are taken for the instruction's start", "unwind/rule.go", "if offset < uint32(c.PrologOffset) {", "if offset <= uint32(c.PrologOffset) {"},
	{"chained entries are ignored", "unwind/rule.go", "if err != nil || done || !info.Chained {", "if err != nil || done || info != nil {"},
	{"8-bit displacements are zero-extended", "unwind/epilog.go", "return uint64(int64(int8(b)))", "return uint64(b)"},
	{"32-bit displacements are zero-extended", "unwind/epilog.go", "return uint64(int64(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)))", "return uint64(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)"},
	{"operations are undone in the prolog's order", "unwind/rule.go", "c := &info.Codes[i]\n\t\tif offset", "c := &info.Codes[len(info.Codes)-1-i]\n\t\tif offset"},
	{"the offset of an xmm save counts units of 8", "pdata/unwindcodes.go", "code.Value = uint32(c.U16()) * 16", "code.Value = uint32(c.U16()) * 8"},
	{"xmm registers are not restored", "unwind/amd64.go", "if ok1 && ok2 {\n\t\t\tregs.SetXMM", "if ok1 && !ok2 {\n\t\t\tregs.SetXMM"},
	{"a large allocation of 32 bits counts units of 8", "pdata/unwindcodes.go", "case unscaled:\n\t\tcode.Value = c.U32()", "case unscaled:\n\t\tcode.Value = c.U32()\n\t\tif code.Op == AllocLarge {\n\t\t\tcode.Value *= 8\n\t\t}"},
	{"far saves count units of 8", "pdata/unwindcodes.go", "case unscaled:\n\t\tcode.Value = c.U32()", "case unscaled:\n\t\tcode.Value = c.U32()\n\t\tif code.Op != AllocLarge {\n\t\t\tcode.Value *= 8\n\t\t}"},
	{"saves count from rsp though there is a frame register", "unwind/rule.go", "\tif set {\n", "\tif set && info.Version == 9 {\n"},
	{"the frame register is the base all through the prolog", "unwind/rule.go", "offset >= uint32(info.SizeOfProlog) || info.Chained", "offset < 1<<31"},
	{"SET_FPREG adds its offset", "unwind/amd64.go", "sp = v - uint64(u.val)", "sp = v + uint64(u.val)"},
	{"version 2 epilogs are not seen", "unwind/amd64_stopped.go", "if info.Version == 2 {\n", "if info.Version == 2 {\n\t\treturn epilog{}, \"\"\n"},
	{"version 2 pops of r8 to r15 take one byte", "unwind/epilog.go", "at++ // REX prefix", "at += 0 // REX prefix"},
	{"REX.B is ignored in pops", "unwind/epilog.go", "return e.pop(dump.Reg(b[0]&1<<3 | b[1]&7))", "return e.pop(dump.Reg(b[1] & 7))"},
	{"call sites are looked up with the return address", "unwind/amd64.go", "case s.kind == sitePdata && f.exact():", "case s.kind == sitePdata:"},
	{"vzeroupper and padding before ret are not accepted", "unwind/epilog.go", "if bytes.HasPrefix(b[:], fill) {", "if c.Left() < 0 && bytes.HasPrefix(b[:], fill) {"},
	{"Go's restarts are taken for framed", "unwind/restart.go", "if !buildsGoFrame(&s.rule) {", "if len(s.rule.ops) < 99 {"},
	{"code from a panic on is taken for a restart", "unwind/restart.go", "case b[0] == 0xe8 && calls > 0:", "case b[0] == 0xe8:"},
}

// TestMutants puts one fault at a time into the unwinder, by an overlay of its
// source, and demands that the oracle notices: a fault that breaks no boundary
// of the sample is one that the oracle could not tell from the real unwinder.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	root := moduleRoot(t)
	dir := t.TempDir()
	tryMutants(t, root, dir, "mutants", mutants, mutantSample(t, dir))
}

// tryMutants fills the table of docs/unwinding.md with that name.
func tryMutants(t *testing.T, root, dir, name string, mutants []mutant, sample []string) {
	t.Helper()
	table := new(bytes.Buffer)
	fmt.Fprintf(table, "| fault | boundaries | checks | call sites |\n|---|---|---|---|\n")
	sound := runMutant(t, root, dir, mutant{}, sample)
	fmt.Fprintf(table, "| none | %d of %d | %d of %d | %d of %d |\n", sound.wrong, sound.boundaries, sound.checks.Wrong, sound.checks.Tried, sound.calls.Wrong, sound.calls.Tried)
	for _, m := range mutants {
		got := runMutant(t, root, dir, m, sample)
		fmt.Fprintf(table, "| %s | %d | %d | %d |\n", m.name, got.wrong, got.checks.Wrong, got.calls.Wrong)
		if got.total() <= sound.total() {
			t.Errorf("unnoticed: %s", m.name)
		}
	}
	t.Logf("\n%s", table)
	if *updateDocs {
		replaceTable(t, filepath.Join(root, "docs/unwinding.md"), name, table.String())
	}
}

// broken is what one mutant did to the sample.
type broken struct {
	wrong, boundaries int
	checks, calls     Counts
}

func (b broken) total() int { return b.checks.Wrong + b.calls.Wrong }

func runMutant(t *testing.T, root, dir string, m mutant, sample []string) (b broken) {
	t.Helper()
	exe := filepath.Join(dir, "unwind-oracle")
	build := exec.Command("go", "build", "-tags", "oracle", "-o", exe, "./unwind/oracle/cmd/unwind-oracle")
	build.Dir = root
	if m.file != "" {
		build.Args = append(build.Args[:2:2], append([]string{"-overlay", m.overlay(t, root, dir)}, build.Args[2:]...)...)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", m.name, err, out)
	}
	for i := 0; i < len(sample); i += 2 {
		out, err := exec.Command(exe, "-json", "-stride", sample[i], "-runs", "4", sample[i+1]).Output()
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		var r Report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		b.wrong += len(r.Wrong)
		b.boundaries += r.Boundaries
		b.checks.add(r.Checks)
		b.calls.add(r.Calls)
	}
	return b
}

// overlay writes the changed source and the overlay that puts it in place.
func (m mutant) overlay(t *testing.T, root, dir string) string {
	t.Helper()
	path := filepath.Join(root, m.file)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		t.Fatalf("%s: %s holds the text to change %d times: bring the mutant up to date", m.name, m.file, n)
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(b), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func replaceTable(t *testing.T, path, name, table string) {
	t.Helper()
	tableBegin, tableEnd := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	if err := os.WriteFile(path, []byte(head+tableBegin+table+tableEnd+tail), 0o666); err != nil {
		t.Fatal(err)
	}
}
