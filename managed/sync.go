package managed

import "dumptriage/internal/cursor"

// Monitor is the lock of an object that has a sync block: one that threads waited for,
// or that is locked too deep for the object's header.
type Monitor struct {
	Object    uint64
	Type      string // of Object, "" not known
	Event     uint64 // handle that those wait for who want to enter, 0 none yet
	OwnerOSID uint32 // 0 when it is free, or its owner has ended
	OwnerID   uint32 // managed
	Recursion uint32
}

// The layout of AwareLock, which a SyncBlock begins with, in the public source of .NET
// 10 and measured in a dump of it; 64 bits. The descriptor does not tell it. Every
// entry proves it: the lock repeats its index, and its owner has two ids that must
// belong together.
const (
	lockStateAt, lockRecursionAt = 0x00, 0x04
	lockOwnerAt, lockOwnerOSAt   = 0x08, 0x10
	lockIndexAt, lockEventAt     = 0x1c, 0x20
	lockBytes                    = 0x28
	interopInfo64                = 0x38 // SyncBlock.InteropInfo, behind the lock

	lockIsHeld    = 1
	lockIndexMask = 0x7fffffff // the top bit is a flag

	headerIsIndex, headerIsHash = 0x08000000, 0x04000000
	headerIndexMask             = 0x03ffffff

	maxSyncBlocks = 1 << 12
	maxSyncMisses = 256 // entries in a row that are none: the table has ended
)

// Monitors lists the locks of objects. threads are those of Threads: an owner that is
// none of them is not believed.
func (r *Runtime) Monitors(threads []Thread) []Monitor {
	if r == nil || r.l.pointer != 8 || !r.l.has("SyncTableEntry", "SyncBlock") {
		return nil
	}
	if at, ok := r.l.offset("SyncBlock", "InteropInfo"); !ok || at != interopInfo64 {
		return nil
	}
	defer r.quietly()()
	a := r.access()
	table, size := a.variable("SyncTableEntries"), a.size("SyncTableEntry", 16)
	if a.err != nil || table == 0 || size < 16 {
		return nil
	}
	osID := map[uint32]uint32{}
	for i := range threads {
		osID[threads[i].ID] = threads[i].OSID
	}
	var out []Monitor
	for i, misses := uint64(1), 0; i < maxSyncBlocks && misses < maxSyncMisses; i++ {
		entry := table + i*size
		if entry < table {
			break
		}
		m, ok := r.monitor(entry, uint32(i), osID)
		if misses++; ok {
			misses = 0
			out = append(out, m)
		}
	}
	return out
}

// monitor reads an entry of the table of sync blocks.
func (r *Runtime) monitor(entry uint64, index uint32, osID map[uint32]uint32) (Monitor, bool) {
	a := r.access()
	block, object := a.ptr(entry, "SyncTableEntry", "SyncBlock"), a.word(entry+8, "SyncTableEntry")
	if a.err != nil || block == 0 || object < 8 || object&7 != 0 {
		return Monitor{}, false
	}
	header := uint32(a.number(object-4, 4, "Object header"))
	if a.err != nil || header&headerIsIndex == 0 || header&headerIsHash != 0 || header&headerIndexMask != index {
		return Monitor{}, false
	}
	b := make([]byte, lockBytes)
	if n, _ := a.mem.ReadAt(b, block); n < len(b) {
		return Monitor{}, false
	}
	word := func(at int) uint32 { c := cursor.New(b[at:at+4], "SyncBlock", -1); return c.U32() }
	if word(lockIndexAt)&lockIndexMask != index {
		return Monitor{}, false
	}
	m := Monitor{Object: object}
	if event := word(lockEventAt); event != 0xffffffff { // INVALID_HANDLE_VALUE before anybody waited
		m.Event = uint64(event)
	}
	if _, t := r.objectType(a, object); a.err == nil {
		m.Type = t.name
	}
	id, osid := word(lockOwnerAt), word(lockOwnerOSAt)
	if word(lockStateAt)&lockIsHeld == 0 || id == 0 {
		return m, true
	}
	if known, ok := osID[id]; !ok || known != osid && known != 0 {
		return Monitor{}, false // the ids do not belong together: another layout
	}
	m.OwnerID, m.OwnerOSID, m.Recursion = id, osid, word(lockRecursionAt)
	return m, true
}

// SystemThreads are the ids of the thread that runs finalizers, and of the one that
// has stopped the others, as for a garbage collection; 0 where there is none or the
// runtime does not tell.
func (r *Runtime) SystemThreads() (finalizer, suspender uint32) {
	if r == nil || !r.l.has("Thread", "OSId") {
		return 0, 0
	}
	defer r.quietly()()
	id := func(global string) uint32 {
		a := r.access()
		va := a.variable(global)
		if a.err != nil || va == 0 {
			return 0
		}
		if v := a.u32(va, "Thread", "OSId"); a.err == nil {
			return v
		}
		return 0
	}
	return id("FinalizerThread"), id("GCThread")
}
