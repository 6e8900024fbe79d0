package kdump

import "slices"

// identity says where process and thread ids are, in ETHREAD (Cid) and EPROCESS
// (UniqueProcessId). Zero is not known.
type identity struct{ cid, pid int }

// clientID is a CLIENT_ID: process id, thread id.
type clientID struct{ pid, tid uint32 }

// maxID bounds process and thread ids: they are indexes into one handle table.
const maxID = 1 << 24

// clientIDAt reads a believable CLIENT_ID.
func (r *record) clientIDAt(off int) (clientID, bool) {
	pid, ok1 := r.pointer(off)
	tid, ok2 := r.pointer(off + r.ptr)
	ok := ok1 && ok2 && pid != 0 && tid != 0 && (pid|tid)&3 == 0 && pid < maxID && tid < maxID
	return clientID{uint32(pid), uint32(tid)}, ok
}

// identities finds the two offsets once: from the table when what is there can
// be an id, else by scanning the first thread and its process.
func (f *File) identities() identity {
	f.idsOnce.Do(func() {
		thread, process := f.thread, f.findProcess()
		if thread == nil || !f.isThread(thread) {
			thread = nil
			for r := range f.threadBlocks() {
				thread = r
				break
			}
		}
		if thread == nil && f.full != nil && f.kd != nil { // no processor says whose it was
			for r := range f.allThreads() {
				if _, ok := r.clientIDAt(f.offsets().cid); ok {
					f.ids = identity{f.offsets().cid, f.listLayout().pid}
					return
				}
			}
		}
		if thread != nil {
			f.ids = f.findIdentity(thread, process)
		}
	})
	return f.ids
}

func (f *File) findIdentity(thread, process *record) identity {
	row := f.offsets()
	if _, ok := thread.clientIDAt(row.cid); ok {
		return identity{row.cid, row.pid}
	}
	if process == nil {
		return identity{}
	}
	return scanIdentity(thread, process, f.kd.process.parent)
}

// scanIdentity looks for the one pair of ids in the ETHREAD whose first is also
// in the EPROCESS, in front of the list entry that follows UniqueProcessId and
// before the parent's id. Of several places in the EPROCESS the one 0x100 before
// the parent's id is preferred, of several in the ETHREAD the last: that is how
// the builds compare that have been measured.
func scanIdentity(thread, process *record, parent int) identity {
	var id identity
	const usual = 0x100
	all, process, thread := process, process.unseen(), thread
	scan := thread.unseen()
	candidates := map[uint64][]int{}
	for off := process.ptr; off < parent; off += process.ptr {
		v, ok := process.pointer(off)
		if !ok || v == 0 || v&3 != 0 || v >= maxID || len(candidates[v]) >= 64 {
			continue
		}
		flink, ok1 := process.pointer(off + process.ptr)
		blink, ok2 := process.pointer(off + 2*process.ptr)
		if ok1 && ok2 && kernelAddress(process.ptr, flink) && kernelAddress(process.ptr, blink) {
			candidates[v] = append(candidates[v], off)
		}
	}
	for off := thread.ptr; off < len(thread.b); off += thread.ptr {
		c, ok := scan.clientIDAt(off)
		places := candidates[uint64(c.pid)]
		if !ok || len(places) == 0 {
			continue
		}
		id = identity{off, places[0]}
		if slices.Contains(places, parent-usual) {
			id.pid = parent - usual
		}
	}
	if id.cid != 0 {
		all.use(id.pid, 3*process.ptr)
		thread.use(id.cid, 2*thread.ptr)
	}
	return id
}
