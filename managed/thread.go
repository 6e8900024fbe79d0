package managed

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Thread is a managed thread.
type Thread struct {
	ID        uint32 // managed id
	OSID      uint32 // 0 when it has ended or not started
	Address   uint64 // of the runtime's Thread
	Name      string // Thread.Name, "" none or not in the dump
	Exception *Exception
	// LastThrown is set when the exception is only the last that was thrown, and not
	// known to be being handled.
	LastThrown bool
}

// Thread.State bits.
const threadDead = 0x800

const (
	maxThreads  = 1 << 14
	maxNameText = 256 // UTF-16 units of a thread's name
	nameSlots   = 7   // references at the start of a Thread object that may be its name
)

// Threads lists the managed threads. With an error they are those before the one
// that could not be read.
func (r *Runtime) Threads() ([]Thread, error) {
	if r == nil || !r.l.has("ThreadStore", "FirstThreadLink") {
		return nil, nil
	}
	defer r.quietly()()
	a := r.access()
	store := a.variable("ThreadStore")
	link := a.ptr(store, "ThreadStore", "FirstThreadLink")
	next, ok := r.l.offset("Thread", "LinkNext")
	if a.err != nil || !ok {
		return nil, a.err
	}
	var out []Thread
	seen := map[uint64]bool{}
	for link != 0 {
		switch {
		case seen[link]:
			return out, dump.Errorf(dump.Cycle, "ThreadStore", "the list of threads returns to %#x", link)
		case len(out) == maxThreads:
			return out, dump.Errorf(dump.Limit, "ThreadStore", "more than %d threads", maxThreads)
		}
		seen[link] = true
		t, err := r.thread(link - next)
		if err != nil {
			return out, err
		}
		out = append(out, t)
		link = a.word(link, "Thread.LinkNext")
		if a.err != nil {
			return out, a.err
		}
	}
	return out, nil
}

func (r *Runtime) thread(va uint64) (Thread, error) {
	a := r.access()
	t := Thread{Address: va, ID: a.u32(va, "Thread", "Id"), OSID: a.u32(va, "Thread", "OSId")}
	state := a.u32(va, "Thread", "State")
	if a.err != nil {
		return t, a.err
	}
	if state&threadDead != 0 {
		t.OSID = 0
	}
	t.Name = r.threadName(va)
	t.Exception, t.LastThrown = r.threadException(va)
	return t, nil
}

// threadName finds the name in the Thread object, of which the descriptor does not
// tell the fields: references come first, and only one of them is text.
func (r *Runtime) threadName(va uint64) string {
	a := r.access()
	object := a.word(a.ptr(va, "Thread", "GCHandle"), "GCHandle")
	text := a.variable("StringMethodTable")
	if a.err != nil || object == 0 {
		return ""
	}
	if _, t := r.objectType(a, object); t.name != "System.Threading.Thread" {
		return ""
	}
	for i := range nameSlots {
		p := a.word(object+uint64((i+1)*r.l.pointer), "Thread object")
		if a.err != nil {
			return ""
		}
		if p == 0 {
			continue
		}
		if mt := r.access().word(p, "Object"); mt == text && text != 0 {
			s, _ := r.string(p, maxNameText)
			return s
		}
	}
	return ""
}

// string reads a String object of at most limit units; cut says that there are more.
func (r *Runtime) string(object uint64, limit int) (s string, cut bool) {
	a := r.access()
	n := a.u32(object, "String", "m_StringLength")
	at := a.at(object, "String", "m_FirstChar")
	if a.err != nil || n > 1<<30 {
		return "", false
	}
	cut = int(n) > limit
	b := make([]byte, 2*min(int(n), limit))
	got, _ := a.mem.ReadAt(b, at)
	return cursor.UTF16(b[:got&^1]), cut || got < len(b)
}
