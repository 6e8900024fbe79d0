package dump

// KernelWait is what a waiting thread of a kernel dump waits for, as far as the
// dump holds it. Addresses are of the kernel's objects.
type KernelWait struct {
	// Class is one word for it: mutex, event, semaphore, timer, thread, process,
	// gate, objects (several), resource, alpc, io, idle_worker, sleep, suspended,
	// address, keyed_event, push_lock, rundown, paging; "" when nothing says.
	Class   string
	Objects []WaitObject // in the order of the wait blocks
	All     bool         // all objects are waited for, not any
	IRPs    []PendingIRP // that the thread has started and no driver has finished
	Message *ALPCMessage // whose reply is waited for, nil when there is none
	Note    string       // what the dump does not hold of it, "" when nothing is missing
}

// Owner returns the thread that holds the waiting one up, nil when none is known:
// who owns the object, or the thread that took the message. Of several objects
// any one may be enough, unless all are waited for; then all owners must be one.
func (w *KernelWait) Owner() *ThreadRef {
	if w.Message != nil {
		return w.Message.Server
	}
	var one *ThreadRef
	others := 0 // objects that nobody owns
	for i := range w.Objects {
		switch o := &w.Objects[i]; {
		case o.Own || w.Class == "resource" && o.Type != "ERESOURCE":
		case o.Owner == nil:
			others++
		case one != nil && *one != *o.Owner:
			return nil
		default:
			one = o.Owner
		}
	}
	if others > 0 && !w.All {
		return nil
	}
	return one
}

// WaitObject is an object that is waited for.
type WaitObject struct {
	Address uint64
	Type    string     // "mutant", "synchronization event", "ERESOURCE" ...; "" when not known
	Name    string     // in the object manager's directory, "" none or not in the dump
	Owner   *ThreadRef // who holds it, or is it; nil when nobody is known
	Process *ThreadRef // the process that it is, without thread
	Own     bool       // it is part of the waiting thread itself: its timer, its semaphore
	Note    string     // why something is not known
}

// ThreadRef names a thread, or a process when TID is 0.
type ThreadRef struct {
	ETHREAD  uint64
	EPROCESS uint64
	PID, TID uint32 // 0 not known
	Process  string // image name, "" not known
}

// PendingIRP is a request to a driver that is not finished.
type PendingIRP struct {
	Address uint64
	Major   uint8  // IRP_MJ_* of the current stack location
	Driver  string // `\Driver\condrv`, "" not known
	Device  string // name of the device object, "" none or not in the dump
	File    string // FILE_OBJECT.FileName, "" none or not in the dump
}

// ALPCMessage is a message whose reply a thread waits for.
type ALPCMessage struct {
	Address uint64
	Port    string     // name of the connection port, "" none or not in the dump
	Server  *ThreadRef // the thread that took it, nil while nobody has
	Owner   *ThreadRef // the process of the server's port
}
