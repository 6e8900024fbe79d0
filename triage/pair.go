package triage

import (
	"fmt"
	"time"

	"dumptriage/dump"
)

// maxApart is how far apart two captures of one incident may lie before that is
// worth a warning: procdump takes them within seconds.
const maxApart = time.Minute

// pair checks that a user dump and a kernel dump show the same process and says
// how it knows. Different processes are an error: joined stacks of two
// processes would be worse than none.
func pair(user, kernel *Dump, how string) (*Pairing, error) {
	p := &Pairing{User: user.Path, Kernel: kernel.Path, How: how}
	up, kp := user.Process(), processOf(kernel, user)
	switch {
	case up.HasPID && kp.HasPID && up.PID != kp.PID:
		if !sharesThreads(user, kernel) {
			return nil, &dump.Error{Code: dump.Mismatch, File: kernel.Path, Offset: -1, Size: -1,
				Msg: fmt.Sprintf("the two dumps are of different processes: %s is of process %d, this one of process %d", user.Path, up.PID, kp.PID)}
		}
		p.PID = up.PID
		p.warn("process ids differ (%d and %d), but the threads' TEBs agree", up.PID, kp.PID)
	case up.HasPID:
		p.PID = up.PID
	case kp.HasPID:
		p.PID = kp.PID
	}
	if !up.HasPID || !kp.HasPID {
		if sharesThreads(user, kernel) {
			p.warn("one of the dumps does not record its process id; matched by the threads' TEBs")
		} else {
			p.warn("one of the dumps does not record its process id and no thread matches")
		}
	}
	if apart := user.Captured().Sub(kernel.Captured()).Abs(); apart > maxApart && !user.Captured().IsZero() && !kernel.Captured().IsZero() {
		p.warn("the dumps were taken %s apart", apart.Round(time.Second))
	}
	if ua, ka := user.System().Arch, kernel.System().Arch; ua != ka {
		p.warn("the user dump is of %s, the kernel dump of %s", ua, ka)
	}
	return p, nil
}

// SameProcess is false when the process ids of two dumps are known to differ. A
// dump of a whole system holds many.
func SameProcess(a, b *Dump) bool {
	ap, bp := a.Process(), b.Process()
	if ap.HasPID && b.Holds(ap.PID) || bp.HasPID && a.Holds(bp.PID) {
		return true
	}
	return !ap.HasPID || !bp.HasPID || ap.PID == bp.PID
}

func (p *Pairing) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// sharesThreads reports whether any thread of both dumps has the same TEB and
// id, which two processes practically never do.
func sharesThreads(user, kernel *Dump) bool {
	type key struct {
		teb uint64
		id  uint32
	}
	seen := map[key]bool{}
	for _, t := range user.Threads() {
		if t.TEB != 0 {
			seen[key{t.TEB, t.ID}] = true
		}
	}
	for _, t := range kernel.Threads() {
		if seen[key{t.TEB, t.ID}] {
			return true
		}
	}
	return false
}

// matchThreads finds for each user thread its thread of the kernel dump: by TEB
// where the id agrees or the kernel dump has none, else by id. Each kernel
// thread is used once, and no thread of another process at all.
func matchThreads(user, kernel []dump.Thread, pid uint32) (match []int, rest []int) {
	match = make([]int, len(user))
	byTEB, byID := map[uint64]int{}, map[uint32]int{}
	for i, k := range kernel {
		if k.Kernel != nil && k.Kernel.PID != 0 && pid != 0 && k.Kernel.PID != pid {
			continue
		}
		if k.TEB != 0 {
			byTEB[k.TEB] = i
		}
		if k.ID != 0 {
			byID[k.ID] = i
		}
	}
	used := make([]bool, len(kernel))
	take := func(i, k int, ok bool) {
		if ok && match[i] < 0 && !used[k] {
			match[i], used[k] = k, true
		}
	}
	for i, u := range user {
		match[i] = -1
		k, ok := byTEB[u.TEB]
		take(i, k, ok && (kernel[k].ID == 0 || kernel[k].ID == u.ID))
	}
	for i, u := range user { // only then by id, lest a damaged record take another's thread
		k, ok := byID[u.ID]
		take(i, k, ok)
	}
	for i := range kernel {
		if !used[i] {
			rest = append(rest, i)
		}
	}
	return match, rest
}
