package hang

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// Motion is what a thread did between the dumps of a series. Its text is part of
// the JSON contract.
type Motion string

// The motions.
const (
	Stuck    Motion = "stuck"    // the same stack in every dump, and no time used where times are known
	Waits    Motion = "waits"    // the same, at a wait for work
	Returned Motion = "returned" // the same stack, but it ran meanwhile
	Moved    Motion = "moved"    // another stack
	Busy     Motion = "busy"     // used half of a processor or more
	Started  Motion = "started"  // not in the first dump
	Ended    Motion = "ended"    // not in the last dump
	Unseen   Motion = "unknown"  // no stack to compare
)

// Progress is what a series of dumps shows of the process. Its text is part of
// the JSON contract.
type Progress string

// What a series can show, the gravest first.
const (
	StaysDeadlocked Progress = "deadlock" // the same threads wait for each other in every dump
	StaysHung       Progress = "hang"     // the threads that matter are stuck
	StaysBusy       Progress = "busy"     // a thread runs all the time
	Progresses      Progress = "progress" // threads moved: slow rather than hung
	StaysIdle       Progress = "idle"     // all wait for work
	NoProgressKnown Progress = "unknown"
)

// Series is what several dumps of one process, taken in a row, show together.
type Series struct {
	Incidents []*triage.Incident // by the time they were written
	Verdicts  []*Verdict
	Progress  Progress
	Subject   int // index in Threads of the thread that Progress is about, -1 none
	Threads   []SeriesThread
	// Cycle lists the ids of a deadlock that every dump shows.
	Cycle    []uint32
	Elapsed  time.Duration // from the first dump to the last, 0 when not known
	Warnings []string      // what is not certain about the series
}

// SeriesThread is one thread through a series.
type SeriesThread struct {
	ID     uint32
	Name   string
	Motion Motion
	At     []int // index in each incident's Threads, -1 where it is not
	// CPU is the time used from the first to the last dump that have it, when
	// HasCPU; Share the part of one processor that this is.
	CPU    time.Duration
	HasCPU bool
	Share  float64
	// Common is how many outermost frames all dumps share: what is behind them
	// is where the thread moves.
	Common int
}

// NewSeries compares dumps of one process. They are put in the order in which
// they were written. An error means that they are not of one process, or fewer
// than two. r may be nil for the built-in rules.
func NewSeries(incidents []*triage.Incident, r *Rules) (*Series, error) {
	if len(incidents) < 2 {
		return nil, dump.Errorf(dump.Mismatch, "", "one dump alone cannot be compared")
	}
	s := &Series{Incidents: slices.Clone(incidents), Subject: -1}
	if err := s.sameProcess(); err != nil {
		return nil, err
	}
	s.order()
	for _, inc := range s.Incidents {
		s.Verdicts = append(s.Verdicts, Of(inc, r))
	}
	s.follow()
	s.commonCycle()
	s.judge()
	return s, nil
}

func pathOf(inc *triage.Incident) string {
	if len(inc.Inputs) == 0 {
		return "a dump"
	}
	return inc.Inputs[0].Path
}

// sameProcess checks by id and time of creation that all are of one process.
func (s *Series) sameProcess() error {
	first := &s.Incidents[0].Process
	created := true
	for _, inc := range s.Incidents[1:] {
		p := &inc.Process
		differ := func(what string) error {
			return &dump.Error{Code: dump.Mismatch, File: pathOf(inc), Offset: -1, Size: -1,
				Msg: fmt.Sprintf("this dump and %s are of different processes: %s", pathOf(s.Incidents[0]), what)}
		}
		switch {
		case s.Incidents[0].System.Arch != inc.System.Arch:
			return differ("their architectures differ")
		case p.HasPID && first.HasPID && p.PID != first.PID:
			return differ(fmt.Sprintf("%d and %d", p.PID, first.PID))
		case !p.Created.IsZero() && !first.Created.IsZero() && !p.Created.Equal(first.Created):
			return differ("one was created later than the other")
		}
		created = created && p.HasPID && first.HasPID && !p.Created.IsZero() && !first.Created.IsZero()
	}
	if !created {
		s.Warnings = append(s.Warnings, "not every dump has the process's id and time of creation: that they are of one process is taken for granted")
	}
	return nil
}

