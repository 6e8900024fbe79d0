package bugcheck

import (
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/report/codes"
	"dumptriage/triage"
)

// IRP is an I/O request packet that a parameter points to, with its current stack
// location.
type IRP struct {
	Address      uint64
	Parameter    int
	Major, Minor uint8
	Device       uint64
	DriverName   string         // as its object has it, such as \Driver\usbhub
	Driver       *triage.Module // nil when it is not known
}

// layout64 and layout32: fields of IRP, IO_STACK_LOCATION, DEVICE_OBJECT and
// DRIVER_OBJECT, from public symbols; the same since Windows XP.
type objectLayout struct {
	location           int // IRP.Tail.Overlay.CurrentStackLocation
	device             int // IO_STACK_LOCATION.DeviceObject
	driver             int // DEVICE_OBJECT.DriverObject
	start, size, name  int // DRIVER_OBJECT
	irpSize, driverLen int
}

var (
	layout64 = objectLayout{0xb8, 0x28, 0x08, 0x18, 0x20, 0x38, 0xd0, 0x48}
	layout32 = objectLayout{0x60, 0x14, 0x08, 0x0c, 0x10, 0x1c, 0x70, 0x24}
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
			if irp, ok := j.irpAt(p.Value); ok {
				irp.Parameter = i
				j.v.IRPs = append(j.v.IRPs, irp)
			} else if p.Value != 0 {
				p.Missing = true
			}
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

// irpAt reads an IRP and who has it.
func (j *judge) irpAt(va uint64) (IRP, bool) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	c := j.typed(va, l.irpSize, typeIRP)
	if c == nil {
		return IRP{}, false
	}
	irp := IRP{Address: va}
	c.Seek(l.location)
	at := c.Pointer(ptr)
	loc := j.read(at, l.device+ptr)
	c = cursor.New(loc, "IO_STACK_LOCATION", -1)
	major, minor := c.U8(), c.U8()
	c.Seek(l.device)
	device := c.Pointer(ptr)
	if c.Err() != nil {
		return irp, true // its stack location is not in the dump
	}
	irp.Major, irp.Minor, irp.Device = major, minor, device
	irp.DriverName, irp.Driver = j.driverOfDevice(device)
	return irp, true
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
	name, _ := j.unicodeAt(va + uint64(l.name))
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
