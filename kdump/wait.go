package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// KWAIT_REASON values that say more than the objects do.
const (
	reasonExecutive   = 0
	reasonPageIn      = 2
	reasonDelay       = 4
	reasonSuspended   = 5
	reasonWrSpan      = 7 // from here on the same reasons again, up to 13
	reasonQueue       = 15
	reasonLpcReceive  = 16
	reasonLpcReply    = 17
	reasonVirtual     = 18
	reasonPageOut     = 19
	reasonKeyedEvent  = 21
	reasonResource    = 27
	reasonPushLock    = 28
	reasonRundown     = 36
	reasonAlertByID   = 37
	reasonPhysical    = 39
	reasonLastWrTwin  = 13
	maxWaitBlocks     = 64 // MAXIMUM_WAIT_OBJECTS
	builtInWaitBlocks = 4  // in KTHREAD
	blockActive       = 4  // KWAIT_BLOCK.BlockState, since Windows 8
)

// Types of DISPATCHER_HEADER, and what they are called.
var dispatcherTypes = map[uint8]struct{ name, class string }{
	0: {"notification event", "event"}, 1: {"synchronization event", "event"}, 2: {"mutant", "mutex"}, 3: {"process", "process"},
	4: {"queue", "idle_worker"}, 5: {"semaphore", "semaphore"}, 6: {"thread", "thread"}, 7: {"gate", "gate"},
	8: {"notification timer", "timer"}, 9: {"synchronization timer", "timer"}, 21: {"priority queue", "idle_worker"},
	24: {"timer", "timer"}, 25: {"timer", "timer"},
}

const dispatcherMutant = 2

// waitBlock is a KWAIT_BLOCK.
type waitBlock struct {
	all    bool
	active bool // BlockState says that it is part of a wait
	object uint64
	next   uint64 // before Windows 8: the next one of a ring
}

// blockLayout is where the fields of KWAIT_BLOCK lie.
type blockLayout struct{ size, kind, state, thread, object, next int }

// blockLayout returns the layout of Windows 8 and later or of earlier systems,
// from public symbols.
func (f *File) blockLayout() blockLayout {
	const windows8 = 9200
	switch {
	case f.hdr.ptr == 8 && f.hdr.build >= windows8:
		return blockLayout{0x30, 0x10, 0x11, 0x18, 0x20, 0}
	case f.hdr.ptr == 8:
		return blockLayout{0x30, 0x2a, 0x2b, 0x10, 0x18, 0x20}
	case f.hdr.build >= windows8:
		return blockLayout{0x18, 0x08, 0x09, 0x0c, 0x10, 0}
	}
	return blockLayout{0x18, 0x16, 0x17, 0x08, 0x0c, 0x10}
}

// threadWait reads what a thread waits for: nil when it does not wait. The live
// triage writer interrupts every wait, so of its threads only the pending IRPs
// are told.
func (f *File) threadWait(r *record, kt *dump.KernelThread) *dump.KernelWait {
	live := kt.Live && kt.State == stateLive
	if kt.State != stateWaiting && !live {
		return nil
	}
	w := &dump.KernelWait{IRPs: f.pendingIRPs(r)}
	if live {
		if len(w.IRPs) == 0 {
			return nil
		}
		w.Class = "io"
		return w
	}
	for _, b := range f.waitBlocks(r, w) {
		w.Objects = append(w.Objects, f.waitObject(r, b.object))
		w.All = w.All || b.all
	}
	w.All = w.All && len(w.Objects) > 1
	switch kt.WaitReason {
	case reasonLpcReply:
		w.Message = f.awaitedMessage(r, w)
	case reasonResource:
		f.awaitedResource(w)
	}
	w.Class = waitClass(kt.WaitReason, w)
	return w
}

// waitClass names the wait: by the reason where it says more than the objects.
func waitClass(reason uint8, w *dump.KernelWait) string {
	if reason >= reasonWrSpan && reason <= reasonLastWrTwin {
		reason -= reasonWrSpan
	}
	switch reason {
	case reasonDelay:
		return "sleep"
	case reasonSuspended:
		return "suspended"
	case reasonQueue, reasonLpcReceive:
		return "idle_worker"
	case reasonLpcReply:
		return "alpc"
	case reasonKeyedEvent:
		return "keyed_event"
	case reasonResource:
		return "resource"
	case reasonPushLock:
		return "push_lock"
	case reasonRundown:
		return "rundown"
	case reasonAlertByID:
		return "address"
	case reasonPageIn, reasonVirtual, reasonPageOut, reasonPhysical:
		return "paging"
	case reasonExecutive:
		if len(w.IRPs) > 0 {
			return "io"
		}
	}
	return objectsClass(w.Objects)
}

// objectsClass names a wait by its objects. The thread's own timer is the time
// limit of another wait, or a sleep.
func objectsClass(objects []dump.WaitObject) string {
	class, n := "", 0
	for i := range objects {
		if objects[i].Own {
			continue
		}
		n++
		class = "object"
		for _, t := range dispatcherTypes {
			if t.name == objects[i].Type {
				class = t.class
			}
		}
	}
	switch {
	case n > 1:
		return "objects"
	case n == 1:
		return class
	case len(objects) > 0:
		return "sleep"
	}
	return ""
}