// order sorts by the time of writing, when all have one.
func (s *Series) order() {
	if slices.ContainsFunc(s.Incidents, func(inc *triage.Incident) bool { return inc.Captured.IsZero() }) {
		s.Warnings = append(s.Warnings, "not every dump says when it was written: they are taken in the order given")
		return
	}
	byTime := func(a, b *triage.Incident) int { return a.Captured.Compare(b.Captured) }
	if !slices.IsSortedFunc(s.Incidents, byTime) {
		s.Warnings = append(s.Warnings, "the dumps were put in the order in which they were written")
		slices.SortStableFunc(s.Incidents, byTime)
	}
	for k, inc := range s.Incidents[1:] {
		if inc.Captured.Equal(s.Incidents[k].Captured) {
			s.Warnings = append(s.Warnings, pathOf(s.Incidents[k])+" and "+pathOf(inc)+" were written at the same moment: nothing can have moved between them")
		}
	}
	s.Elapsed = s.Incidents[len(s.Incidents)-1].Captured.Sub(s.Incidents[0].Captured)
}

// identity is what makes threads of two dumps the same: ids are used again.
type identity struct {
	id      uint32
	created int64
}

func identityOf(t *triage.Thread) identity {
	k := identity{id: t.ID}
	if t.Times != nil && !t.Times.Created.IsZero() {
		k.created = t.Times.Created.UnixNano()
	}
	return k
}

// follow finds every thread in every dump and says what it did.
func (s *Series) follow() {
	at := map[identity]int{}
	for k, inc := range s.Incidents {
		for i := range inc.Threads {
			t := &inc.Threads[i]
			id := identityOf(t)
			n, ok := at[id]
			if !ok {
				n = len(s.Threads)
				at[id] = n
				st := SeriesThread{ID: t.ID, At: make([]int, len(s.Incidents))}
				for j := range st.At {
					st.At[j] = -1
				}
				s.Threads = append(s.Threads, st)
			}
			st := &s.Threads[n]
			if st.At[k] < 0 {
				st.At[k] = i
			}
			st.Name = cmp.Or(t.Name, st.Name)
		}
	}
	for n := range s.Threads {
		s.move(&s.Threads[n])
	}
}

// The part of a processor that makes a thread busy.
const busyShare = 0.5

// move compares a thread's stacks and times.
func (s *Series) move(st *SeriesThread) {
	first, last := st.At[0], st.At[len(st.At)-1]
	s.cpu(st)
	switch {
	case first < 0:
		st.Motion = Started
		return
	case last < 0:
		st.Motion = Ended
		return
	}
	same, known, before := true, true, -1
	for k, i := range st.At {
		if i < 0 {
			same = false
			continue
		}
		h := halfOf(&s.Incidents[k].Threads[i])
		if h == nil {
			known = false
			continue
		}
		if before < 0 {
			st.Common = len(h.Frames)
		} else if prev := halfOf(&s.Incidents[before].Threads[st.At[before]]); prev != nil {
			c := common(prev.Frames, h.Frames)
			st.Common = min(st.Common, c)
			same = same && c == len(h.Frames) && c == len(prev.Frames)
		}
		before = k
	}
	switch {
	case st.HasCPU && s.Elapsed > 0 && st.Share >= busyShare:
		st.Motion = Busy
	case !known:
		st.Motion = Unseen
	case !same:
		st.Motion = Moved
	case st.HasCPU && st.CPU > 0:
		st.Motion = Returned
	case s.class(st).Idle():
		st.Motion = Waits
	default:
		st.Motion = Stuck
	}
}

// class is a thread's class in the last dump that has it.
func (s *Series) class(st *SeriesThread) Class {
	for k, i := range slices.Backward(st.At) {
		if i >= 0 {
			return s.Verdicts[k].Waits[i].Class
		}
	}
	return ClassUnknown
}

