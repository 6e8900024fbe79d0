package hang

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/triage"
)

// The deadlock of a real program, without its locks in the dump: which they are
// stands in the text that the program wrote.
func TestRealDeadlock(t *testing.T) {
	path := corpus.Need(t, "wine/t64-clang-O1/hang_deadlock.dmp")
	dir := filepath.Dir(path)
	truth, err := os.ReadFile(filepath.Join(dir, "hang_deadlock.txt"))
	if err != nil {
		t.Fatal(err)
	}
	locks := map[string]uint64{}
	for line := range strings.Lines(string(truth)) {
		rest, ok := strings.CutPrefix(line, "CS ")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(rest) {
			name, value, _ := strings.Cut(f, "=")
			if locks[name], err = strconv.ParseUint(value, 16, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	d, err := triage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", triage.Options{Images: []string{dir, filepath.Join(dir, "..", "winedlls")}})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	v := Of(inc, builtinRules(t))
	// Thread 196 took A and waits for B, thread 200 the other way round.
	if len(locks) != 2 || v.State != Possible || ids(inc, v.Chain()) != "[0xc4 0xc8]" {
		t.Fatalf("%s %s of %v", v.State, ids(inc, v.Chain()), locks)
	}
	for id, lock := range map[uint32]uint64{196: locks["B"], 200: locks["A"]} {
		if w := byThread(inc, v, id); w.Class != ClassCritical || w.Object.Value != lock || w.Object.Confidence != High {
			t.Errorf("thread %d: %s %#x (%s), want %#x", id, w.Class, w.Object.Value, w.Object.Confidence, lock)
		}
	}
	if w := byThread(inc, v, 36); w.Class != ClassObjects || !w.Object.WaitAll || len(w.Object.Handles) != 2 {
		t.Errorf("main: %s %+v", w.Class, w.Object)
	}
}

// The waits of a real .NET program in a single file, whose source says what each thread
// does: "lock-waiter" enters a monitor that Main holds.
func TestRealManagedWaits(t *testing.T) {
	d, err := triage.Open(corpus.Need(t, "managed/net10-readline-x64/app.dmp.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", triage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	v := Of(inc, builtinRules(t))
	want := map[string]Class{"lock-waiter": ClassMonitor, "sleeper": ClassSleep, "in-catch": ClassSleep, ".NET TP Gate": ClassIdleWorker}
	for i := range inc.Threads {
		name := inc.Threads[i].Name
		if c, ok := want[name]; ok && v.Waits[i].Class != c {
			t.Errorf("%s: %s by %s, want %s", name, v.Waits[i].Class, v.Waits[i].Rule, c)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no thread is called %v", want)
	}
	// "gate" is an object; Main, in thread 24h, holds it while it reads the console. The
	// finalizers' thread has nothing to do.
	w := byThread(inc, v, 0x120)
	if w.Object.Kind != KindMonitor || w.Object.Type != "System.Object" || w.Owner == nil || w.Owner.ThreadID != 0x24 || w.Owner.Confidence != High {
		t.Errorf("lock-waiter: %+v, owner %+v", w.Object, w.Owner)
	}
	if v.State != Blocked || inc.Threads[v.Subject].ID != 0x24 {
		t.Errorf("%s of %d", v.State, v.Subject)
	}
	if w := byThread(inc, v, 0x114); w.Class != ClassIdleWorker || !w.Has(roleFinalizer) {
		t.Errorf("finalizers: %s %v", w.Class, w.Roles)
	}
}
