package bugcheck

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// PowerTriage is what TRIAGE_9F_POWER or TRIAGE_9F_PNP leads to: what the power
// manager, or Plug and Play, was at when it gave up. Layouts from public symbols,
// the same from Windows 8.1 to 11.
type PowerTriage struct {
	Parameter int
	IRPs      []PowerIRP    // power IRPs that are not done
	Workers   []PowerWorker // the power manager's threads
	Devices   []DeviceNode  // whose completion Plug and Play waits for
	Truncated bool          // a list leads out of the dump
}

// PowerIRP is a power IRP that is not done, and who has it.
type PowerIRP struct {
	IRP
	PDO DeviceNode // that it is for
}

// PowerWorker is a thread that sends power IRPs to drivers.
type PowerWorker struct {
	ETHREAD    uint64
	Name       string // process and thread id in hexadecimal, "" when the dump does not list it
	IRP        uint64 // that it is handing to a driver, 0 none: the thread is idle
	Device     uint64
	Driver     *triage.Module
	DriverName string
	Frame      *triage.Frame // the innermost frame of a driver on its stack, nil none
}

// DeviceNode is a device as Plug and Play knows it.
type DeviceNode struct {
	PDO      uint64 // physical device object
	Instance string // instance path, "" when not known
	Service  string // of its function driver
	Stack    []Device
}

// Device is a device object of a device's stack.
type Device struct {
	Address    uint64
	DriverName string
	Driver     *triage.Module // nil when it is not known
}

// Signatures of the blocks. A published debugger transcript shows 8000h, revision 1,
// of the power manager's; that of Plug and Play is believed, so its queue must prove
// itself too.
const (
	power9F = 0x8000
	pnp9F   = 0x8001
)

const (
	maxPowerList  = 256 // entries of a list: more say nothing more
	maxDeviceTree = 32  // devices of a stack
)

// powerBlock follows a TRIAGE_9F_POWER: signature and revision of 16 bits each,
// then pointers to the heads of the lists of power IRPs (Link, Irp, Pdo) and of the
// power manager's threads (Link, Thread, Irp, Device).
func (j *judge) powerBlock(va uint64, parameter int) bool {
	ptr := uint64(j.inc.System.Arch.PointerSize())
	if !j.signed(va, power9F) {
		return false
	}
	p := &PowerTriage{Parameter: parameter}
	j.v.Power = p
	for _, e := range j.list(j.pointer(va+ptr), &p.Truncated) {
		irp, ok := j.irpAt(j.pointer(e+2*ptr), false)
		if !ok {
			irp = IRP{Address: j.pointer(e + 2*ptr)}
		}
		irp.Parameter = -1
		p.IRPs = append(p.IRPs, PowerIRP{irp, j.deviceNode(j.pointer(e + 3*ptr))})
	}
	for _, e := range j.list(j.pointer(va+2*ptr), &p.Truncated) {
		w := PowerWorker{ETHREAD: j.pointer(e + 2*ptr), IRP: j.pointer(e + 3*ptr)}
		if w.IRP != 0 {
			w.Device = j.pointer(e + 4*ptr)
			w.DriverName, w.Driver = j.driverOfDevice(w.Device)
		}
		w.Name, w.Frame = j.threadAt(w.ETHREAD)
		p.Workers = append(p.Workers, w)
	}
	return true
}

// pnpBlock follows a TRIAGE_9F_PNP: its first pointer is a queue that begins with
// the head of the list of dispatched requests (ListEntry, DeviceNode).
func (j *judge) pnpBlock(va uint64, parameter int) bool {
	ptr := uint64(j.inc.System.Arch.PointerSize())
	queue := j.pointer(va + ptr)
	if !j.signed(va, pnp9F) || queue == 0 || j.pointer(j.pointer(queue)+ptr) != queue {
		return false
	}
	p := &PowerTriage{Parameter: parameter}
	j.v.Power = p
	for _, e := range j.list(queue, &p.Truncated) {
		if n, ok := j.nodeAt(j.pointer(e + 2*ptr)); ok {
			p.Devices = append(p.Devices, n)
		}
	}
	return true
}