// cpu is the time that a thread used between the dumps.
func (s *Series) cpu(st *SeriesThread) {
	from, to := -1, -1
	for k, i := range st.At {
		if i >= 0 && s.Incidents[k].Threads[i].Times != nil && !s.Incidents[k].Threads[i].Times.Created.IsZero() {
			if from < 0 {
				from = k
			}
			to = k
		}
	}
	if from == to {
		return
	}
	a, b := s.Incidents[from].Threads[st.At[from]].Times, s.Incidents[to].Threads[st.At[to]].Times
	st.CPU = b.Kernel + b.User - a.Kernel - a.User
	if st.CPU < 0 {
		st.CPU = 0
		return
	}
	st.HasCPU = true
	if d := s.Incidents[to].Captured.Sub(s.Incidents[from].Captured); d > 0 {
		st.Share = st.CPU.Seconds() / d.Seconds()
	}
}

// halfOf is the half that tells where a thread stands: of a dump pair the user
// half, since capturing changes the kernel half.
func halfOf(t *triage.Thread) *triage.Half {
	switch {
	case t.User != nil && len(t.User.Frames) > 0:
		return t.User
	case t.Kernel != nil && len(t.Kernel.Frames) > 0:
		return t.Kernel
	}
	return nil
}

// common counts the outermost frames that two stacks share: the same address at
// the same place of the stack.
func common(a, b []triage.Frame) int {
	n := 0
	for n < len(a) && n < len(b) {
		x, y := &a[len(a)-1-n], &b[len(b)-1-n]
		if x.IP != y.IP || x.SP != y.SP {
			break
		}
		n++
	}
	return n
}

// commonCycle finds a deadlock that every dump shows.
func (s *Series) commonCycle() {
	key := func(k int, cycle []int) string {
		var out []uint32
		for _, i := range cycle {
			out = append(out, s.Incidents[k].Threads[i].ID)
		}
		return fmt.Sprint(out)
	}
	later := make([]map[string]bool, len(s.Verdicts)-1) // the cycles of the dumps behind the first
	for k, v := range s.Verdicts[1:] {
		later[k] = map[string]bool{}
		for _, c := range v.Cycles {
			later[k][key(k+1, c)] = true
		}
	}
	for _, c := range s.Verdicts[0].Cycles {
		want := key(0, c)
		everywhere := !slices.ContainsFunc(later, func(m map[string]bool) bool { return !m[want] })
		if !everywhere {
			continue
		}
		for _, i := range c {
			s.Cycle = append(s.Cycle, s.Incidents[0].Threads[i].ID)
		}
		return
	}
}

// judge decides on what the series shows.
func (s *Series) judge() {
	last := len(s.Verdicts) - 1
	find := func(m Motion) int {
		return slices.IndexFunc(s.Threads, func(t SeriesThread) bool { return t.Motion == m })
	}
	switch {
	case len(s.Cycle) > 0:
		s.Progress = StaysDeadlocked
		s.Subject = slices.IndexFunc(s.Threads, func(t SeriesThread) bool { return t.ID == s.Cycle[0] })
		return
	case find(Busy) >= 0:
		s.Progress, s.Subject = StaysBusy, s.busiest()
		return
	}
	// The thread that the last dump's verdict is about, else its main thread.
	subject := s.Verdicts[last].Subject
	if subject >= 0 {
		s.Subject = slices.IndexFunc(s.Threads, func(t SeriesThread) bool { return t.At[last] == subject })
	}
	switch {
	case s.Subject >= 0 && s.Threads[s.Subject].Motion == Stuck:
		s.Progress = StaysHung
	case find(Moved) >= 0 || find(Returned) >= 0 || find(Started) >= 0 || find(Ended) >= 0:
		s.Progress = Progresses
	case find(Stuck) >= 0:
		s.Progress, s.Subject = StaysHung, find(Stuck)
	case find(Waits) >= 0:
		s.Progress, s.Subject = StaysIdle, -1
	default:
		s.Progress, s.Subject = NoProgressKnown, -1
	}
}

func (s *Series) busiest() int {
	best := -1
	for n := range s.Threads {
		if t := &s.Threads[n]; t.Motion == Busy && (best < 0 || t.Share > s.Threads[best].Share) {
			best = n
		}
	}
	return best
}
