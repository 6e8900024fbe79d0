package kdump

import (
	"fmt"
	"slices"

	"dumptriage/dump"
)

const handleStream = "HANDLE_TABLE"

// Handles implements dump.Source: the open handles of the process, from its
// handle table; nil when the dump does not hold the table.
func (v *View) Handles() []dump.Handle {
	v.handlesOnce.Do(func() { v.handles = v.File.processHandles(&v.process) })
	return v.handles
}

// processHandles describes the handles of a process.
func (f *File) processHandles(p *dump.Process) []dump.Handle {
	table := f.handleTable(p)
	if table == 0 {
		return nil
	}
	out := []dump.Handle{}
	f.eachHandle(table, func(object uint64, access, id uint32) {
		out = append(out, f.handle(object, access, id))
	})
	return out
}

// HandleCount returns how many handles a process has open; ok is false when its
// handle table, or a part of it, is not in the dump.
func (f *File) HandleCount(p *dump.Process) (n int, ok bool) {
	table := f.handleTable(p)
	if table == 0 {
		return 0, false
	}
	ok = f.eachHandle(table, func(uint64, uint32, uint32) { n++ })
	return n, ok
}

// handleTable returns the address of a process's HANDLE_TABLE, 0 when it has none
// in the dump.
func (f *File) handleTable(p *dump.Process) uint64 {
	off := f.waits().handles
	if f.full == nil || off == 0 {
		return 0
	}
	r := f.recordAt(p.EPROCESS, f.processSize())
	if r == nil {
		return 0
	}
	table := f.kernelPointer(r, off)
	if table == 0 || f.tableCode(table) == 0 {
		return 0
	}
	return table
}

// eachHandle calls fn with each handle of a table, whose entries name object
// headers as those of the table of ids name objects. It reports whether all of the
// table was read.
func (f *File) eachHandle(table uint64, fn func(object uint64, access, id uint32)) (whole bool) {
	decode, header := f.handleDecoder(), uint64(f.objectLayout().header)
	return f.readTable(table, handleStream, func(low, high uint64, id uint32) {
		if at := decode.object(low); kernelAddress(f.hdr.ptr, at) {
			fn(at+header, uint32(high), id)
		}
	})
}

// handleDecoder is the form of entries that the table of ids proved, else the
// one that the kernel's build has.
func (f *File) handleDecoder() *cidDecoder {
	const windows81 = 9600
	how := f.cidTable().how
	if how == "" {
		how = cidHigh
		if f.hdr.ptr == 4 || f.hdr.build < windows81 {
			how = cidPointer
		} else if w, ok := f.full.walker.(pagingAMD64); ok && w.levels == 5 {
			how = cidFive
		}
	}
	i := slices.IndexFunc(cidDecoders, func(d cidDecoder) bool { return d.ptr == f.hdr.ptr && d.name == how })
	return &cidDecoders[i]
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
			h.Name = fmt.Sprintf("%d (%#x) %s", p.PID, p.PID, p.Process)
		}
	case "Thread":
		if t := f.threadRef(object); t != nil {
			h.Name = fmt.Sprintf("%x.%x %s", t.PID, t.TID, t.Process) // as stacks writes it
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
