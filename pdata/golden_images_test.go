package pdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// objdumpInfo is an UNWIND_INFO as objdump -p prints it, line by line.
type objdumpInfo struct{ lines []string }

var objdumpEntry = regexp.MustCompile(`^ [0-9a-f]{16}:\t([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16})$`)

// parseObjdumpEntries reads the function table, as virtual addresses.
func parseObjdumpEntries(out []byte) (entries [][3]uint64) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := objdumpEntry.FindStringSubmatch(lines.Text()); m != nil {
			var e [3]uint64
			for i := range e {
				e[i], _ = strconv.ParseUint(m[i+1], 16, 64)
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// parseObjdumpInfos reads what objdump printed, by RVA of the information.
// Handlers' data are left out: objdump guesses at where they end.
func parseObjdumpInfos(out []byte) map[uint32]*objdumpInfo {
	all := map[uint32]*objdumpInfo{}
	var at *objdumpInfo
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		if m := objdumpRecord.FindStringSubmatch(line); m != nil {
			at = &objdumpInfo{}
			rva, _ := strconv.ParseUint(m[1], 16, 32)
			all[uint32(rva)] = at // the same again when another entry shares it
			continue
		}
		trimmed := strings.TrimSpace(line)
		switch {
		case at == nil:
		case strings.HasPrefix(trimmed, "Version:"), strings.HasPrefix(trimmed, "Nbr codes:"), strings.HasPrefix(trimmed, "pc+0x"), strings.HasPrefix(trimmed, "Chain:"), strings.HasPrefix(trimmed, "unwind data:"):
			at.lines = append(at.lines, trimmed)
		case strings.HasPrefix(trimmed, "Handler:"), trimmed == "":
			at = nil
		}
	}
	return all
}

var lowerGPRs = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// objdumpLines prints an UNWIND_INFO the way objdump does. The number of slots
// is objdump's, as decoding does not keep it; epilogs are compared elsewhere.
func objdumpLines(u *UnwindInfo, slots string) []string {
	var flags []string
	for _, f := range []struct {
		bit  uint8
		name string
	}{{FlagEHandler, "UNW_FLAG_EHANDLER"}, {FlagUHandler, "UNW_FLAG_UHANDLER"}, {FlagChainInfo, "UNW_FLAG_CHAININFO"}} {
		if u.Flags&f.bit != 0 {
			flags = append(flags, f.name)
		}
	}
	if len(flags) == 0 {
		flags = []string{"none"}
	}
	frame := "none"
	if u.FrameRegister != 0 {
		frame = lowerGPRs[u.FrameRegister]
	}
	lines := []string{
		fmt.Sprintf("Version: %d, Flags: %s", u.Version, strings.Join(flags, " | ")),
		fmt.Sprintf("Nbr codes: %s, Prologue size: 0x%02x, Frame offset: 0x%x, Frame reg: %s", slots, u.SizeOfProlog, u.FrameOffset/16, frame),
	}
	for _, c := range u.Codes {
		lines = append(lines, fmt.Sprintf("pc+0x%02x: %s", c.PrologOffset, objdumpCode(u, c)))
	}
	if u.Chained {
		lines = append(lines, fmt.Sprintf("Chain: start: %016x, end: %016x", u.Chain.Begin, u.Chain.End), fmt.Sprintf("unwind data: %016x.", u.Chain.UnwindInfo))
	}
	return lines
}

func objdumpCode(u *UnwindInfo, c UnwindCode) string {
	switch c.Op {
	case PushNonvol:
		return "push " + lowerGPRs[c.Info]
	case AllocSmall:
		return fmt.Sprintf("alloc small area: rsp = rsp - 0x%x", c.Value)
	case AllocLarge:
		return fmt.Sprintf("alloc large area: rsp = rsp - 0x%x", c.Value)
	case SetFPReg:
		return fmt.Sprintf("FPReg: %s = rsp + 0x%x (info = 0x%x)", lowerGPRs[u.FrameRegister], u.FrameOffset, c.Info)
	case SaveNonvol, SaveNonvolFar:
		return fmt.Sprintf("save %s at rsp + 0x%x", lowerGPRs[c.Info], c.Value)
	case SaveXMM128, SaveXMM128Far:
		return fmt.Sprintf("save xmm%d at rsp + 0x%x", c.Info, c.Value)
	}
	return "?"
}

// TestObjdumpImages compares every operation of every entry with objdump's
// reading, over the images of the PE library and those that the environment
// variable UNWIND_IMAGES names (a list of paths). objdump prints nothing of some
// images; those TestReadobj compares.
func TestObjdumpImages(t *testing.T) {
	tool, err := exec.LookPath("x86_64-w64-mingw32-objdump")
	if err != nil {
		t.Skip("x86_64-w64-mingw32-objdump is not installed")
	}
	dir := needModuleImages(t)
	var paths []string
	for _, name := range []string{"kernel32.dll", "acpi.sys", "SgrmEnclave_secure.dll", "WdBoot.sys", "PSCRIPT5.DLL", "pwsh.exe", "putty.exe", "brave.exe", "mfc140u.dll"} {
		paths = append(paths, filepath.Join(dir, name))
	}
	if testing.Short() {
		paths = paths[:4]
	}
	paths = append(paths, filepath.SplitList(os.Getenv("UNWIND_IMAGES"))...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out, err := exec.Command(tool, "-p", path).Output()
			if err != nil {
				t.Skipf("%s fails: %v", tool, err)
			}
			diffObjdump(t, openTest(t, readTest(t, path), filepath.Base(path)), parseObjdumpInfos(out), parseObjdumpEntries(out))
		})
	}
}

func diffObjdump(t *testing.T, im *Image, all map[uint32]*objdumpInfo, entries [][3]uint64) {
	t.Helper()
	bad := 0
	for rva, want := range all {
		u, err := im.UnwindInfo(rva)
		if err != nil {
			t.Fatalf("info %#x: %v", rva, err)
		}
		slots := ""
		if len(want.lines) > 1 {
			slots, _, _ = strings.Cut(strings.TrimPrefix(want.lines[1], "Nbr codes: "), ",")
		}
		if got := objdumpLines(u, slots); !slices.Equal(got, want.lines) {
			t.Errorf("info %#x:\nobjdump %s\nours    %s", rva, strings.Join(want.lines, "\n        "), strings.Join(got, "\n        "))
			if bad++; bad > 5 {
				t.FailNow()
			}
		}
	}
	if len(entries) == 0 || len(all) == 0 {
		t.Skip("objdump printed no entries")
	}
	base := preferredBase(t, im)
	for _, e := range entries {
		rf, ok, err := im.Lookup(uint32(e[0] - base))
		got := [3]uint64{uint64(rf.Begin), uint64(rf.End), uint64(rf.UnwindInfo)}
		for i := range got {
			got[i] += base
		}
		if !ok || err != nil || got != e {
			t.Errorf("entry %#x, ours %#x (%v, %v)", e, got, ok, err)
			if bad++; bad > 5 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d entries, %d infos", len(entries), len(all))
}

// preferredBase reads ImageBase out of the optional header.
func preferredBase(t *testing.T, im *Image) uint64 {
	t.Helper()
	head := make([]byte, 0x400)
	if n, err := im.ReadRVA(head, 0); n < len(head) {
		t.Fatal(err)
	}
	at := binary.LittleEndian.Uint32(head[0x3c:])
	return binary.LittleEndian.Uint64(head[at+24+24:])
}
