package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
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
	// Crashes are the dumps that were written for a crash, by index in Incidents.
	Crashes []int
	// SameMoment is set when all dumps show one moment: nothing can be told from them.
	SameMoment bool
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
	s.crashes()
	s.follow()
	s.moments()
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
		case !sameName(p.Name, first.Name):
			return differ(fmt.Sprintf("%s and %s", p.Name, first.Name))
		}
		created = created && p.HasPID && first.HasPID && !p.Created.IsZero() && !first.Created.IsZero()
	}
	if !created {
		s.Warnings = append(s.Warnings, "not every dump has the process's id and time of creation: that they are of one process is taken for granted")
	}
	return nil
}

// sameName reports whether two names of processes can be of one: either may be
// unknown, or cut.
func sameName(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == "" || strings.EqualFold(a, b) || len(a) >= triage.StoredName && strings.EqualFold(a, b[:len(a)])
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

// crashes finds the dumps that were written for a crash, not to see what the
// process does.
func (s *Series) crashes() {
	for k, inc := range s.Incidents {
		fault := inc.Crash != nil && !breakpoint(inc.Crash.Code) && !asked(inc.Crash.Code)
		stop := inc.BugCheck != nil && !inc.BugCheck.Live && codes.BugCheckTextOf(inc.BugCheck.Code, inc.BugCheck.Parameters[0]).Class != codes.ClassRequested
		if fault || stop {
			s.Crashes = append(s.Crashes, k)
		}
	}
}

// moments says which dumps show the same moment, in which nothing can have moved.
// Minidumps tell the time to the second only.
func (s *Series) moments() {
	s.SameMoment = true
	moved := slices.ContainsFunc(s.Threads, func(t SeriesThread) bool { return !t.still() })
	for k, inc := range s.Incidents[1:] {
		before := s.Incidents[k]
		pair := pathOf(before) + " and " + pathOf(inc)
		switch {
		case sameFile(before, inc):
			s.Warnings = append(s.Warnings, pair+" are the same dump")
		case inc.Captured.IsZero() || !inc.Captured.Equal(before.Captured):
			s.SameMoment = false
		case moved:
			s.Warnings = append(s.Warnings, pair+" were written within the same second")
			s.SameMoment = false
		default:
			s.Warnings = append(s.Warnings, pair+" were written at the same moment: nothing can have moved between them")
		}
	}
	for n := range s.Threads {
		if t := &s.Threads[n]; s.SameMoment && t.still() {
			t.Motion = Unseen
		}
	}
}

func sameFile(a, b *triage.Incident) bool {
	return len(a.Inputs) > 0 && len(a.Inputs) == len(b.Inputs) && slices.EqualFunc(a.Inputs, b.Inputs, func(x, y triage.Input) bool {
		return x.SHA256 != "" && x.SHA256 == y.SHA256
	})
}
