package triage

import (
	"strings"
	"testing"

	"dumptriage/fixtures"
	"dumptriage/unwind"
)

// TestCrowdedLiveDump reads a pair whose kernel dump's writer had no room for the
// later threads' stacks and could not capture one thread: each says so, that one
// with its own status, since the others prove whose status is whose.
func TestCrowdedLiveDump(t *testing.T) {
	user, kernel := fixtures.ReadLineCrowded()
	inc := analyze(t, openBytes(t, "app.dmp", user), openBytes(t, "app.Kernel.dmp", kernel), Options{})
	want := map[uint32]struct {
		kernel bool // a kernel half beyond its first frame
		note   string
	}{
		0x5920: {true, ""},
		0x2240: {false, "not captured by the kernel dump's writer: status 0xc000004b"},
		0x0514: {false, "its kernel stack is not in the dump: the writer leaves out what does not fit into its buffer, of which the blocks of 22 processors take 985600 of"},
		0x3c68: {false, "its kernel stack is not in the dump"},
	}
	for i := range inc.Threads {
		th := &inc.Threads[i]
		w, ok := want[th.ID]
		if !ok {
			t.Errorf("thread %#x is not in the dump", th.ID)
			continue
		}
		note := th.KernelNote
		if th.KernelInfo != nil {
			note += th.KernelInfo.Note
		}
		if !strings.HasPrefix(note, w.note) || w.note == "" && note != "" {
			t.Errorf("thread %#x: note %q, want %q", th.ID, note, w.note)
		}
		if deep := th.Kernel != nil && len(th.Kernel.Frames) > 1; deep != w.kernel {
			t.Errorf("thread %#x: kernel half %+v", th.ID, th.Kernel)
		}
		if th.Kernel != nil && !w.kernel && th.Kernel.Stop.Reason != unwind.StopNoUnwindData && th.Kernel.Stop.Reason != unwind.StopStackMissing {
			t.Errorf("thread %#x: the walk stops with %+v", th.ID, th.Kernel.Stop)
		}
		if th.User == nil || len(th.User.Frames) == 0 {
			t.Errorf("thread %#x has no user half", th.ID)
		}
	}
	if len(inc.Threads) != len(want) {
		t.Errorf("%d threads, want %d", len(inc.Threads), len(want))
	}
}
