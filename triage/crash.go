package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/minidump"
	"dumptriage/unwind"
)

// explainCrash fills in what the exception stream of a user dump tells.
func (a *analysis) explainCrash() {
	if a.user == nil {
		return
	}
	exc := a.user.Exception()
	if exc == nil {
		return
	}
	c := &Crash{Exception: *exc}
	if inWow64Code(&c.Context) {
		c.Context = as32(&c.Context)
	}
	c.Module = a.uw.space.find(a.user.System().Arch.Narrow(exc.Address))
	if m, ok := a.user.Source.(*minidump.File); ok {
		c.Assertion = assertionText(m)
	}
	explainFault(a.uw.space, c)
	a.inc.Crash = c
}

// explainBugCheck names the thread that a bugcheck belongs to and, where the
// rule is certain, the module to blame.
func (a *analysis) explainBugCheck() {
	if a.kernel == nil {
		return
	}
	bc := a.kernel.BugCheck()
	if bc == nil {
		return
	}
	k, _ := a.kernel.Source.(*kdump.File)
	out := &BugCheck{BugCheck: *bc}
	a.inc.BugCheck = out
	if k == nil {
		return
	}
	out.Live, out.BrokenDriver = k.Live(), k.BrokenDriver()
	if !out.Live && a.inc.Crashing < 0 {
		a.inc.Crashing = a.bugCheckThread()
	}
	out.Blame = a.blame(k)
}

// bugCheckThread finds the thread that the header's context belongs to.
func (a *analysis) bugCheckThread() int {
	for i := range a.inc.Threads {
		if kt := a.inc.Threads[i].kernelThread; kt != nil {
			switch kt.ContextSource {
			case dump.ContextHeader, dump.ContextParameter, dump.ContextTrapFrame:
				return i
			}
		}
	}
	return -1
}

// blame applies the rule that is certain: the module of the instruction that a
// parameter's own CONTEXT names is where the fault happened.
func (a *analysis) blame(k *kdump.File) *Blame {
	regs, src, ok := k.FaultContext()
	if !ok || src == dump.ContextHeader {
		return nil
	}
	pc, ok := regs.PC()
	if !ok {
		return nil
	}
	m := a.kw.space.find(pc)
	if m == nil {
		return nil
	}
	b := &Blame{Module: m, Offset: pc - m.Base, Rule: "faulting instruction of the context that a parameter points to", Confidence: "high"}
	if m.IsNT() || strings.EqualFold(m.Name(), "hal.dll") {
		b.Confidence = "low" // the kernel faults on what drivers hand it
	}
	b.Symbol = a.kw.name(unwind.Frame{IP: pc, Lookup: pc}).Name
	return b
}

// assertionText returns the expression of a Breakpad assertion record.
func assertionText(m *minidump.File) string {
	as, err := m.Assertion()
	if err != nil || as == nil {
		return ""
	}
	return as.Expression
}
