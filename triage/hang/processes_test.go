package hang

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// In a dump of several processes a lock of one is none of another's, though it has the
// same address; a kernel object is everybody's.
func TestLocksOfProcesses(t *testing.T) {
	thread := func(id uint32, process uint64) triage.Thread {
		return triage.Thread{Thread: dump.Thread{ID: id}, KernelInfo: &dump.KernelThread{EPROCESS: process}}
	}
	a := &analysis{inc: &triage.Incident{Threads: []triage.Thread{thread(4, 0xa0), thread(8, 0xb0), thread(12, 0xb0), thread(16, 0xa0)}}}
	lock, object := Object{Kind: KindCritical, Value: 0x7ff0}, Object{Kind: KindKernel, Value: 0xffff8000}
	a.waits = []Wait{{Class: ClassLoaderLock, Object: lock}, {Class: ClassLoaderLock, Object: lock}, {Holds: []Kind{KindLoader}}, {}}
	a.heldByFrames()
	if a.waits[0].Owner != nil {
		t.Errorf("a thread of one process holds the loader lock of another: %+v", a.waits[0].Owner)
	}
	if o := a.waits[1].Owner; o == nil || o.Index != 2 {
		t.Errorf("the owner in the same process: %+v", o)
	}
	for _, c := range []struct {
		object Object
		want   int
	}{{lock, 0}, {object, 1}} {
		a.waits = []Wait{{Class: ClassCritical, Object: c.object}, {Class: ClassCritical, Object: c.object}, {}, {}}
		v := &Verdict{}
		if a.contended(v); len(v.Contended) != c.want {
			t.Errorf("%s: %+v", c.object.Kind, v.Contended)
		}
	}
}
