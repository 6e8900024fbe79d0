package minidump

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dumptriage/dump"
)

// words writes 32-bit words.
func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// TestObjectState reads the records as the public structures of the system's queries
// lay them out, for both sizes of pointers.
func TestObjectState(t *testing.T) {
	pid := uint32(0x1a2c)
	thread := &dump.ClientID{Process: pid, Thread: 0x2000}
	for _, c := range []struct {
		name string
		kind uint32
		data []byte
		want *dump.ObjectState
	}{
		{"thread, 64 bits", 1, words(0x103, 0, 0xa1a00000, 0x31, pid, 0, 0x2000, 0, 0xf, 0, 8, 8), &dump.ObjectState{Thread: thread, TEB: 0x31a1a00000}},
		{"thread, 32 bits", 1, words(0x103, 0x7efdd000, pid, 0x2000, 0xf, 8, 8), &dump.ObjectState{Thread: thread, TEB: 0x7efdd000}},
		{"thread that has ended", 1, words(0, 0x7efdd000, pid, 0x2000, 0xf, 8, 8), &dump.ObjectState{Thread: thread, TEB: 0x7efdd000, Exited: true}},
		{"thread, another size", 1, words(0x103, 0, 0x7efdd000, 0, pid, 0, 0x2000, 0), nil},
		{"thread, an id that is none", 1, words(0x103, 0x7efdd000, pid, 0x2001, 0xf, 8, 8), nil},
		{"mutex that is free", 2, words(1, 0), &dump.ObjectState{Mutex: &dump.MutexState{Count: 1}}},
		{"mutex that was left", 2, words(1, 0x100), &dump.ObjectState{Mutex: &dump.MutexState{Count: 1, Abandoned: true}}},
		{"mutex, entered twice", 2, words(0xffffffff, 1), &dump.ObjectState{Mutex: &dump.MutexState{Count: -1}}},
		{"mutex, an impossible count", 2, words(2, 0), nil},
		{"owner, 64 bits", 3, words(pid, 0, 0x2000, 0), &dump.ObjectState{Owner: thread}},
		{"owner, 32 bits", 3, words(pid, 0x2000), &dump.ObjectState{Owner: thread}},
		{"no owner", 3, words(0, 0), nil},
		{"owner, another size", 3, words(pid, 0x2000, 0), nil},
		{"owner, too large an id", 3, words(pid, 0, 0x2000, 1), nil},
		{"process, 64 bits", 4, words(0x103, 0, 0, 0x31, 0xf, 0, 8, 0, pid, 0, 4, 0), &dump.ObjectState{ProcessID: &pid}},
		{"process, 32 bits", 4, words(0x103, 0x7efde000, 0xf, 8, pid, 4), &dump.ObjectState{ProcessID: &pid}},
		{"process, 64 bits, extended", 5, words(64, 0, 1, 0, 0, 0x31, 0xf, 0, 8, 0, pid, 0, 4, 0, 0, 0), &dump.ObjectState{ProcessID: &pid, Exited: true}},
		{"process, 32 bits, extended", 5, words(32, 0x103, 0x7efde000, 0xf, 8, pid, 4, 0), &dump.ObjectState{ProcessID: &pid}},
		{"process, an id that is none", 4, words(0x103, 0x7efde000, 0xf, 8, 0, 4), nil},
		{"event", 6, words(0, 1), &dump.ObjectState{Event: &dump.EventState{Manual: true, Set: true}}},
		{"event that resets itself", 6, words(1, 0), &dump.ObjectState{Event: &dump.EventState{}}},
		{"event of no kind", 6, words(2, 0), nil},
		{"event, another size", 6, words(1, 0, 0), nil},
		{"semaphore", 8, words(2, 5), &dump.ObjectState{Semaphore: &dump.SemaphoreState{Count: 2, Max: 5}}},
		{"semaphore, more than can be", 8, words(6, 5), nil},
		{"section", 7, words(1, 2, 3, 4), nil},
		{"a kind of the future", 9, words(1, 0), nil},
	} {
		got := objectState([]dump.HandleInfo{{Kind: c.kind, Data: c.data}})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		for n := range c.data { // cut: another size, or a smaller one's layout
			objectState([]dump.HandleInfo{{Kind: c.kind, Data: c.data[:n]}})
		}
	}
	both := objectState([]dump.HandleInfo{{Kind: 2, Data: words(0, 0)}, {Kind: 3, Data: words(pid, 0x2000)}})
	if both == nil || both.Mutex == nil || both.Owner == nil {
		t.Errorf("two records: %+v", both)
	}
	if objectState(nil) != nil {
		t.Error("no records say something")
	}
}
