package kdump

import (
	"dumptriage/dump"
)

// listLayout says where the fields lie by which processes and threads are found,
// 0 not known, and how that is known: "symbols" by the types of the kernel's debug
// information, "table" by the sizes of its structures, "calibrated" from what the
// fields must hold.
type listLayout struct {
	pid, links              int // EPROCESS: UniqueProcessId, ActiveProcessLinks
	threadHead, threadEntry int // EPROCESS, ETHREAD
	how                     string
}

const (
	systemPID = 4
	byTable   = "table"
	byTrial   = "calibrated"
)

// listLayout finds the offsets once. Those of the table are checked against the
// lists; when they do not hold, or there are none, the fields are found by what
// they must be.
func (f *File) listLayout() listLayout {
	f.full.layoutOnce.Do(func() {
		row, lists := f.offsets(), f.lists()
		l := &f.full.layout
		if f.processSize() == 0 {
			return
		}
		first := uint64(0) // entry of the list
		if head := f.processHead(); head != 0 {
			if f.isProcessAt(head) { // not the head but a process itself
				head += uint64(row.pid + f.hdr.ptr)
			}
			first, _ = dump.ReadPointer(f.mem, f.hdr.arch, head)
		}
		l.how = byTable
		if f.rows != nil && f.sym.known["_EPROCESS"] {
			l.how = bySymbols
		}
		process, known := first-uint64(row.pid+f.hdr.ptr), f.firstIDs()
		switch {
		case row.pid != 0 && f.isProcessAt(process):
			l.pid = row.pid
		case f.pidsAt(row.pid, known):
			l.pid, process = row.pid, known[0]
		default:
			l.how = byTrial
			l.pid, process = f.calibratePID(first, known)
		}
		if l.pid == 0 {
			f.damage(dump.Errorf(dump.BadRecord, "EPROCESS", "the place of UniqueProcessId was not found: the list of processes cannot be walked"))
			return
		}
		l.links = l.pid + f.hdr.ptr
		f.threadLayout(l, lists, process)
	})
	return f.full.layout
}

// firstIDs returns the processes with the lowest ids of the table of ids: a few
// tell where all have theirs.
func (f *File) firstIDs() []uint64 {
	const few = 16
	all := byID(f.cidTable().processes)
	return all[:min(few, len(all))]
}

// pidsAt reports whether at offset off of these processes stands the id by which
// the table of ids knows them.
func (f *File) pidsAt(off int, processes []uint64) bool {
	ids := f.cidTable().processes
	for _, va := range processes {
		if v, err := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(off)); off == 0 || err != nil || v != uint64(ids[va]) {
			return false
		}
	}
	return len(processes) > 0
}

// Layout says how the offsets of the lists are known: "symbols", "table" or "calibrated";
// "" for triage dumps and when they are not.
func (f *File) Layout() string {
	if f.full == nil {
		return ""
	}
	return f.listLayout().how
}

func (f *File) processHead() uint64 {
	if f.kd != nil && kernelAddress(f.hdr.ptr, f.kd.processHead) {
		return f.kd.processHead
	}
	if f.hdr.procs.ok && kernelAddress(f.hdr.ptr, f.hdr.procs.v) {
		return f.hdr.procs.v
	}
	return 0
}

// isProcessAt reads the EPROCESS at va and tells whether it is one.
func (f *File) isProcessAt(va uint64) bool {
	r := f.recordAt(va, f.processSize())
	return r != nil && f.isProcess(r)
}

// calibratePID finds UniqueProcessId: the first process of the list is System, so
// the field holds 4, the list's own entry follows it, and the structure that
// begins so far before it is a process. When the list cannot be read, it is where
// the processes of the table of ids, known, have theirs.
func (f *File) calibratePID(first uint64, known []uint64) (pid int, process uint64) {
	size, ptr := f.processSize(), f.hdr.ptr
	found := 0
	for off := ptr; off+2*ptr < size; off += ptr {
		va := first - uint64(off+ptr)
		v, err := dump.ReadPointer(f.mem, f.hdr.arch, va+uint64(off))
		if err != nil || v != systemPID {
			continue
		}
		if r := f.recordAt(va, size); r == nil || !f.isProcess(r) {
			continue
		}
		if found != 0 {
			return 0, 0 // not unique: better none than a wrong one
		}
		found = off
	}
	if found != 0 {
		return found, first - uint64(found+ptr)
	}
	for off := ptr; off+2*ptr < size; off += ptr {
		if f.pidsAt(off, known) {
			return off, known[0]
		}
	}
	return 0, 0
}

// threadLayout finds the list of threads in a process: the table's place when
// what it leads to is a thread of that process.
func (f *File) threadLayout(l *listLayout, lists *listRow, process uint64) {
	r := f.recordAt(process, f.processSize())
	if r == nil {
		return
	}
	if lists.threadHead != 0 && lists.threadEntry != 0 && f.leadsToThread(r, lists.threadHead, lists.threadEntry) {
		l.threadHead, l.threadEntry = lists.threadHead, lists.threadEntry
		return
	}
	head, entry := f.calibrateThreads(r)
	if head == 0 {
		f.damage(dump.Errorf(dump.BadRecord, "EPROCESS", "the list of a process's threads was not found"))
		return
	}
	l.threadHead, l.threadEntry, l.how = head, entry, byTrial
}

// leadsToThread reports whether the list head at head of a process is that of its
// threads, entry being the place in a thread.
func (f *File) leadsToThread(process *record, head, entry int) bool {
	flink := f.kernelPointer(process, head)
	if flink == 0 || flink == process.va+uint64(head) || f.typeAt(flink-uint64(entry)) != objectThread {
		return false
	}
	r := f.recordAt(flink-uint64(entry), f.threadSize())
	return r != nil && f.isThread(r) && f.ownedBy(r, process.va)
}

// ownedBy reports whether a thread is of a process, as far as its place of the
// owner is known.
func (f *File) ownedBy(thread *record, process uint64) bool {
	if owner := f.kernelPointer(thread, f.offsets().owner); owner != 0 && owner == process {
		return true
	}
	return f.kernelPointer(thread, f.kd.thread.apcProcess) == process
}

// maxTrials bounds the pairs of a list head and a place that are tried: a process
// has some twenty lists, a thread some 300 places.
const maxTrials = 1 << 16

// calibrateThreads tries every list head of a process with every place in a
// thread: KPROCESS has such a list too, either serves. The first of a process's
// heads for which one place holds for its first two threads wins.
func (f *File) calibrateThreads(process *record) (head, entry int) {
	ptr, size, trials := f.hdr.ptr, f.threadSize(), 0
	look := process.unseen()
	for head = ptr; head+2*ptr <= len(process.b); head += ptr {
		flink, blink := f.kernelPointer(look, head), f.kernelPointer(look, head+ptr)
		own := process.va + uint64(head)
		if flink == 0 || blink == 0 || flink == own || blink == own {
			continue
		}
		if back, err := dump.ReadPointer(f.mem, f.hdr.arch, flink+uint64(ptr)); err != nil || back != own {
			continue
		}
		for entry = ptr; entry+2*ptr <= size; entry += ptr {
			if trials++; trials > maxTrials {
				return 0, 0
			}
			if f.leadsToThread(process, head, entry) && f.isThreadAt(blink-uint64(entry)) {
				process.use(head, 2*ptr)
				return head, entry
			}
		}
	}
	return 0, 0
}

func (f *File) isThreadAt(va uint64) bool {
	r := f.recordAt(va, f.threadSize())
	return r != nil && f.isThread(r)
}
