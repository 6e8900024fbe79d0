package bugcheck

import (
	"cmp"
	"slices"

	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// StackUse is how much of the thread's kernel stack was used when the fault came.
type StackUse struct {
	Size     uint64
	Left     int64 // between the fault's stack pointer and the limit; negative below it
	Overflow bool
	Modules  []ModuleStack // whose frames take most, the largest first
}

// ModuleStack is what the frames of one module take of a stack.
type ModuleStack struct {
	Module *triage.Module
	Bytes  uint64
	Frames int
}

// Codes that a kernel stack which ran out ends in.
const (
	unexpectedTrap  = 0x7f
	trapDoubleFault = 8
	panicStack      = 0x2b
)

// stackUse measures the stack of a double fault. A stack has overflowed when there is
// no room for the trap frame of a fault, or when a frame reaches beyond its limit: the
// memory behind it is a guard, so what is far beyond was not reached by pushing.
func (j *judge) stackUse() {
	const (
		trapFrame = 0x200
		beyond    = 0x10000
		enough    = 0x1000
	)
	double := j.v.Code == unexpectedTrap && j.v.Parameters[0].Value == trapDoubleFault
	if !double && j.v.Code != panicStack || j.inc.Crashing < 0 || j.inc.Crashing >= len(j.inc.Threads) {
		return
	}
	k, f := j.inc.Threads[j.inc.Crashing].KernelInfo, &j.bc.Fault
	sp, ok := f.Registers.SP()
	if i := f.Index; !ok && i > 0 && i < len(j.frames) { // unwinding came through the fault
		sp, ok = j.frames[i].SP, true
	}
	if !ok || k == nil || k.StackLimit == 0 || k.StackBase <= k.StackLimit || sp >= k.StackBase {
		return
	}
	u := &StackUse{Size: k.StackBase - k.StackLimit}
	switch {
	case sp >= k.StackLimit:
		u.Left = int64(sp - k.StackLimit)
	case k.StackLimit-sp < beyond:
		u.Left = -int64(k.StackLimit - sp)
	default:
		return // it is of another stack, of user mode as at the entry of a system call, or of none
	}
	u.Overflow = u.Left < trapFrame
	u.Modules = j.stackOfModules()
	j.v.Stack = u
	switch {
	case u.Left >= enough && double:
		j.v.Parameters[0].Name = "double fault, and the kernel stack did not overflow"
	case u.Overflow && double:
		j.v.Parameters[0].Name = "double fault: the kernel stack overflowed"
		j.v.Class, j.v.Steps = codes.ClassDriver, codes.StackOverflowSteps()
	}
}

// stackOfModules adds up what the frames from the fault outwards take. Where the next
// frame was only searched for, and behind the last, nothing says how far one reaches.
func (j *judge) stackOfModules() (list []ModuleStack) {
	frames, _ := j.faultFrames()
	for i := range max(0, len(frames)-1) {
		at, next := &frames[i], &frames[i+1]
		if at.Module == nil || scanned(next) || next.SP < at.SP || next.SP-at.SP > maxStack {
			continue
		}
		n := slices.IndexFunc(list, func(s ModuleStack) bool { return s.Module == at.Module })
		if n < 0 {
			n, list = len(list), append(list, ModuleStack{Module: at.Module})
		}
		list[n].Bytes += next.SP - at.SP
		list[n].Frames++
	}
	slices.SortStableFunc(list, func(a, b ModuleStack) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// blameStack takes the driver that used most of a stack that overflowed. Where the
// fault came is chance: whoever called last had the least room.
func (j *judge) blameStack(b *Blame) bool {
	const much, some = 4, 16 // parts of the stack
	u := j.v.Stack
	if u == nil || !u.Overflow {
		return false
	}
	for i := range u.Modules {
		m := &u.Modules[i]
		if !m.Module.Kernel || j.rules.role(rules.Module(m.Module.Name()), "") != roleDriver {
			continue
		}
		if m.Bytes < u.Size/some {
			return false
		}
		if m.Bytes < u.Size/much {
			b.Confidence = least(b.Confidence, "low")
		}
		b.Culprit, b.Module = CulpritDriver, m.Module
		return true
	}
	return false
}
