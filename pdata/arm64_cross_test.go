package pdata

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
)

// arm64Listing is one function as llvm-readobj prints it.
type arm64Listing struct {
	va, length uint64
	packed     bool
	prolog     []string
	epilogs    map[uint64][]string // by start, in bytes
}

// imagesEnv names a folder of further ARM64 images for the comparison.
const imagesEnv = "DUMPTRIAGE_ARM64_IMAGES"

// Every function of every ARM64 image at hand decodes as llvm-readobj decodes
// it: lengths, prolog codes, epilogs and theirs.
func TestARM64AgainstLLVM(t *testing.T) {
	tool, err := exec.LookPath("llvm-readobj-19")
	if err != nil {
		t.Skip("no llvm-readobj-19 here; older ones do not know all codes")
	}
	paths := []string{filepath.Join("..", "unwind", "oracle", "testdata", "arm64", "unwind-arm64.dll")}
	if dir, ok := corpus.Find(""); ok {
		for _, pattern := range []string{"wine/arm64/*.exe", "user/A15-pe-unwind-fixtures/test.exe"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			paths = append(paths, found...)
		}
	}
	if dir := os.Getenv(imagesEnv); dir != "" {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		paths = append(paths, found...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { compareARM64(t, tool, path) })
	}
}

func compareARM64(t *testing.T, tool, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	im, err := OpenFile(f, info.Size(), path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "--file-headers", "--unwind", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	functions, wrong := 0, 0
	readListing(bufio.NewReaderSize(out, 1<<20), func(base uint64, l *arm64Listing) {
		functions++
		if msg := compareFunction(im, uint32(l.va-base), l); msg != "" {
			if wrong++; wrong <= 10 {
				t.Errorf("function at RVA %#x: %s", l.va-base, msg)
			}
		}
	})
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if functions == 0 || functions != len(im.arm64Table().entries) {
		t.Errorf("%d functions listed, %d in the table", functions, len(im.arm64Table().entries))
	}
	t.Logf("%d functions, %d wrong", functions, wrong)
}

func compareFunction(im *Image, rva uint32, l *arm64Listing) string {
	fn, ok, err := im.LookupARM64(rva)
	if err != nil || !ok || fn.Begin != rva || uint64(fn.Length) != l.length {
		return fmt.Sprintf("%+v %v %v, want %d bytes", fn, ok, err, l.length)
	}
	u, err := im.ARM64Info(fn)
	if err != nil {
		return err.Error()
	}
	prolog, err := u.Prolog(nil)
	if err != nil {
		return err.Error()
	}
	withoutHomes(l)
	if got := renderARM64(prolog, l.packed, false); strings.Join(got, "; ") != strings.Join(l.prolog, "; ") && !knownToDiffer(l) {
		return fmt.Sprintf("prolog %q, want %q", got, l.prolog)
	}
	if len(u.Epilogs) != len(l.epilogs) {
		return fmt.Sprintf("%d epilogs, want %d", len(u.Epilogs), len(l.epilogs))
	}
	for i, e := range u.Epilogs {
		want, listed := l.epilogs[uint64(e.Start)]
		if u.Length-e.Start < 4 || !listed && len(l.epilogs) != 1 {
			return fmt.Sprintf("epilog %d at %#x is not listed", i, e.Start)
		}
		if len(l.epilogs) == 1 {
			for _, want = range l.epilogs {
			}
		}
		codes, err := u.Codes(nil, e.Index)
		if err != nil {
			return err.Error()
		}
		if got := renderARM64(codes, false, true); want != nil && strings.Join(got, "; ") != strings.Join(want, "; ") {
			return fmt.Sprintf("epilog at %#x %q, want %q", e.Start, got, want)
		}
	}
	return ""
}

// withoutHomes puts into a listing of packed data what stores of parameters do
// to sp: nothing, but for a first one that makes the room.
func withoutHomes(l *arm64Listing) {
	if !l.packed {
		return
	}
	for i, line := range l.prolog {
		if m := homeStore.FindStringSubmatch(line); m != nil && m[1] == "" {
			l.prolog[i] = "nop"
		} else if m != nil {
			l.prolog[i] = "sub sp, sp, #" + m[1]
		}
	}
}

var homeStore = regexp.MustCompile(`^stp x[0246], x[1357], \[sp, #(?:\d+\]|-(\d+)\]!)$`)

// knownToDiffer: llvm-readobj calls packed data that save x19 and lr alone
// invalid. Visual C++ writes them, with code that makes the room first:
// sub sp, sp, #16; stp x19, x30, [sp].
func knownToDiffer(l *arm64Listing) bool {
	return l.packed && len(l.prolog) > 0 && strings.Contains(strings.Join(l.prolog, ";"), "INVALID!")
}

// renderARM64 writes codes as llvm-readobj does, in its two styles.
func renderARM64(codes []ARM64Code, packed, epilog bool) []string {
	var out []string
	for _, c := range codes {
		out = append(out, renderARM64Code(c, packed, epilog))
	}
	return out
}

func renderARM64Code(c ARM64Code, packed, epilog bool) string {
	save, move, post := "st", "sub sp, #%d", "[sp, #-%d]!"
	if epilog {
		save, move, post = "ld", "add sp, #%d", "[sp], #%d"
	}
	if packed {
		move = "sub sp, sp, #%d"
	}
	at := "[sp, #%d]"
	switch c.Op {
	case ARM64SavePre, ARM64SaveDPre, ARM64SaveQPre:
		at = post
	}
	at = fmt.Sprintf(at, c.Value)
	reg := func(file string, n uint8) string {
		if packed && file == "x" && n == 30 {
			return "lr"
		}
		return fmt.Sprintf("%s%d", file, n)
	}
	saved := func(file string) string {
		if c.Count == 2 {
			return fmt.Sprintf("%sp %s, %s, %s", save, reg(file, c.Reg), reg(file, c.Reg+1), at)
		}
		return fmt.Sprintf("%sr %s, %s", save, reg(file, c.Reg), at)
	}
	switch c.Op {
	case ARM64Nop:
		return "nop"
	case ARM64Alloc:
		return fmt.Sprintf(move, c.Value)
	case ARM64Save, ARM64SavePre:
		return saved("x")
	case ARM64SaveD, ARM64SaveDPre:
		return saved("d")
	case ARM64SaveQ, ARM64SaveQPre:
		return saved("q")
	case ARM64SaveLRPair:
		return fmt.Sprintf("%sp x%d, lr, %s", save, c.Reg, at)
	case ARM64SetFP:
		return map[bool]string{false: map[bool]string{false: "mov fp, sp", true: "mov sp, fp"}[epilog], true: "mov x29, sp"}[packed]
	case ARM64AddFP:
		return map[bool]string{false: fmt.Sprintf("add fp, sp, #%d", c.Value), true: fmt.Sprintf("sub sp, fp, #%d", c.Value)}[epilog]
	case ARM64SaveNext:
		return map[bool]string{false: "save next", true: "restore next"}[epilog]
	case ARM64PACSignLR:
		return map[bool]string{false: "pacibsp", true: "autibsp"}[epilog]
	}
	return map[ARM64Op]string{ARM64TrapFrame: "trap frame", ARM64MachineFrame: "machine frame", ARM64Context: "context",
		ARM64ECContext: "EC context", ARM64ClearUnwound: "clear unwound to call", ARM64EndC: "end_c"}[c.Op]
}

var listingNumber = regexp.MustCompile(`(?:0x([0-9A-F]+)|: ([0-9]+))\)?$`)

// readListing calls visit for each function of a listing.
func readListing(r *bufio.Reader, visit func(base uint64, l *arm64Listing)) {
	var base uint64
	var l *arm64Listing
	var into func(string)
	number := func(line []byte) uint64 {
		m := listingNumber.FindSubmatch(line)
		if m == nil {
			return 0
		}
		if len(m[1]) > 0 {
			n, _ := strconv.ParseUint(string(m[1]), 16, 64)
			return n
		}
		n, _ := strconv.ParseUint(string(m[2]), 10, 64)
		return n
	}
	var start, word uint64
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		line = bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(line, []byte("ImageBase: ")):
			base = number(line)
		case bytes.Equal(line, []byte("RuntimeFunction {")):
			if l != nil {
				visit(base, l)
			}
			l, into = &arm64Listing{epilogs: map[uint64][]string{}}, nil
		case l == nil:
		case bytes.HasPrefix(line, []byte("Function: ")):
			l.va = number(line)
		case bytes.HasPrefix(line, []byte("FunctionLength: ")):
			l.length = number(line)
		case bytes.HasPrefix(line, []byte("Fragment: ")):
			l.packed = true
		case bytes.HasPrefix(line, []byte("EpilogueOffset: ")): // the index of its codes
			word = number(line)
			l.epilogs[word] = nil
		case bytes.HasPrefix(line, []byte("StartOffset: ")): // in instructions
			start = number(line) * 4
			l.epilogs[start] = nil
		case bytes.Equal(line, []byte("Prologue [")):
			into = func(s string) { l.prolog = append(l.prolog, s) }
		case bytes.Equal(line, []byte("Epilogue [")):
			key := word
			into = func(s string) { l.epilogs[key] = append(l.epilogs[key], s) }
		case bytes.Equal(line, []byte("Opcodes [")):
			key := start
			into = func(s string) { l.epilogs[key] = append(l.epilogs[key], s) }
		case bytes.Equal(line, []byte("]")):
			into = nil
		case into != nil:
			s := string(line)
			if i := strings.Index(s, "; "); i >= 0 {
				s = s[i+2:]
			}
			if s != "end" {
				into(s)
			}
		}
	}
	if l != nil {
		visit(base, l)
	}
}
