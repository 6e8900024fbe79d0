package kdump

import (
	"dumptriage/dump"
)

// irpLayout is where the fields of IRP, IO_STACK_LOCATION and what they point to
// lie, from public symbols; the same since Windows XP.
type irpLayout struct {
	size                        int // of IRP
	thread                      int // ThreadListEntry
	stackCount, currentLocation int
	location                    int // Tail.Overlay.CurrentStackLocation
	device, file                int // IO_STACK_LOCATION
	locationSize                int
	driver                      int // DEVICE_OBJECT.DriverObject
	driverName                  int // DRIVER_OBJECT
	fileName, fileDevice        int // FILE_OBJECT
}

var (
	irp64 = irpLayout{0xd0, 0x20, 0x42, 0x43, 0xb8, 0x28, 0x30, 0x48, 0x08, 0x38, 0x58, 0x08}
	irp32 = irpLayout{0x70, 0x10, 0x22, 0x23, 0x60, 0x14, 0x18, 0x24, 0x08, 0x1c, 0x30, 0x04}
)

const (
	irpType    = 6
	driverType = 4
	deviceType = 3
	fileType   = 5
	maxIRPs    = 64 // of a thread: a list that is longer says nothing more
	maxMajor   = 0x1b
)

func (f *File) irpLayout() *irpLayout {
	if f.hdr.ptr == 4 {
		return &irp32
	}
	return &irp64
}

// pendingIRPs reads the thread's list of IRPs.
func (f *File) pendingIRPs(thread *record) []dump.PendingIRP {
	head := known(f.kd.thread.irps, f.waits().irps)
	if head == 0 || f.kernelPointer(thread, head) == 0 || f.kernelPointer(thread, head) == thread.va+uint64(head) {
		return nil
	}
	w := f.walkList(f.mem, thread.va+uint64(head), maxIRPs, "IrpList")
	l := f.irpLayout()
	var out []dump.PendingIRP
	for _, va := range offsetFrom(w.entries, l.thread) {
		if irp, ok := f.irpAt(va, l); ok {
			out = append(out, irp)
		}
	}
	return out
}

// irpAt decodes an IRP with its current stack location.
func (f *File) irpAt(va uint64, l *irpLayout) (irp dump.PendingIRP, ok bool) {
	r := f.recordAt(va, l.size)
	if r == nil {
		return irp, false
	}
	kind, _ := r.raw(0, 2)
	count, _ := r.uint(l.stackCount, 1)
	current, _ := r.uint(l.currentLocation, 1)
	if kind != irpType || current == 0 || current > count+1 {
		return irp, false
	}
	irp.Address = va
	s := f.recordAt(f.kernelPointer(r, l.location), l.locationSize)
	if s == nil {
		return irp, true
	}
	major, _ := s.raw(0, 1)
	if major > maxMajor {
		return irp, true
	}
	irp.Major = uint8(major)
	file, device := f.kernelPointer(s, l.file), f.kernelPointer(s, l.device)
	if f.hasType(file, fileType) {
		irp.File = f.unicodeAt(file, l.fileName)
	}
	if f.hasType(device, deviceType) {
		irp.Driver, irp.Device = f.driverOf(device, l)
	}
	return irp, true
}

// driverOf names the driver of a device, and the device.
func (f *File) driverOf(device uint64, l *irpLayout) (driver, name string) {
	if o, ok := f.objectAt(device); ok && o.typ == "Device" {
		name = o.name
	}
	object, err := dump.ReadPointer(f.mem, f.hdr.arch, device+uint64(l.driver))
	if err == nil && f.hasType(object, driverType) {
		driver = f.unicodeAt(object, l.driverName)
		f.keepPath(f.mem, f.hdr.ptr, object+uint64(l.driverName), driver)
	}
	return driver, name
}

// hasType reports whether one of the I/O manager's structures is at va: they
// begin with a type, 16 bits.
func (f *File) hasType(va uint64, want uint16) bool {
	var b [2]byte
	if !kernelAddress(f.hdr.ptr, va) {
		return false
	}
	n, _ := f.mem.ReadAt(b[:], va)
	return n == 2 && b[0] == uint8(want) && b[1] == 0
}
