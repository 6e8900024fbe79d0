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
