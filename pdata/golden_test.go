package pdata

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// record is an unwind record as another tool prints it.
type record struct {
	Begin, End, Info uint64
	Version, Flags   int
	Prolog           int
	FrameReg         string // "" none
	FrameOffset      int    // bytes
	Codes            []string
	Handler          uint64
	Chain            [3]uint64
}

var gprs = []string{"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// readobjCode prints an operation the way llvm-readobj does.
func readobjCode(u *UnwindInfo, c UnwindCode) string {
	pre := fmt.Sprintf("0x%02X: ", c.PrologOffset)
	switch c.Op {
	case PushNonvol:
		return pre + "PUSH_NONVOL reg=" + gprs[c.Info]
	case AllocLarge:
		return pre + fmt.Sprintf("ALLOC_LARGE size=%d", c.Value)
	case AllocSmall:
		return pre + fmt.Sprintf("ALLOC_SMALL size=%d", c.Value)
	case SetFPReg:
		return pre + fmt.Sprintf("SET_FPREG reg=%s, offset=0x%X", gprs[u.FrameRegister], u.FrameOffset)
	case SaveNonvol:
		return pre + fmt.Sprintf("SAVE_NONVOL reg=%s, offset=0x%X", gprs[c.Info], c.Value)
	case SaveNonvolFar:
		return pre + fmt.Sprintf("SAVE_NONVOL_FAR reg=%s, offset=0x%X", gprs[c.Info], c.Value)
	case SaveXMM128:
		return pre + fmt.Sprintf("SAVE_XMM128 reg=XMM%d, offset=0x%X", c.Info, c.Value)
	case SaveXMM128Far:
		return pre + fmt.Sprintf("SAVE_XMM128_FAR reg=XMM%d, offset=0x%X", c.Info, c.Value)
	case PushMachFrame:
		return pre + "PUSH_MACHFRAME errcode=" + []string{"no", "yes"}[c.Info]
	}
	return pre + "?"
}

// ours decodes a function into a record.
func ours(t testing.TB, im *Image, base uint64, rf RuntimeFunction) record {
	t.Helper()
	u, err := im.UnwindInfo(rf.UnwindInfo)
	if err != nil {
		t.Errorf("%#x: %v", rf.Begin, err)
		return record{}
	}
	r := record{Begin: base + uint64(rf.Begin), End: base + uint64(rf.End), Info: base + uint64(rf.UnwindInfo),
		Version: int(u.Version), Flags: int(u.Flags), Prolog: int(u.SizeOfProlog)}
	if u.FrameRegister != 0 {
		r.FrameReg, r.FrameOffset = gprs[u.FrameRegister], int(u.FrameOffset)
	}
	for _, c := range u.Codes {
		r.Codes = append(r.Codes, readobjCode(u, c))
	}
	if u.Handler != 0 {
		r.Handler = base + uint64(u.Handler)
	}
	if u.Chained {
		r.Chain = [3]uint64{base + uint64(u.Chain.Begin), base + uint64(u.Chain.End), base + uint64(u.Chain.UnwindInfo)}
	}
	return r
}

var (
	hexInParens = regexp.MustCompile(`\((0x[0-9A-Fa-f]+)\)`)
	codeLine    = regexp.MustCompile(`^0x[0-9A-F]{2}: `)
)

// parseReadobj reads the unwind records that llvm-readobj --unwind printed.
func parseReadobj(t testing.TB, out []byte) (records []record, base uint64) {
	t.Helper()
	var r *record
	chained := false
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		key, value, _ := strings.Cut(strings.TrimSpace(s.Text()), ": ")
		addr := func() uint64 {
			m := hexInParens.FindStringSubmatch(s.Text())
			if m == nil {
				t.Fatalf("no number in %q", s.Text())
			}
			n, _ := strconv.ParseUint(m[1], 0, 64)
			return n
		}
		num := func() int { n, _ := strconv.ParseInt(value, 0, 64); return int(n) }
		switch {
		case key == "ImageBase":
			base, _ = strconv.ParseUint(value, 0, 64)
		case strings.HasPrefix(key, "RuntimeFunction {"):
			records = append(records, record{})
			r, chained = &records[len(records)-1], false
		case r == nil:
		case strings.HasPrefix(key, "Chained {"):
			chained = true
		case key == "StartAddress" && chained:
			r.Chain[0] = addr()
		case key == "EndAddress" && chained:
			r.Chain[1] = addr()
		case key == "UnwindInfoAddress" && chained:
			r.Chain[2] = addr()
		case key == "StartAddress":
			r.Begin = addr()
		case key == "EndAddress":
			r.End = addr()
		case key == "UnwindInfoAddress":
			r.Info = addr()
		case key == "Version":
			r.Version = num()
		case strings.HasPrefix(key, "Flags ["):
			r.Flags = int(addr())
		case key == "PrologSize":
			r.Prolog = num()
		case key == "FrameRegister" && value != "-":
			r.FrameReg, _, _ = strings.Cut(value, " ")
		case key == "FrameOffset" && value != "-":
			r.FrameOffset = num() * 16 // it prints the field, whose unit is 16 bytes
		case codeLine.MatchString(key + ": "):
			r.Codes = append(r.Codes, key+": "+value)
		case key == "Handler":
			r.Handler = addr()
		}
	}
	return records, base
}

