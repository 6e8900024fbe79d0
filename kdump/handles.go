package kdump

import (
	"fmt"

	"dumptriage/dump"
)

const handleStream = "HANDLE_TABLE"

// Handles implements dump.Source: the open handles of the process, from its
// handle table; nil when the dump does not hold the table.
func (v *View) Handles() []dump.Handle {
	v.handlesOnce.Do(func() { v.handles = v.File.processHandles(&v.process) })
	return v.handles
}

// processHandles reads EPROCESS.ObjectTable. Its entries name object headers as
// those of the table of ids name objects.
func (f *File) processHandles(p *dump.Process) []dump.Handle {
	off := f.waits().handles
	if f.full == nil || off == 0 {
		return nil
	}
	r := f.recordAt(p.EPROCESS, f.processSize())
	if r == nil {
		return nil
	}
	table := f.kernelPointer(r, off)
	if table == 0 || f.tableCode(table) == 0 {
		return nil
	}
	decode := f.handleDecoder()
	out := []dump.Handle{}
	f.readTable(table, handleStream, func(low, high uint64, id uint32) {
		header := decode.object(low)
		if !kernelAddress(f.hdr.ptr, header) {
			return
		}
		out = append(out, f.handle(header+uint64(f.objectLayout().header), uint32(high), id))
	})
	return out
}

// handleDecoder is the form of entries that the table of ids proved, else the
// one that the kernel's build has.
func (f *File) handleDecoder() *cidDecoder {
	how, windows81 := f.cidTable().how, uint32(9600)
	for i := range cidDecoders {
		d := &cidDecoders[i]
		if d.ptr == f.hdr.ptr && (d.name == how || how == "" && (d.name == "pointer") == (f.hdr.build < windows81 || d.ptr == 4)) {
			return d
		}
	}
	return &cidDecoders[0]
}

// handle describes the object behind a handle. Of the access mask 25 bits are
// kept since Windows 8.
func (f *File) handle(object uint64, access, id uint32) dump.Handle {
	const accessBits, windows8 = 0x1ffffff, 9200
	if f.hdr.build >= windows8 {
		access &= accessBits
	}
	h := dump.Handle{Value: uint64(id), Access: access, Object: object}
	o, ok := f.objectAt(object)
	if !ok {
		return h
	}
	h.Type, h.Name = o.typ, o.name
	switch o.typ {
	case "Process":
		if p := f.processRef(object); p != nil {
			h.Name = fmt.Sprintf("%d %s", p.PID, p.Process)
		}
	case "Thread":
		if t := f.threadRef(object); t != nil {
			h.Name = fmt.Sprintf("%d.%d %s", t.PID, t.TID, t.Process)
		}
	case "File":
		h.Name = f.fileName(object)
	}
	return h
}

// fileName is the name of a FILE_OBJECT: that of its device, and its own.
func (f *File) fileName(file uint64) string {
	l := f.irpLayout()
	if !f.hasType(file, fileType) {
		return ""
	}
	name := f.unicodeAt(file, l.fileName)
	device, err := dump.ReadPointer(f.mem, f.hdr.arch, file+uint64(l.fileDevice))
	if err != nil || !f.hasType(device, deviceType) {
		return name
	}
	if _, d := f.driverOf(device, l); d != "" {
		return d + name
	}
	return name
}
