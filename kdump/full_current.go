package kdump

import (
	"errors"

	"dumptriage/dump"
)

// pageStateOf returns why memory could not be read, PageValid when err does not
// say.
func pageStateOf(err error) PageState {
	var p *PageError
	if errors.As(err, &p) {
		return p.State
	}
	return PageValid
}

// findCurrent reads the processor that stopped the system, its thread and that
// thread's process: they take the places of the copies that the header of a
// triage dump has.
func (f *File) findCurrent() {
	if f.kd == nil {
		return
	}
	if p := f.crashedProcessor(); p != nil {
		f.thread = f.recordAt(p.current, f.threadSize())
	} else if f.kdbgHow == byTable {
		f.thread = f.findByStack()
	}
	if f.thread == nil || !f.isThread(f.thread) {
		f.thread = nil
		return
	}
	// The address space stays that of the process whose tables were loaded, but
	// a thread belongs to its owner.
	owner := f.kernelPointer(f.thread, f.offsets().owner)
	if owner == 0 {
		owner = f.kernelPointer(f.thread, f.kd.thread.apcProcess)
	}
	f.process = f.recordAt(owner, f.processSize())
}

func (f *File) processSize() int {
	if f.kd == nil || f.kd.process.size < minProcess || f.kd.process.size > maxObject {
		return 0
	}
	return f.kd.process.size
}

// maxObject bounds EPROCESS and ETHREAD, of which the largest known has 0xc80
// bytes: their fields are tried one against the other.
const maxObject = 0x2000

func (f *File) crashedProcessor() *processor {
	ps := f.processors()
	for i := range ps {
		if ps[i].crashed {
			return &ps[i]
		}
	}
	return nil
}

// processorBlocks yields the KPRCBs that KiProcessorBlock points to.
func (f *File) processorBlocks(part int) []*record {
	if f.kd == nil || f.kd.processorBlock == 0 {
		return nil
	}
	n, counted := uint32(maxProcessors), f.hdr.cpus.ok && f.hdr.cpus.v > 0
	if counted {
		n = min(n, f.hdr.cpus.v)
	}
	var out []*record
	unread := 0
	for i := range n {
		va, err := dump.ReadPointer(f.mem, f.hdr.arch, f.kd.processorBlock+uint64(i)*uint64(f.hdr.ptr))
		if err != nil || !kernelAddress(f.hdr.ptr, va) {
			if !counted { // the end of the array
				break
			}
			unread++
			continue
		}
		if r := f.recordAt(va, part); r != nil {
			out = append(out, r)
		} else {
			unread++
		}
	}
	if unread > 0 {
		f.damage(dump.Errorf(dump.OutOfRange, "KiProcessorBlock", "the blocks of %d of %d processors are not in the dump", unread, n))
	}
	return out
}

// markByStack finds the processor that stopped the system as the one whose
// thread's stack holds the header's stack pointer.
func (f *File) markByStack() {
	regs, ok := f.HeaderContext()
	sp, _ := regs.SP()
	if !ok {
		return
	}
	for i := range f.prcbs {
		r := f.recordAt(f.prcbs[i].current, f.threadSize())
		if r == nil {
			continue
		}
		if limit, base, ok := f.stackBounds(r); ok && sp >= limit && sp < base {
			f.prcbs[i].crashed = true
			return
		}
	}
}

// processByTables finds the process whose page tables were loaded when the dump
// was written; nil when not just one has them.
func (f *File) processByTables(root uint64) (found *record) {
	for i := range f.Processes() {
		if p := &f.full.processes[i]; p.DirBase == root && root != 0 {
			if found != nil {
				return nil
			}
			found = f.recordAt(p.EPROCESS, f.processSize())
		}
	}
	return found
}
