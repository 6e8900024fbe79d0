package crash

import (
	"slices"

	"dumptriage/triage"
)

// Earlier is an exception that the thread was raising or handling when the one of
// the verdict came.
type Earlier struct {
	triage.Raised
	Thrown *Thrown       // its object, nil unknown
	By     *triage.Frame // who raised it, nil when the walk does not lead there
	Nested bool          // the record of the exception points to it
}

const maxEarlier = 4

// earlier finds what led to the exception: what its record points to, what stands in
// frames that raise and dispatch, and for ends of C++ exceptions also what of them is
// left on the stack: a rethrown exception has no object of its own.
func (j *judge) earlier() {
	if j.thread == nil {
		return
	}
	var list []Earlier
	at := j.crash.Record
	for range maxEarlier {
		e, ok := j.mem.ExceptionAt(j.arch.Narrow(at), j.arch)
		if at == 0 || !ok || slices.ContainsFunc(list, func(x Earlier) bool { return x.At == at }) {
			break
		}
		list = append(list, Earlier{Raised: triage.Raised{Exception: e, At: at, Frame: -1, Live: true}, Nested: true})
		at = e.Record
	}
	for _, r := range j.mem.Raised(j.thread) {
		known := slices.ContainsFunc(list, func(x Earlier) bool { return x.At == r.At })
		if !known && !j.same(&r) && (r.Live || j.endsThrow() && r.Parameters[1] != 0) {
			list = append(list, Earlier{Raised: r})
		}
	}
	for i := range list {
		e := &list[i]
		if e.Code == codeCxx {
			e.Thrown = j.msvcObject(e.Parameters)
		}
		if e.Live && e.Frame >= 0 {
			e.By = j.raiserBelow(e.Frame)
		}
	}
	j.v.Earlier = list[:min(len(list), maxEarlier)]
	j.rethrown()
}

// same reports whether a record is that of the exception itself.
func (j *judge) same(r *triage.Raised) bool {
	c := j.crash
	return r.Code == c.Code && j.arch.Narrow(c.Address) == r.Address &&
		slices.EqualFunc(r.Parameters, c.Parameters, func(a, b uint64) bool { return a == j.arch.Narrow(b) })
}

// endsThrow reports whether a C++ exception that found no handler may have led here.
func (j *judge) endsThrow() bool {
	switch j.v.Class {
	case Terminate, Abort, CxxException:
		return true
	}
	return false
}

// rethrown gives an exception that "throw;" raised again its object: that of the
// innermost one on the stack.
func (j *judge) rethrown() {
	t := j.v.Thrown
	if j.crash.Code != codeCxx || t == nil || t.Address != 0 {
		return
	}
	for i := range j.v.Earlier {
		if e := &j.v.Earlier[i]; e.Thrown != nil && e.Thrown.Address != 0 {
			found := *e.Thrown
			found.Again = true
			j.v.Thrown = &found
			j.badAlloc()
			return
		}
	}
}

// raiserBelow is the first frame behind one that is more than machinery.
func (j *judge) raiserBelow(frame int) *triage.Frame {
	for i := frame; i < len(j.frames); i++ {
		if skip, _ := j.rules.why(&j.frames[i]); !passive(skip) {
			return &j.frames[i]
		}
	}
	return nil
}

const (
	maxRaising    = 8   // threads that are named
	maxRaisingTry = 256 // threads whose stacks are searched
)

// Raising finds the exceptions that threads of a user dump without an exception were
// raising or handling, the innermost of each: whoever wrote the dump did not say, or it
// was taken while an error was being reported. A nil r means the built-in rules.
func Raising(inc *triage.Incident, r *Rules) []Earlier {
	if inc.Crash != nil || inc.BugCheck != nil && !inc.LiveCompanion() || inc.UserSpace == nil {
		return nil
	}
	if r == nil {
		r = NewRules(nil)
	}
	var out []Earlier
	tried := 0
	for i := range inc.Threads {
		t := &inc.Threads[i]
		if len(out) == maxRaising || tried == maxRaisingTry {
			break
		}
		if !t.Raising() {
			continue
		}
		tried++
		j := &judge{inc: inc, thread: t, frames: t.User.Frames, mem: inc.UserSpace, arch: t.User.Registers.Arch, rules: r, v: &Verdict{}}
		for _, x := range j.mem.Raised(t) {
			if !x.Live {
				continue
			}
			e := Earlier{Raised: x, By: j.raiserBelow(x.Frame)}
			if x.Code == codeCxx {
				e.Thrown = j.msvcObject(x.Parameters)
			}
			out = append(out, e)
			break
		}
	}
	return out
}
