package kdump

import (
	"time"

	"dumptriage/dump"
)

// Process implements dump.Source: the process of the current thread, in a live
// dump the one whose threads were asked for.
func (f *File) Process() *dump.Process {
	f.processOnce.Do(f.readProcess)
	return &f.proc
}

// findProcess returns the EPROCESS copy of the header, or the first block that
// is one.
func (f *File) findProcess() *record {
	if f.process != nil && f.isProcess(f.process) {
		return f.process
	}
	if f.kd == nil {
		return nil
	}
	size := f.kd.process.size
	if size < minProcess || size > maxStructure {
		return nil
	}
	for b := range f.blocksOfSize(size) {
		if r := f.recordOfBlock(b, size); r != nil && f.isProcess(r) {
			return r
		}
	}
	return nil
}

func (f *File) isProcess(r *record) bool {
	dirBase, ok := r.pointer(f.kd.process.dirBase)
	return r.dispatcherType() == objectProcess && ok && dirBase != 0
}

func (f *File) readProcess() {
	p := &f.proc
	if f.hdr.dirBase.ok {
		p.DirBase = f.pageTableRoot(f.hdr.dirBase.v)
	}
	r := f.findProcess()
	if r == nil && f.full != nil {
		r = f.processByTables(p.DirBase)
	}
	if r == nil {
		if f.tri != nil && f.kd != nil {
			f.damage(dump.Errorf(dump.BadRecord, "EPROCESS", "no process was found in the dump"))
		}
		return
	}
	dirBase := p.DirBase
	*p = f.newProcess(r, f.pidOffset())
	if p.DirBase == 0 {
		p.DirBase = dirBase
	}
	p.CommandLine = f.CommandLine(p)
}

// pidOffset returns where EPROCESS.UniqueProcessId is, 0 when that is not known.
func (f *File) pidOffset() int {
	if f.full != nil {
		if off := f.listLayout().pid; off != 0 {
			return off
		}
	}
	return f.identities().pid
}

// pageTableRoot clears what CR3 holds beside the address: the PCID, on x86 with
// PAE the low five bits.
func (f *File) pageTableRoot(v uint64) uint64 {
	if f.hdr.ptr == 4 {
		return v &^ 0x1f
	}
	return v &^ 0xfff
}

// believableTime reads a FILETIME that lies before the dump's own.
func (f *File) believableTime(r *record, off int) time.Time {
	v, ok := r.uint(off, 8)
	if !ok || (f.hdr.systemTime.ok && v > f.hdr.systemTime.v) {
		return time.Time{}
	}
	return filetime(v)
}

// imageNameSize is the size of EPROCESS.ImageFileName: fifteen bytes, not always
// ended by a NUL.
const imageNameSize = 15

// imageName reads EPROCESS.ImageFileName where the table has it, else where it
// has been seen behind the parent's id, else at the only place behind it that
// reads like a name.
func imageName(r *record, table, parent int) string {
	name, off := findImageName(r.unseen(), table, parent)
	if name != "" && r.names {
		r.use(off, imageNameSize)
	}
	return name
}

func findImageName(r *record, table, parent int) (found string, at int) {
	for _, off := range []int{table, parent + 0x68, parent + 0x70, parent + 0x50} {
		if name := nameAt(r, off); name != "" {
			return name, off
		}
	}
	for off := parent + r.ptr; parent > 0 && off < len(r.b); off += r.ptr {
		if name := nameAt(r, off); len(name) >= 4 {
			if found != "" {
				return "", 0
			}
			found, at = name, off
		}
	}
	return found, at
}

// nameAt returns the name at off when all of its bytes up to a NUL are printable
// and only NULs follow.
func nameAt(r *record, off int) string {
	b := r.bytes(off, imageNameSize)
	n := 0
	for n < len(b) && b[n] >= 0x20 && b[n] <= 0x7e {
		n++
	}
	for _, ch := range b[n:] {
		if ch != 0 {
			return ""
		}
	}
	return string(b[:n])
}
