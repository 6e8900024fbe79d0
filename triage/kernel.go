package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/unwind"
)

// entryProof is what lets the kernel walk take the word at the stack pointer
// for a return address without unwind data.
const entryProof = "the registers hold KeBugCheckEx's arguments: at its entry"

// walkKernel walks the kernel half of one thread and returns the user-mode
// registers that its end proves, when it has such an end.
func (w *walker) walkKernel(t *Thread, kt *dump.Thread, entryProved bool) (unwind.Stack, bool) {
	k := t.KernelInfo
	opt := unwind.Options{Kernel: true, TrapFrame: k.TrapFrame, First: methodOf(kt.ContextSource), Task: k.Task}
	if sp, ok := kt.Context.SP(); ok && sp >= k.StackLimit && sp < k.StackBase {
		opt.StackLimit, opt.StackBase = k.StackLimit, k.StackBase
	}
	if k.Switched != nil { // a DPC or interrupt: the processor's stack first, then the thread's
		opt.OuterLimit, opt.OuterBase = k.StackLimit, k.StackBase
	}
	if k.Interrupted { // the walk finds the machine frame, whose place is that of a service's only in services
		opt.TrapFrame = 0
	}
	if entryProved {
		opt.EntryProved = entryProof
	}
	var st unwind.Stack
	t.Kernel, st = w.walk(kt.Context, opt)
	markCapture(t.Kernel.Frames)
	return st, st.Stop.Reason == unwind.StopTrapFrame
}

func methodOf(src dump.ContextSource) unwind.Method {
	switch src {
	case dump.ContextSwitchFrame:
		return unwind.MethodSwitchFrame
	case dump.ContextException, dump.ContextParameter:
		return unwind.MethodException
	case dump.ContextTrapFrame:
		return unwind.MethodTrapFrame
	case dump.ContextTask:
		return unwind.MethodException
	}
	return unwind.MethodContext
}

// markCapture marks the frames that the live triage writer's own APC put on top
// of a thread's stack. They belong to the capture, not to the thread.
func markCapture(frames []Frame) {
	captured := false
	for i := range frames {
		name := frames[i].Name.Function
		switch {
		case strings.HasPrefix(name, "DbgkpLkmdSnapThread"):
			captured = true
		case captured && name == "KiDeliverApc":
		default:
			return
		}
		frames[i].Capture = true
	}
}

// userEntry returns the user-mode registers at the seam: those that the walk
// recovered, else those of the checked trap frame.
func userEntry(t *Thread, st unwind.Stack, reached bool) (regs dump.Registers, seam *Seam) {
	rule := ""
	switch {
	case reached && !st.User.Empty():
		regs, rule = st.User, st.UserMethod.String()
		if st.UserMethod == unwind.MethodTrapFrame && t.KernelInfo.TrapFrameRule != "" {
			rule = t.KernelInfo.TrapFrameRule
		}
	case t.KernelInfo.TrapFrame != 0 && !t.KernelInfo.User.Empty():
		regs, rule = t.KernelInfo.User, t.KernelInfo.TrapFrameRule
	default:
		return regs, nil
	}
	ip, ok1 := regs.PC()
	sp, ok2 := regs.SP()
	if !ok1 || !ok2 {
		return dump.Registers{}, nil
	}
	return regs, &Seam{Rule: rule, UserIP: ip, UserSP: sp}
}
