package bugcheck

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/report/codes"
	"dumptriage/triage"
)

// layout64 and layout32: fields of IRP, IO_STACK_LOCATION, DEVICE_OBJECT,
// DEVOBJ_EXTENSION and DRIVER_OBJECT, from public symbols; the same since Windows XP.
type objectLayout struct {
	location           int // IRP.Tail.Overlay.CurrentStackLocation
	device             int // IO_STACK_LOCATION.DeviceObject
	driver             int // DEVICE_OBJECT.DriverObject
	start, size, name  int // DRIVER_OBJECT
	irpSize, driverLen int

	stackCount, current     int // IRP.StackCount, CurrentLocation: bytes
	locationSize            int
	powerType, powerState   int // IO_STACK_LOCATION.Parameters.Power
	shutdown                int
	completion              int // IO_STACK_LOCATION.CompletionRoutine
	attached, extension     int // DEVICE_OBJECT.AttachedDevice, DeviceObjectExtension
	extensionOf, deviceNode int // DEVOBJ_EXTENSION.DeviceObject, DeviceNode
}

var (
	layout64 = objectLayout{0xb8, 0x28, 0x08, 0x18, 0x20, 0x38, 0xd0, 0x48,
		0x42, 0x43, 0x48, 0x10, 0x18, 0x20, 0x38, 0x18, 0x138, 0x08, 0x28}
	layout32 = objectLayout{0x60, 0x14, 0x08, 0x0c, 0x10, 0x1c, 0x70, 0x24,
		0x22, 0x23, 0x24, 0x08, 0x0c, 0x10, 0x1c, 0x10, 0xb0, 0x04, 0x14}
)

// Types in the first two bytes of I/O objects.
const (
	typeDevice = 3
	typeDriver = 4
	typeIRP    = 6
)

// layout suits the incident's architecture.
func (j *judge) layout() *objectLayout {
	if j.inc.System.Arch.PointerSize() == 4 {
		return &layout32
	}
	return &layout64
}

func cid(pid, tid uint32) string { return fmt.Sprintf("%x.%x", pid, tid) }

// objects reads what parameters point to beyond a name.
func (j *judge) objects() {
	for i := range j.v.Parameters {
		p := &j.v.Parameters[i]
		switch p.Kind {
		case codes.KindIRP:
			if irp, ok := j.irpAt(p.Value, true); ok {
				irp.Parameter = i
				j.v.IRPs = append(j.v.IRPs, irp)
			} else if p.Value != 0 {
				p.Missing = true
			}
		case codes.KindDevice:
			if n := j.deviceNode(p.Value); j.v.Device == nil && j.v.Class == codes.ClassPower && len(n.Stack) > 0 {
				j.v.Device = &n
			}
		case codes.KindThread:
			j.threadIRPs(i)
		case codes.KindPower:
			p.Missing = p.Value != 0 && !j.powerBlock(p.Value, i)
		case codes.KindPnP:
			p.Missing = p.Value != 0 && !j.pnpBlock(p.Value, i)
		case codes.KindDPC:
			p.Missing = p.Value != 0 && !j.watchdogBlock(p.Value, i)
		case codes.KindPRCB:
			j.hungCPU(i)
			p.Missing = p.Value != 0 && !j.holds(p.Value, 1)
		case codes.KindFxDevice:
			p.Missing = p.Value != 0 && !j.fxDevice(p.Value, i)
		case codes.KindWHEA:
			j.v.Hardware = j.errorRecordAt(p.Value)
			p.Missing = j.v.Hardware == nil && p.Value != 0
		}
	}
}

// typed reads an I/O object of a type; nil when it is none.
func (j *judge) typed(va uint64, size int, kind uint16) *cursor.Cursor {
	if va == 0 {
		return nil
	}
	b := j.read(va, size)
	c := cursor.New(b, "object", -1)
	if len(b) < size || c.U16() != kind {
		return nil
	}
	return c
}

// driverOfDevice follows DEVICE_OBJECT.DriverObject.
func (j *judge) driverOfDevice(va uint64) (string, *triage.Module) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	c := j.typed(va, l.driver+ptr, typeDevice)
	if c == nil {
		return "", nil
	}
	c.Seek(l.driver)
	return j.driverObject(c.Pointer(ptr))
}

// driverObject reads the name of a DRIVER_OBJECT and finds its image by where it
// was loaded.
func (j *judge) driverObject(va uint64) (string, *triage.Module) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	c := j.typed(va, l.driverLen, typeDriver)
	if c == nil {
		return "", nil
	}
	c.Seek(l.start)
	start := c.Pointer(ptr)
	name := j.unicodeAt(va + uint64(l.name))
	m := j.view.Module(start)
	if m != nil && m.Base != start {
		m = nil
	}
	return name, m
}

// driverNameOf names a device's or driver's object.
func (j *judge) driverNameOf(va uint64, kind codes.ParamKind) (name string, missing bool) {
	if va == 0 {
		return "", false
	}
	var m *triage.Module
	if kind == codes.KindDevice {
		name, m = j.driverOfDevice(va)
	} else {
		name, m = j.driverObject(va)
	}
	if name == "" && m != nil {
		name = m.Name()
	}
	return name, name == "" && !j.holds(va, 1)
}

// driverOfParameter is the module of the device, driver or IRP that a parameter
// points to, nil when it is not known.
func (j *judge) driverOfParameter(i int) *triage.Module {
	p := &j.v.Parameters[i]
	var m *triage.Module
	switch p.Kind {
	case codes.KindDevice:
		_, m = j.driverOfDevice(p.Value)
	case codes.KindDriver:
		_, m = j.driverObject(p.Value)
	case codes.KindIRP:
		for k := range j.v.IRPs {
			if j.v.IRPs[k].Parameter == i {
				m = j.v.IRPs[k].Driver
			}
		}
	}
	return m
}

// moduleNamed finds a driver by a name such as \SystemRoot\...\x.sys, x.sys or x.
func (j *judge) moduleNamed(name string) *triage.Module {
	want := moduleKey(dump.BaseName(name))
	if want == "" || j.view == nil {
		return nil
	}
	for _, m := range j.view.Modules {
		if moduleKey(m.Name()) == want {
			return m
		}
	}
	return nil
}