// fxDevice follows a POP_FX_DEVICE, which begins with Link, Irp, IrpData, three
// numbers of 32 bits and DeviceNode (TRIAGE_POP_FX_DEVICE).
func (j *judge) fxDevice(va uint64, parameter int) bool {
	ptr := uint64(j.inc.System.Arch.PointerSize())
	node := va + 4*ptr + 12
	node = (node + ptr - 1) &^ (ptr - 1)
	n, ok := j.nodeAt(j.pointer(node))
	if !ok {
		return j.holds(va, 1)
	}
	j.v.Power = &PowerTriage{Parameter: parameter, Devices: []DeviceNode{n}}
	if at := j.pointer(va + 2*ptr); at != 0 {
		if irp, ok := j.irpAt(at, false); ok {
			irp.Parameter = -1
			j.v.Power.IRPs = []PowerIRP{{irp, n}}
		}
	}
	return true
}

// signed reports whether a block with this signature is at va.
func (j *judge) signed(va uint64, signature uint16) bool {
	c := cursor.New(j.read(va, 2), "TRIAGE_9F", -1)
	return c.U16() == signature && c.Err() == nil
}

// list returns the entries of a list by its head. Where an entry is not in the dump,
// or does not point back, the list is cut, and said to be.
func (j *judge) list(head uint64, truncated *bool) (entries []uint64) {
	if head == 0 {
		return nil
	}
	ptr := uint64(j.inc.System.Arch.PointerSize())
	before := head
	for e := j.pointer(head); e != head; e = j.pointer(e) {
		if e == 0 || j.pointer(e+ptr) != before || len(entries) == maxPowerList {
			*truncated = true
			break
		}
		entries = append(entries, e)
		before = e
	}
	return entries
}

// deviceNode describes the device of a physical device object: its stack, and what
// its device node says when the dump holds one that points back.
func (j *judge) deviceNode(pdo uint64) DeviceNode {
	l := j.layout()
	if ext := j.pointer(pdo + uint64(l.extension)); pdo != 0 && ext != 0 && j.pointer(ext+uint64(l.extensionOf)) == pdo {
		if n, ok := j.nodeAt(j.pointer(ext + uint64(l.deviceNode))); ok && n.PDO == pdo {
			return n
		}
	}
	return DeviceNode{PDO: pdo, Stack: j.deviceStack(pdo)}
}

// nodeAt reads a device node, which begins with four links to other nodes, the
// physical device object and two texts (TRIAGE_DEVICE_NODE; so since Windows 8).
func (j *judge) nodeAt(va uint64) (DeviceNode, bool) {
	ptr := uint64(j.inc.System.Arch.PointerSize())
	n := DeviceNode{PDO: j.pointer(va + 4*ptr)}
	if va == 0 || n.PDO == 0 {
		return n, false
	}
	n.Stack = j.deviceStack(n.PDO)
	if len(n.Stack) == 0 { // older nodes have something else there
		return n, false
	}
	n.Instance, _ = j.unicodeShown(va+5*ptr, never) // it may end with a serial number
	n.Service = j.unicodeAt(va + 7*ptr)
	return n, true
}

// deviceStack lists the device objects from the physical one upwards.
func (j *judge) deviceStack(pdo uint64) (out []Device) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	for va := pdo; len(out) < maxDeviceTree; {
		if j.typed(va, l.driver+ptr, typeDevice) == nil || slices.ContainsFunc(out, func(d Device) bool { return d.Address == va }) {
			break
		}
		d := Device{Address: va}
		d.DriverName, d.Driver = j.driverOfDevice(va)
		out = append(out, d)
		va = j.pointer(va + uint64(l.attached))
	}
	return out
}

// threadAt names a thread of the incident and the innermost driver's frame on its
// kernel stack.
func (j *judge) threadAt(ethread uint64) (name string, at *triage.Frame) {
	for i := range j.inc.Threads {
		t := &j.inc.Threads[i]
		if k := t.KernelInfo; k == nil || k.ETHREAD != ethread || ethread == 0 {
			continue
		}
		if t.Kernel != nil {
			at, _ = j.innermostDriver(t.Kernel.Frames)
		}
		return threadName(&t.Thread, t.KernelInfo), at
	}
	return "", nil
}

