package triage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// Functions without a frame in ebp are unwound by their symbol file, though the
// dump holds no code; without it the stale return address misleads, and says so.
func TestFrameRecords(t *testing.T) {
	c := fixtures.CrashFramelessX86()
	dir := imageDir(t, map[string][]byte{"frameless.sym": c.Symbols})
	inc := analyze(t, openBytes(t, "frameless-x86.dmp", c.Dump), nil, Options{Images: []string{dir}})
	frames := inc.Threads[0].User.Frames
	if len(frames) != len(c.Walk) {
		t.Fatalf("%d frames, want %d", len(frames), len(c.Walk))
	}
	for i, want := range c.Walk {
		f := frames[i]
		if uint32(f.IP) != want.PC || uint32(f.SP) != want.ESP || uint32(f.FP) != want.EBP || !f.HasFP || f.Name.Function != want.Function {
			t.Errorf("frame %d is %+v, want %+v", i, f, want)
		}
		if i > 0 && (f.Trust != unwind.TrustCFI || f.Method != unwind.MethodFPO || !strings.HasPrefix(f.Detail, "by STACK WIN at frameless.exe+0x")) {
			t.Errorf("frame %d: %v %v %q", i, f.Trust, f.Method, f.Detail)
		}
	}
	inc = analyze(t, openBytes(t, "frameless-x86.dmp", c.Dump), nil, Options{})
	if f := inc.Threads[0].User.Frames[1]; f.Trust != unwind.TrustScan || uint32(f.IP) == c.Walk[1].PC {
		t.Errorf("without symbols: %+v", f)
	}
}

// Debug information of another build says nothing of this one's stack, even
// where its names are wanted.
func TestFrameRecordsOfAnotherBuild(t *testing.T) {
	c := fixtures.CrashFramelessX86()
	other := strings.Replace(string(c.Symbols), "012345301 ", "012345302 ", 1)
	dir := imageDir(t, map[string][]byte{"frameless.sym": []byte(other)})
	inc := analyze(t, openBytes(t, "frameless-x86.dmp", c.Dump), nil, Options{Images: []string{dir}, Store: symbols.StoreOptions{AllowMismatch: true}})
	frames := inc.Threads[0].User.Frames
	if m := frames[0].Module; m.Symbols != symbols.DebugMismatch || frames[0].Name.Function != "scale" {
		t.Fatalf("%+v %+v", m, frames[0].Name)
	}
	if f := frames[1]; f.Method == unwind.MethodFPO {
		t.Errorf("%+v", f)
	}
}

// An x64 module without an image is unwound by STACK CFI.
func TestFrameRecordsCFI(t *testing.T) {
	text := "MODULE windows x86_64 000000070000000000000000000000001 App.pdb\nFUNC 1000 40 0 inner\nFUNC 1040 40 0 outer\n" +
		"STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa 8 - ^\nSTACK CFI 1004 .cfa: $rsp 32 + $rbx: .cfa 16 - ^\n" +
		"STACK CFI INIT 1040 40 .cfa: $rsp 48 + .ra: .cfa 8 - ^\n"
	stack := make([]byte, 0x100)
	for at, v := range map[int]uint64{0x10: 0xbb, 0x18: 0x401060, 0x20 + 40: 0} {
		for i := range 8 {
			stack[at+i] = byte(v >> (8 * i))
		}
	}
	u := fake{
		threads: []dump.Thread{{ID: 5, Context: regsAt(0x401010, 0x10000)}},
		modules: []dump.Module{{Base: 0x400000, Size: 0x3000, Path: `C:\App.exe`, CodeView: dump.CodeView{Signature: "RSDS", GUID: [16]byte{7}, Age: 1, PDB: `C:\App.pdb`}}},
		memory:  pages{0x10000: stack},
	}
	inc := analyze(t, u.user(t), nil, Options{Images: []string{imageDir(t, map[string][]byte{"App.sym": []byte(text)})}})
	h := inc.Threads[0].User
	if len(h.Frames) != 2 || h.Stop.Reason != unwind.StopEndOfStack {
		t.Fatalf("%+v", h)
	}
	if f := h.Frames[1]; f.IP != 0x401060 || f.SP != 0x10020 || f.Method != unwind.MethodSymCFI || f.Trust != unwind.TrustCFI || f.Name.Function != "outer" || f.Detail != "by STACK CFI at App.exe+0x1000" {
		t.Errorf("%+v", f)
	}
}

// The peer's answer with the same symbol files: eip, esp and ebp of every frame.
func TestFrameRecordsAgainstBreakpad(t *testing.T) {
	dir := corpus.Need(t, "user/A03-breakpad-minidump2-x86")
	file, err := os.ReadFile(filepath.Join(dir, "minidump2.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "minidump2.stackwalk.out"))
	if err != nil {
		t.Fatal(err)
	}
	inc := analyze(t, openBytes(t, "minidump2.dmp", file), nil, Options{Images: []string{dir}})
	frames := inc.Threads[inc.Crashing].User.Frames
	peer := regexp.MustCompile(`eip = 0x(\w+)\s+esp = 0x(\w+)\s+ebp = 0x(\w+)`).FindAllStringSubmatch(string(text), -1)
	if len(peer) < 4 || len(frames) != 4 {
		t.Fatalf("%d frames, the peer has %d", len(frames), len(peer))
	}
	for i, f := range frames {
		got := []string{fmt.Sprintf("%08x", f.IP), fmt.Sprintf("%08x", f.SP), fmt.Sprintf("%08x", f.FP)}
		if !slices.Equal(got, peer[i][1:]) || i > 0 && f.Trust != unwind.TrustCFI {
			t.Errorf("frame %d: %v (%v), the peer has %v", i, got, f.Trust, peer[i][1:])
		}
	}
	// Where the exception handler stood: HandleException's frame is 8 bytes above
	// where WriteMinidumpOnHandlerThread's FPO record puts it, and says so.
	h := inc.Threads[inc.Crashing].Handler.Frames
	if len(h) < 4 || !strings.HasSuffix(h[3].Name.Function, "HandleException") || h[3].Trust != unwind.TrustCFIScan {
		t.Errorf("%+v", h)
	}
}