// diffRecords looks every record of the other tool up and compares it.
func diffRecords(t *testing.T, im *Image, base uint64, want []record) {
	t.Helper()
	bad := 0
	for _, w := range want {
		rf, ok, err := im.Lookup(uint32(w.Begin - base))
		if !ok || err != nil {
			t.Fatalf("Lookup(%#x) = %v, %v", w.Begin-base, ok, err)
		}
		if rf.UnwindInfo != uint32(w.Info-base) && rf.Begin == uint32(w.Begin-base) {
			rf.UnwindInfo = uint32(w.Info - base) // several entries begin here: any of them is an answer
		}
		if d := gocmp.Diff(w, ours(t, im, base, rf)); d != "" {
			t.Errorf("function %#x (-other tool, +ours):\n%s", w.Begin, d)
			if bad++; bad > 5 {
				t.FailNow()
			}
		}
	}
}

// TestFixtureUnwind compares with what llvm-readobj says of the fixture, whose
// functions use every operation of version 1 and a chain.
func TestFixtureUnwind(t *testing.T) {
	im := openTest(t, readTest(t, "testdata/fixture.dll"), "fixture.dll")
	golden := readTest(t, "testdata/fixture.readobj.txt")
	want, base := parseReadobj(t, golden)
	if len(want) != 10 || base != 0x180000000 {
		t.Fatalf("golden has %d functions at base %#x, want the ten of fixture.s", len(want), base)
	}
	diffRecords(t, im, base, want)
	for _, op := range []string{"PUSH_NONVOL", "ALLOC_LARGE", "ALLOC_SMALL", "SET_FPREG", "SAVE_NONVOL ", "SAVE_NONVOL_FAR", "SAVE_XMM128 ", "SAVE_XMM128_FAR", "PUSH_MACHFRAME"} {
		if !bytes.Contains(golden, []byte(": "+op)) {
			t.Errorf("golden lacks %s: the fixture no longer covers it", op)
		}
	}
}

// TestReadobj compares with llvm-readobj over real images: compilers of
// Microsoft (mfc140u, kernel32), GNU (liblzo2), Clang (putty).
func TestReadobj(t *testing.T) {
	tool := ""
	for _, name := range []string{"llvm-readobj-19", "llvm-readobj"} {
		if p, err := exec.LookPath(name); err == nil {
			tool = cmp.Or(tool, p)
		}
	}
	if tool == "" {
		t.Skip("llvm-readobj is not installed")
	}
	dir := needModuleImages(t)
	paths := filepath.SplitList(os.Getenv("UNWIND_IMAGES"))
	for _, name := range []string{"D2D1Debug2.dll", "kernel32.dll", "liblzo2-2.dll", "putty.exe", "YourPhone.Exp.WinRT.dll", "brave.exe", "mfc140u.dll"} {
		paths = append(paths, filepath.Join(dir, name))
	}
	for _, path := range paths {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "mfc140u.dll" {
				t.Skip("short")
			}
			out, err := exec.Command(tool, "--file-headers", "--unwind", path).Output()
			want, base := parseReadobj(t, out)
			if err != nil && len(want) > 0 { // it dies of version 2, in the middle of an entry
				want = want[:len(want)-1]
				t.Logf("%s fails: %v", tool, err)
			}
			if len(want) == 0 {
				t.Skip("it printed no unwind information")
			}
			diffRecords(t, openTest(t, readTest(t, path), name), base, want)
			t.Logf("%d functions", len(want))
		})
	}
}