// innermostDriver is the first frame of a driver that may be blamed, else of a
// framework, and its index; nil and -1 when the kernel is alone.
func (j *judge) innermostDriver(frames []triage.Frame) (*triage.Frame, int) {
	for _, want := range []role{roleDriver, roleFramework} {
		for i := range frames {
			if f := &frames[i]; !f.Capture && j.roleOf(f) == want {
				return f, i
			}
		}
	}
	return nil, -1
}

// blamePower takes the driver that a thread of the power manager is handing the
// stuck IRP to, else the innermost driver on the stack of the thread that holds the
// Plug and Play lock or that has the IRP which it waits for, else the one driver of the one device that is waited for.
func (j *judge) blamePower(b *Blame) bool {
	for i := range j.v.Parameters {
		p := &j.v.Parameters[i]
		switch {
		case p.Value == 0:
		case p.Kind == codes.KindIRP && j.v.Power != nil:
			for k := range j.v.Power.Workers {
				if w := &j.v.Power.Workers[k]; w.IRP == p.Value && j.blameModule(b, w.Driver) {
					b.Parameter = j.v.Power.Parameter
					return true
				}
			}
		case p.Kind == codes.KindThread && j.hangs():
			if _, f := j.threadAt(p.Value); f != nil && j.blameModule(b, f.Module) {
				b.Parameter, b.Address, b.Frame = i, f.IP, f
				b.Confidence = least(b.Confidence, "medium")
				if scanned(f) {
					b.Confidence = "low"
				}
				return true
			}
			for k := range j.v.IRPs {
				if irp := &j.v.IRPs[k]; irp.Parameter == i && j.blameModule(b, irp.Driver) {
					b.Parameter, b.Confidence = i, least(b.Confidence, "medium")
					return true
				}
			}
		}
	}
	if j.v.Power != nil && len(j.v.Power.Devices) == 1 && j.blameModule(b, j.onlyDriver(&j.v.Power.Devices[0])) {
		b.Parameter, b.Confidence = j.v.Power.Parameter, least(b.Confidence, "medium")
		return true
	}
	return false
}

// threadIRPs reads the IRPs that a thread which hangs has started.
func (j *judge) threadIRPs(parameter int) {
	const most = 4
	for i := range j.inc.Threads {
		k := j.inc.Threads[i].KernelInfo
		if !j.hangs() || k == nil || k.ETHREAD != j.v.Parameters[parameter].Value || k.Wait == nil {
			continue
		}
		for _, p := range k.Wait.IRPs[:min(len(k.Wait.IRPs), most)] {
			if irp, ok := j.irpAt(p.Address, true); ok {
				irp.Parameter = parameter
				j.v.IRPs = append(j.v.IRPs, irp)
			}
		}
	}
}

// hangs reports whether the bugcheck tells of something that does not go on: then the
// thread that a parameter names is the one to look at.
func (j *judge) hangs() bool {
	return slices.Contains([]codes.BugCheckClass{codes.ClassPower, codes.ClassHang, codes.ClassLive}, j.v.Class)
}

// blameModule blames a driver that may be.
func (j *judge) blameModule(b *Blame, m *triage.Module) bool {
	if m == nil {
		return false
	}
	role := j.rules.role(rules.Module(m.Name()), "")
	if role == roleFramework {
		b.Confidence = least(b.Confidence, "medium")
	}
	b.Culprit, b.Module = CulpritDriver, m
	return role != roleKernel
}

// onlyDriver is the one driver of a device that is neither the kernel's nor a
// framework: a bus driver only passes on. Nil when there are more, or none is loaded.
func (j *judge) onlyDriver(n *DeviceNode) *triage.Module {
	var only *Device
	for i := range n.Stack {
		d := &n.Stack[i]
		name := rules.Module(dump.BaseName(d.DriverName))
		if d.Driver != nil {
			name = rules.Module(d.Driver.Name())
		}
		if j.rules.role(name, "") != roleDriver || only != nil && only.DriverName == d.DriverName && only.Driver == d.Driver {
			continue
		}
		if only != nil {
			return nil
		}
		only = d
	}
	if only == nil {
		return nil
	}
	return only.Driver
}
