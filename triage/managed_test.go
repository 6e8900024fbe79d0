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
