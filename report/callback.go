package report

import (
	"dumptriage/triage"
)

func callbacksJSON(th *triage.Thread, h hexer, limit int) []CallbackJSON {
	var out []CallbackJSON
	for i := range th.Callbacks {
		c := &th.Callbacks[i]
		j := CallbackJSON{Stack: &StackJSON{Base: h.addr(c.StackBase), Limit: h.addr(c.StackLimit)}, Note: c.Note}
		j.UserIP, j.UserSP = callbackUser(c, h)
		if c.Kernel != nil {
			j.KernelFrames = framesJSON(c.Kernel, h, limit)
		}
		out = append(out, j)
	}
	return out
}

func callbackUser(c *triage.Callback, h hexer) (ip, sp string) {
	pc, ok1 := c.User.PC()
	s, ok2 := c.User.SP()
	if !ok1 || !ok2 {
		return "", ""
	}
	return h.addr(pc), h.addr(s)
}

// callbacks prints the kernel stacks that a thread left, below its own.
func (t *text) callbacks(th *triage.Thread) {
	for i := range th.Callbacks {
		c := &th.Callbacks[i]
		line := "-- left for a call back into user mode"
		if pc, ok := c.User.PC(); ok {
			line += ", entered from " + t.addr(pc)
		}
		t.line(sgrCyan, "%s --", line)
		if c.Kernel == nil {
			t.line(sgrYellow, "   %s", clean(c.Note))
			continue
		}
		t.half(c.Kernel, halfOptions{noHeader: true})
	}
}
