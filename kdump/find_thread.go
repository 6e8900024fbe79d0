package kdump

import (
	"iter"
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
