package kdump

import (
	"dumptriage/dump"
)

// KALPC_MESSAGE and what it leads to, 64-bit, from public symbols.
const (
	messageSize     = 0x100
	portInfo        = 0x10 // ALPC_PORT.CommunicationInfo
	portOwner       = 0x18 // ALPC_PORT.OwnerProcess
	infoConnection  = 0x00 // ALPC_COMMUNICATION_INFO
	infoServerPort  = 0x08
	portStructSize  = 0x20
	infoStructSize  = 0x18
	resourceSize    = 0x68
	resourceFlag    = 0x1a // ERESOURCE, 64-bit
	resourceShared  = 0x20
	resourceExcl    = 0x28
	resourceOwner   = 0x30
	ownedExclusive  = 0x80
	maxResources    = 1 << 18
	resourcesStream = "ExpSystemResourcesList"
)

// awaitedMessage reads the message whose reply a thread waits for, and who has
// to answer it.
func (f *File) awaitedMessage(thread *record, w *dump.KernelWait) *dump.ALPCMessage {
	row := f.waits()
	va := f.kernelPointer(thread, row.alpcMessage)
	r := f.recordAt(va, messageSize)
	if r == nil || row.waitingThread == 0 || f.hdr.ptr != 8 {
		w.Note = "its message is not in the dump"
		return nil
	}
	if waiting, _ := r.pointer(row.waitingThread); waiting != thread.va {
		w.Note = "its message is another thread's"
		return nil
	}
	m := &dump.ALPCMessage{Address: va}
	if taker := f.kernelPointer(r, row.serverThread); taker != 0 {
		m.Server = f.threadRef(taker)
	}
	port := f.recordAt(f.kernelPointer(r, row.ownerPort), portStructSize)
	if port == nil {
		return m
	}
	info := f.recordAt(f.kernelPointer(port, portInfo), infoStructSize)
	if info == nil {
		return m
	}
	connection, _ := info.raw(infoConnection, 8)
	if o, ok := f.objectAt(connection); ok && o.typ == "ALPC Port" {
		m.Port = o.name
	}
	for _, p := range []uint64{f.kernelPointer(info, infoServerPort), connection} {
		if server := f.recordAt(p, portStructSize); server != nil && m.Owner == nil {
			m.Owner = f.processRef(f.kernelPointer(server, portOwner))
		}
	}
	return m
}

// resource is an ERESOURCE that is held, and who holds it.
type resource struct {
	va        uint64
	exclusive bool
	owner     uint64
}

// awaitedResource adds the ERESOURCE whose waiters' object a thread waits for, in
// front of that object, with its owner.
func (f *File) awaitedResource(w *dump.KernelWait) {
	if f.full == nil || f.hdr.ptr != 8 {
		return
	}
	for i := range w.Objects {
		res, ok := f.resources()[w.Objects[i].Address]
		if !ok {
			continue
		}
		o := dump.WaitObject{Address: res.va, Type: "ERESOURCE"}
		switch {
		case !res.exclusive:
			o.Note = "held by readers"
		default:
			if o.Owner = f.threadRef(res.owner); o.Owner == nil {
				o.Note = "its owner " + hex(res.owner) + " is not in the dump"
			}
		}
		w.Objects = append([]dump.WaitObject{o}, w.Objects...)
		return
	}
	w.Note = "which ERESOURCE it waits for was not found"
}

// resources maps the objects that waiters of an ERESOURCE wait for to it, read
// once from the system's list.
func (f *File) resources() map[uint64]resource {
	f.full.resourcesOnce.Do(func() {
		f.full.resources = map[uint64]resource{}
		if !kernelAddress(f.hdr.ptr, f.kd.resources) {
			return
		}
		w := f.walkList(f.mem, f.kd.resources, maxResources, resourcesStream)
		if w.err != nil {
			f.damage(w.err)
		}
		for _, va := range w.entries {
			r := f.recordAt(va, resourceSize)
			if r == nil {
				continue
			}
			flag, _ := r.uint(resourceFlag, 2)
			owner, _ := r.pointer(resourceOwner)
			res := resource{va: va, exclusive: flag&ownedExclusive != 0, owner: owner &^ 3}
			for _, off := range []int{resourceShared, resourceExcl} {
				if waiters := f.kernelPointer(r, off); waiters != 0 {
					f.full.resources[waiters] = res
				}
			}
		}
	})
	return f.full.resources
}