// epilogs is version 2 information as binutils' objdump prints it.
type epilogs struct {
	begin, end uint64
	size       int
	starts     []uint64 // offsets from the function's begin
}

var (
	objdumpRecord = regexp.MustCompile(`\(rva: ([0-9a-f]+)\): ([0-9a-f]+) - ([0-9a-f]+)`)
	objdumpEpilog = regexp.MustCompile(`v2 epilog \(length: ([0-9a-f]+)\) at pc\+:(.*)`)
)

// parseObjdump reads the version 2 epilogs that objdump -p printed, by the RVA
// of their information, which it prints once even when functions share it.
func parseObjdump(out []byte) map[uint32]epilogs {
	all := map[uint32]epilogs{}
	var at uint32
	hex := func(s string) uint64 { n, _ := strconv.ParseUint(s, 16, 64); return n }
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if m := objdumpRecord.FindStringSubmatch(s.Text()); m != nil {
			at = uint32(hex(m[1]))
			all[at] = epilogs{begin: hex(m[2]), end: hex(m[3])}
		} else if m := objdumpEpilog.FindStringSubmatch(s.Text()); m != nil {
			e := all[at]
			e.size = int(hex(m[1]))
			for _, f := range strings.Fields(m[2]) {
				if f != "[pad]" {
					n, _ := strconv.ParseUint(f, 0, 64)
					e.starts = append(e.starts, n)
				}
			}
			all[at] = e
		}
	}
	return all
}

func diffEpilogs(t *testing.T, im *Image, want map[uint32]epilogs) (n int) {
	t.Helper()
	for rva, w := range want {
		u, err := im.UnwindInfo(rva)
		if err != nil {
			t.Errorf("%#x: %v", rva, err)
			continue
		}
		var got []uint64
		for _, e := range u.Epilogs {
			got = append(got, w.end-w.begin-uint64(e.FromEnd))
		}
		slices.Sort(got)
		slices.Sort(w.starts)
		if int(u.EpilogSize) != w.size || !slices.Equal(got, w.starts) {
			t.Errorf("info %#x: epilogs of %d bytes at %#x, objdump says %d at %#x", rva, u.EpilogSize, got, w.size, w.starts)
		}
		n += len(w.starts)
	}
	return n
}

// TestVersion2Objdump compares epilogs with what objdump says of the fixture.
func TestVersion2Objdump(t *testing.T) {
	im := openTest(t, readTest(t, "testdata/version2.dll"), "version2.dll")
	if n := diffEpilogs(t, im, parseObjdump(readTest(t, "testdata/version2.objdump.txt"))); n != 2 {
		t.Errorf("golden has %d epilogs, want the two of version2.s", n)
	}
}

// TestVersion2Drivers compares the epilogs of drivers, which Microsoft builds
// with version 2 throughout, with objdump's.
func TestVersion2Drivers(t *testing.T) {
	tool, err := exec.LookPath("x86_64-w64-mingw32-objdump")
	if err != nil {
		t.Skip("x86_64-w64-mingw32-objdump is not installed")
	}
	dir := needModuleImages(t)
	for _, name := range []string{"acpi.sys", "WdBoot.sys", "SgrmEnclave_secure.dll"} {
		path := filepath.Join(dir, name)
		out, err := exec.Command(tool, "-p", path).Output()
		if err != nil {
			t.Skipf("%s fails: %v", tool, err)
		}
		t.Logf("%s: %d epilogs", name, diffEpilogs(t, openTest(t, readTest(t, path), name), parseObjdump(out)))
	}
}
