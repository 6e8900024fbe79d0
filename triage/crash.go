package triage

import "dumptriage/minidump"

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

// assertionText returns the expression of a Breakpad assertion record.
func assertionText(m *minidump.File) string {
	as, err := m.Assertion()
	if err != nil || as == nil {
		return ""
	}
	return as.Expression
}
