package hang

import (
	"fmt"
	"slices"
)

// Progress is what a series of dumps shows of the process. Its text is part of
// the JSON contract.
type Progress string

// What a series can show, the gravest first.
const (
	StaysDeadlocked Progress = "deadlock" // the same threads wait for each other in every dump
	StaysHung       Progress = "hang"     // the threads that matter are stuck
	AfterCrash      Progress = "crash"    // dumps of a crash, which are no dumps of a hang
	StaysBusy       Progress = "busy"     // a thread runs all the time
	Progresses      Progress = "progress" // threads moved: slow rather than hung
	StaysIdle       Progress = "idle"     // all wait for work
	NoProgressKnown Progress = "unknown"
)

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
	case len(s.Crashes) > 0:
		s.Progress = AfterCrash
		k := s.Crashes[len(s.Crashes)-1]
		if i := s.Incidents[k].Crashing; i >= 0 {
			s.Subject = slices.IndexFunc(s.Threads, func(t SeriesThread) bool { return t.At[k] == i })
		}
		return
	case s.SameMoment:
		s.Progress = NoProgressKnown
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
	stuck := s.Subject >= 0 && s.Threads[s.Subject].Motion == Stuck
	switch {
	case stuck && s.Verdicts[last].Hangs():
		s.Progress = StaysHung
	case find(Moved) >= 0 || find(Returned) >= 0 || find(Started) >= 0 || find(Ended) >= 0:
		// A thread that waits for as long as the others work is as it should be.
		s.Progress = Progresses
	case stuck:
		s.Progress = StaysHung
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
