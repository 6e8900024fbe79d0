package triage

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// Another program walked the real dump: its lines are "  sp ip module+offset" or
// "  sp ip module!method [token] ...", behind "--- thread id".
var (
	walkedThread  = regexp.MustCompile(`^--- thread (\d+)`)
	walkedFrame   = regexp.MustCompile(`^  ([0-9a-f]{16}) ([0-9a-f]{16}) (\S+?)([!+])(.*)$`)
	walkedGeneric = regexp.MustCompile(`\[[^\]]*\]|<System\.[^>]*>`)
)

func TestManagedStacks(t *testing.T) {
	dir := corpus.Need(t, "managed/net10-readline-x64")
	d, err := Open(filepath.Join(dir, "app.dmp.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := Analyze(d, nil, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	f, err := os.Open(filepath.Join(dir, "walk.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var th *Thread
	at, total, code := 0, 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if g := walkedThread.FindStringSubmatch(lines.Text()); g != nil {
			id, _ := strconv.ParseUint(g[1], 10, 32)
			i := slices.IndexFunc(inc.Threads, func(t Thread) bool { return t.ID == uint32(id) })
			th, at = &inc.Threads[i], 0
			continue
		}
		g := walkedFrame.FindStringSubmatch(lines.Text())
		if g == nil || th == nil {
			continue
		}
		sp, _ := strconv.ParseUint(g[1], 16, 64)
		ip, _ := strconv.ParseUint(g[2], 16, 64)
		if at >= len(th.User.Frames) {
			t.Fatalf("thread %d ends after %d frames, before %s", th.ID, at, lines.Text())
		}
		fr := &th.User.Frames[at]
		at, total = at+1, total+1
		if fr.IP != ip || fr.SP != sp {
			t.Fatalf("thread %d, frame %d: ip %#x, sp %#x; want %s", th.ID, at-1, fr.IP, fr.SP, lines.Text())
		}
		if g[4] == "+" {
			continue
		}
		name, _, _ := strings.Cut(g[5], " ")
		name = walkedGeneric.ReplaceAllString(name, "")
		if fr.Name.Function != name || fr.ModuleName() != g[3] || fr.Name.Source != symbols.SourceCLR || fr.Managed == nil {
			t.Errorf("%#x: %s!%s, want %s!%s", ip, fr.ModuleName(), fr.Name.Function, g[3], name)
		}
		if next := &th.User.Frames[at]; next.Method == unwind.MethodCodeHeap && next.Trust == unwind.TrustCFI {
			code++
		}
	}
	if total != 182 || code != 59 {
		t.Errorf("%d frames, %d unwound by the code heap", total, code)
	}
}

// A runtime whose structures lie as in no other is read by its own descriptor.
func TestManagedFixture(t *testing.T) {
	d, err := Open("../fixtures/managed/shop.dmp")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := Analyze(d, nil, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	th := &inc.Threads[inc.Crashing]
	want := fixtures.ManagedAMD64().Walk
	names := []string{"KERNELBASE.dll!RaiseException", "coreclr.dll!IL_Throw", "System.Private.CoreLib.dll!System.ThrowHelper.ThrowInvalidOperation", "Shop.dll!Shop.Cart.Pay",
		"Shop.dll!Shop.Program.Main", "coreclr.dll!CallDescrWorkerInternal", "coreclr.dll!coreclr_execute_assembly", "shop.exe!main"}
	if len(th.User.Frames) != len(want) {
		t.Fatalf("%d frames, want %d", len(th.User.Frames), len(want))
	}
	for i := range th.User.Frames {
		f := &th.User.Frames[i]
		if f.IP != want[i].PC || f.SP != want[i].SP || i > 0 && f.Trust != unwind.TrustCFI || f.ModuleName()+"!"+f.Name.Function != names[i] {
			t.Errorf("frame %d: %s!%s %+v, want %s %#x at %#x", i, f.ModuleName(), f.Name.Function, f.Frame, names[i], want[i].PC, want[i].SP)
		}
	}
	m := th.User.Frames[3].Managed
	if m == nil || m.Token != 0x06000001 || m.Declaration() != "Shop.Cart.Pay(Int32)" || m.MVID != "00000022-0000-0000-0000-000000000000" {
		t.Errorf("%+v", m)
	}
	if e := th.Managed.Exception; th.Managed.ID != 1 || e == nil || e.Message != "The cart is empty" || !slices.Equal(e.Bases, []string{"System.Exception"}) {
		t.Errorf("%+v", th.Managed)
	}
}
