package bugcheck

import (
	"dumptriage/internal/cursor"
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
	// Completed says that no driver has it: it is back with its sender, or was not sent.
	Completed bool
	Power     *PowerRequest // of IRP_MJ_POWER
	// Locations are the stack locations from the current one up to that of the driver
	// that got the IRP first. Empty when the IRP's counts make no sense.
	Locations []IRPLocation
}

// IRPLocation is an IO_STACK_LOCATION: a driver that has had the IRP, or has it.
type IRPLocation struct {
	Number       int // 1 is the lowest driver's
	Major, Minor uint8
	Pending      bool // the driver said that it completes the IRP later
	Device       uint64
	DriverName   string
	Driver       *triage.Module
	Completion   *triage.Frame // the routine to call on completion, nil none or not in a module
}

// PowerRequest is what a power IRP asks for (Parameters.Power of the public wdm.h).
type PowerRequest struct {
	Device   bool   // the state is a device's, else the system's
	State    uint32 // DEVICE_POWER_STATE or SYSTEM_POWER_STATE
	Shutdown uint32 // POWER_ACTION
}

const (
	majorPower           = 0x16
	minorSet, minorQuery = 2, 3
	pendingReturned      = 1 // SL_PENDING_RETURNED of IO_STACK_LOCATION.Control
	offControl           = 3
)

// irpAt reads an IRP and who has it; whole, who had it too.
func (j *judge) irpAt(va uint64, whole bool) (IRP, bool) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	c := j.typed(va, l.irpSize, typeIRP)
	if c == nil {
		return IRP{}, false
	}
	irp := IRP{Address: va}
	c.Seek(l.stackCount)
	count, current := int(c.U8()), int(c.U8())
	if count > 0 && current > count {
		irp.Completed = true
		return irp, true
	}
	c.Seek(l.location)
	at := c.Pointer(ptr)
	loc, ok := j.location(at)
	if !ok {
		return irp, true // its stack location is not in the dump
	}
	irp.Major, irp.Minor, irp.Device, irp.DriverName, irp.Driver = loc.Major, loc.Minor, loc.Device, loc.DriverName, loc.Driver
	irp.Power = j.powerRequest(at, &loc)
	if whole && count > 0 && current > 0 {
		irp.Locations = j.locations(at, loc, current, count)
	}
	return irp, true
}

// location reads an IO_STACK_LOCATION.
func (j *judge) location(va uint64) (IRPLocation, bool) {
	l, ptr := j.layout(), j.inc.System.Arch.PointerSize()
	c := cursor.New(j.read(va, l.device+ptr), "IO_STACK_LOCATION", -1)
	loc := IRPLocation{Major: c.U8(), Minor: c.U8()}
	c.Seek(offControl)
	loc.Pending = c.U8()&pendingReturned != 0
	c.Seek(l.device)
	loc.Device = c.Pointer(ptr)
	if c.Err() != nil {
		return IRPLocation{}, false
	}
	loc.DriverName, loc.Driver = j.driverOfDevice(loc.Device)
	if routine := j.pointer(va + uint64(l.completion)); j.view.Module(routine) != nil {
		f, _, _ := j.view.Glance(routine)
		loc.Completion = &f
	}
	return loc, true
}

// locations lists the stack locations from the current one upwards. They lie one
// behind the other, the lowest driver's first.
func (j *judge) locations(at uint64, current IRPLocation, n, count int) []IRPLocation {
	current.Number = n
	out := []IRPLocation{current}
	for n++; n <= count; n++ {
		at += uint64(j.layout().locationSize)
		loc, ok := j.location(at)
		if !ok {
			break
		}
		loc.Number = n
		out = append(out, loc)
	}
	return out
}

// powerRequest reads what an IRP that sets or asks for a power state is about.
func (j *judge) powerRequest(at uint64, loc *IRPLocation) *PowerRequest {
	if loc.Major != majorPower || loc.Minor != minorSet && loc.Minor != minorQuery {
		return nil
	}
	l := j.layout()
	c := cursor.New(j.read(at, l.shutdown+4), "IO_STACK_LOCATION", -1)
	c.Seek(l.powerType)
	kind := c.U32()
	c.Seek(l.powerState)
	p := &PowerRequest{Device: kind == 1, State: c.U32()}
	c.Seek(l.shutdown)
	p.Shutdown = c.U32()
	if c.Err() != nil || kind > 1 {
		return nil
	}
	return p
}

// pointer reads a pointer, 0 when the dump does not hold it.
func (j *judge) pointer(va uint64) uint64 {
	ptr := j.inc.System.Arch.PointerSize()
	c := cursor.New(j.read(va, ptr), "memory", -1)
	if v := c.Pointer(ptr); c.Err() == nil {
		return v
	}
	return 0
}
