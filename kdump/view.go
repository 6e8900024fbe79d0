package kdump

import (
	"sync"

	"dumptriage/dump"
)

// View is a full dump seen from one of its processes: memory by its page tables,
// its modules, its threads. It implements dump.Source.
type View struct {
	*File
	process dump.Process
	space   *AddressSpace

	modulesOnce sync.Once
	modules     []dump.Module
	threadsOnce sync.Once
	threads     []dump.Thread
	handlesOnce sync.Once
	handles     []dump.Handle
	vadsOnce    sync.Once
	vads        []dump.Region
}

var _ dump.Source = (*View)(nil)

// View returns the dump seen from a process of Processes.
func (f *File) View(p *dump.Process) *View {
	v := &View{File: f, process: *p}
	if f.full != nil {
		v.space = f.processSpace(p)
	}
	return v
}

// Process implements dump.Source.
func (v *View) Process() *dump.Process { return &v.process }

// Memory implements dump.Source.
func (v *View) Memory() dump.Memory {
	if v.space == nil {
		return v.File.Memory()
	}
	return v.shown(v.space)
}

// Modules implements dump.Source: the process's own modules, those of its 64-bit
// and its 32-bit half. The kernel's are those of the File.
func (v *View) Modules() []dump.Module {
	v.modulesOnce.Do(func() {
		if v.full != nil {
			v.modules = v.userModules(&v.process)
		}
	})
	return v.modules
}

// UnloadedModules implements dump.Source. What a process unloaded is not read.
func (v *View) UnloadedModules() []dump.Module { return nil }

// Threads implements dump.Source: those of the process.
func (v *View) Threads() []dump.Thread {
	v.threadsOnce.Do(func() {
		for _, t := range v.File.Threads() {
			if t.Kernel != nil && t.Kernel.EPROCESS == v.process.EPROCESS {
				v.threads = append(v.threads, t)
			}
		}
	})
	return v.threads
}

// UserMemory says what of a process's user memory is in the dump, by the page of
// its PEB: PageValid when it is, else why not. Dumps of kernel memory only have
// page tables for user memory but none of its pages.
func (v *View) UserMemory() PageState {
	if v.space == nil || v.process.PEB == 0 {
		return PageInvalid
	}
	var b [1]byte
	if _, err := v.space.ReadAt(b[:], v.process.PEB); err != nil {
		return pageStateOf(err)
	}
	return PageValid
}
