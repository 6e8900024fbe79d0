package triage

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/minidump"
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
	explainFault(a.uw.space, c, a.tebOf(c))
	a.inc.Crash = c
}

// tebOf is where the TEB of the thread lies that faulted, as the code that faulted
// sees it; 0 when it is not known.
func (a *analysis) tebOf(c *Crash) uint64 {
	threads := a.user.Threads()
	i := slices.IndexFunc(threads, func(t dump.Thread) bool { return t.ID == c.ThreadID })
	if i < 0 {
		return 0
	}
	teb := threads[i].TEB
	if c.Context.Arch == dump.X86 && a.user.System().Arch.PointerSize() == 8 {
		return a.uw.teb32(teb)
	}
	return teb
}

// assertionText returns the expression of a Breakpad assertion record.
func assertionText(m *minidump.File) string {
	as, err := m.Assertion()
	if err != nil || as == nil {
		return ""
	}
	return as.Expression
}
