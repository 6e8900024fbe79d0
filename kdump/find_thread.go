package kdump

import (
	"iter"
	"slices"
	"time"

	"dumptriage/dump"
)

// allThreads yields the threads of a full dump: process by process those of its
// list, then those that only the table of ids knows, and last what the processors
// were running.
func (f *File) allThreads() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		seen := map[uint64]bool{}
		emit := func(va uint64) bool {
			if seen[va] || len(seen) >= maxThreads {
				return true
			}
			seen[va] = true
			r := f.recordAt(va, f.threadSize())
			return r == nil || !f.isThread(r) || yield(r)
		}
		for i := range f.Processes() {
			for _, va := range f.listedThreads(f.full.processes[i].EPROCESS) {
				if !emit(va) {
					return
				}
			}
		}
		for _, va := range byID(f.cidTable().threads) {
			if !emit(va) {
				return
			}
		}
		for _, p := range f.processors() {
			if p.current != 0 && p.current != p.idle && !emit(p.current) {
				return
			}
		}
	}
}

// listedThreads walks a process's list of threads.
func (f *File) listedThreads(process uint64) []uint64 {
	l := f.listLayout()
	if l.threadHead == 0 {
		return nil
	}
	w := f.walkList(f.mem, process+uint64(l.threadHead), maxThreads, "ThreadListHead")
	if w.err != nil {
		f.damage(w.err)
	}
	return offsetFrom(w.entries, l.threadEntry)
}

// isIdle reports whether the thread at va is a processor's idle thread.
func (f *File) isIdle(va uint64) bool {
	return slices.ContainsFunc(f.processors(), func(p processor) bool { return p.idle == va && va != 0 })
}

// describeThread adds what lies outside the ETHREAD, and the times that a full
// dump's table of offsets knows the places of.
func (f *File) describeThread(t *dump.Thread, r *record) {
	if f.full == nil {
		return
	}
	lists := f.lists()
	if name := f.kernelPointer(r, lists.threadName); name != 0 {
		t.Name, _ = f.readUnicode(f.mem, f.hdr.ptr, name)
		if f.watched != nil && f.watched.names {
			f.keepText(f.mem, f.hdr.ptr, name, t.Name, 0)
		}
	}
	kernel, ok1 := r.uint(lists.kernelTime, 4)
	user, ok2 := r.uint(lists.userTime, 4)
	if tick := f.clockTick(); t.Times != nil && ok1 && ok2 && tick > 0 {
		t.Times.Kernel, t.Times.User, t.Times.HasInfo = time.Duration(kernel)*tick, time.Duration(user)*tick, true
	}
}

// clockTick returns how long a tick of the clock is, in which the kernel counts
// the processor time of threads; 0 when that cannot be read. It is at most some
// 20 ms.
func (f *File) clockTick() time.Duration {
	const longest = 1_000_000 // units of 100 ns
	if f.kd == nil || f.kd.timeIncrement == 0 {
		return 0
	}
	v, err := dump.ReadUint32(f.mem, f.kd.timeIncrement)
	if err != nil || v > longest {
		return 0
	}
	return time.Duration(v) * 100
}
