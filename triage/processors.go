package triage

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// walkCPUs adds what each processor ran: the stack of a thread that was walked, else
// a walk of its own.
func (a *analysis) walkCPUs() {
	if a.kernel == nil || a.opt.Thread != nil {
		return
	}
	a.inc.OneProcess = a.opt.Process != "" || a.opt.EPROCESS != nil
	for _, c := range a.kernel.CPUs() {
		cpu := CPU{CPU: c, Thread: a.threadOn(&c)}
		running := a.runningThread(&c)
		if running != nil {
			cpu.PID, cpu.ProcessName = running.PID, a.processName(running.EPROCESS)
		}
		switch {
		case cpu.Thread >= 0:
			cpu.Kernel = a.inc.Threads[cpu.Thread].Kernel
		case !c.Context.Empty():
			opt := unwind.Options{Kernel: true, First: methodOf(c.Source), StackBase: c.StackBase}
			if running != nil && c.Switched != nil { // onto the thread's stack, as its own walk goes on
				opt.StackBase, opt.OuterLimit, opt.OuterBase = 0, running.StackLimit, running.StackBase
			}
			cpu.Kernel, _ = a.kw.walk(c.Context, opt)
		}
		if i := cpu.Thread; i >= 0 && a.inc.Threads[i].Stitched {
			cpu.User = a.inc.Threads[i].User
		}
		a.inc.CPUs = append(a.inc.CPUs, cpu)
	}
}

// threadOn finds the thread that a processor was running among those that were walked.
func (a *analysis) threadOn(c *dump.CPU) int {
	return slices.IndexFunc(a.inc.Threads, func(t Thread) bool {
		return t.KernelInfo != nil && c.ETHREAD != 0 && t.KernelInfo.ETHREAD == c.ETHREAD
	})
}

// runningThread finds it among all threads of the dump.
func (a *analysis) runningThread(c *dump.CPU) *dump.KernelThread {
	all := a.kernel.Threads()
	i := slices.IndexFunc(all, func(t dump.Thread) bool { return t.Kernel != nil && c.ETHREAD != 0 && t.Kernel.ETHREAD == c.ETHREAD })
	if i < 0 {
		return nil
	}
	return all[i].Kernel
}

// processName is the name of the process at an EPROCESS of a full kernel dump.
func (a *analysis) processName(eprocess uint64) string {
	if k := a.kernel.wholeSystem(); k != nil {
		for _, p := range k.Processes() {
			if p.EPROCESS == eprocess {
				return p.Name
			}
		}
	}
	return ""
}