// waitBlocks reads the thread's wait blocks. Each must name the thread itself.
// Where a kernel's count of them is not known, those of earlier waits stand behind
// them in KTHREAD: they are told apart by their state.
func (f *File) waitBlocks(r *record, w *dump.KernelWait) []waitBlock {
	row, l := f.waits(), f.blockLayout()
	at := f.kernelPointer(r, row.waitList)
	if at == 0 {
		return nil
	}
	count := builtInWaitBlocks
	counted := row.waitCount != 0
	if v, ok := r.uint(row.waitCount, 1); counted && ok {
		count = min(int(v), maxWaitBlocks)
	} else if l.next != 0 {
		count = maxWaitBlocks
	}
	var out []waitBlock
	for first := at; len(out) < count && f.spend(1); {
		b, ok := f.waitBlockAt(at, l, r.va)
		if !ok {
			if counted || len(out) == 0 && count > 0 {
				w.Note = "its wait blocks are not in the dump, or not its own"
			}
			break
		}
		if !counted && l.next == 0 && !b.active {
			break
		}
		out = append(out, b)
		if l.next == 0 {
			at += uint64(l.size)
			continue
		}
		if at = b.next; at == first || !kernelAddress(f.hdr.ptr, at) {
			break
		}
	}
	return out
}

func (f *File) waitBlockAt(va uint64, l blockLayout, thread uint64) (b waitBlock, ok bool) {
	r := f.recordAt(va, l.size)
	if r == nil {
		return b, false
	}
	owner, _ := r.pointer(l.thread)
	b.object = f.kernelPointer(r, l.object)
	kind, _ := r.uint(l.kind, 1)
	b.all = kind == 0 // WaitAll
	state, _ := r.uint(l.state, 1)
	b.active = state == blockActive
	b.next, _ = r.pointer(l.next)
	return b, owner == thread && b.object != 0
}

// waitObject describes an object that a thread waits for.
func (f *File) waitObject(thread *record, va uint64) dump.WaitObject {
	o := dump.WaitObject{Address: va, Own: va-thread.va < uint64(len(thread.b))}
	size := 0x10 + 5*f.hdr.ptr // as far as KMUTANT.OwnerThread
	b, n := make([]byte, size), 0
	var err error
	f.ahead(func() { n, err = f.mem.ReadAt(b, va) })
	if n < 1 {
		o.Note = "not in the dump"
		if state := pageStateOf(err); err != nil && f.full != nil && state != PageNotInDump {
			o.Note = "not in the dump: " + state.String()
		}
		return o
	}
	r := f.recordUse(&record{va: va, off: -1, b: b[:n], ptr: f.hdr.ptr})
	kind := r.dispatcherType()
	t, known := dispatcherTypes[kind]
	if !known {
		o.Note = "no dispatcher object is there"
		return o
	}
	o.Type = t.name
	if o.Own {
		return o
	}
	if named, ok := f.objectAt(va); ok && matches(kind, named.typ) {
		o.Name = named.name
	}
	switch kind {
	case dispatcherMutant:
		f.mutantOwner(&o, r)
	case objectThread:
		o.Owner = f.threadRef(va)
	case objectProcess:
		o.Process = f.processRef(va)
	}
	return o
}

// matches reports whether an object header's type is one of a dispatcher type:
// in front of an object that is no object of the manager's stands anything.
func matches(kind uint8, typ string) bool {
	switch kind {
	case 0, 1:
		return typ == "Event" || typ == "File" || typ == "WaitCompletionPacket"
	case dispatcherMutant:
		return typ == "Mutant"
	case objectProcess:
		return typ == "Process"
	case 4, 21:
		return typ == "IoCompletion"
	case 5:
		return typ == "Semaphore"
	case objectThread:
		return typ == "Thread"
	case 8, 9:
		return typ == "Timer"
	}
	return false
}

// mutantOwner reads KMUTANT.OwnerThread: behind the header and a list entry. The
// two lowest bits may be flags.
func (f *File) mutantOwner(o *dump.WaitObject, r *record) {
	header := 8 + 2*f.hdr.ptr
	owner, ok := r.pointer(header + 2*f.hdr.ptr)
	switch {
	case !ok:
		o.Note = "its owner is not in the dump"
	case owner == 0:
		o.Note = "nobody owns it"
	default:
		if o.Owner = f.threadRef(owner &^ 3); o.Owner == nil {
			o.Note = "its owner " + hex(owner&^3) + " is not in the dump"
		}
	}
}

// threadRef names the thread at an ETHREAD address, nil when none is there.
func (f *File) threadRef(va uint64) *dump.ThreadRef {
	r := f.recordAt(va, f.threadSize())
	if r == nil || !f.isThread(r) {
		return nil
	}
	t := &dump.ThreadRef{ETHREAD: va}
	if id, ok := r.clientIDAt(f.identities().cid); ok {
		t.PID, t.TID = id.pid, id.tid
	}
	if t.EPROCESS = f.kernelPointer(r, f.offsets().owner); t.EPROCESS == 0 {
		t.EPROCESS = f.kernelPointer(r, f.kd.thread.apcProcess)
	}
	if p := f.processRef(t.EPROCESS); p != nil {
		t.Process = p.Process
	}
	return t
}

// processRef names the process at an EPROCESS address, nil when none is there.
func (f *File) processRef(va uint64) *dump.ThreadRef {
	r := f.recordAt(va, f.processSize())
	if r == nil || !f.isProcess(r) {
		return nil
	}
	p := &dump.ThreadRef{EPROCESS: va, Process: imageName(r, f.offsets().imageName, f.kd.process.parent)}
	pid := f.identities().pid
	if f.full != nil {
		pid = f.listLayout().pid
	}
	if v, ok := r.pointer(pid); ok && v != 0 && v < maxID && v&3 == 0 {
		p.PID = uint32(v)
	}
	return p
}

// unicodeAt reads the UNICODE_STRING at an offset of a structure, "" when it is
// not there.
func (f *File) unicodeAt(va uint64, off int) string {
	s, _ := f.readUnicode(f.mem, f.hdr.ptr, va+uint64(off))
	return cursor.CString([]byte(s))
}
