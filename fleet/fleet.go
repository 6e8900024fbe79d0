// Package fleet triages many dumps: it finds them, pairs the halves of one
// incident, runs them through workers each apart from the others, and hands on
// one JSON line a dump in the order of the input, whatever the workers did
// first.
//
// Dumps are not trusted. A dump that makes a worker panic gives an ERROR record
// and the others go on; where limits of time or memory are asked for, workers
// are processes that can be ended.
package fleet

import (
	"context"
	"sync"
)

// Job is one incident to triage: a user dump, a kernel dump, or both.
type Job struct {
	Index  int // place in the input, from 0
	Path   string
	Kernel string // the kernel dump of a pair, "" none
}

// Queue hands out jobs. Its methods may be called by several goroutines. An
// answer of several machines' is an implementation that shares one.
type Queue interface {
	// Take returns the next job; false when there will be none.
	Take(ctx context.Context) (Job, bool)
	// Finish says that a job's record is written where it is kept.
	Finish(Job)
}

// Memory is a Queue in this process.
type Memory struct {
	mu   sync.Mutex
	jobs []Job
}

// NewMemory returns a queue of jobs.
func NewMemory(jobs []Job) *Memory { return &Memory{jobs: jobs} }

// Take implements Queue.
func (m *Memory) Take(ctx context.Context) (Job, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.jobs) == 0 || ctx.Err() != nil {
		return Job{}, false
	}
	j := m.jobs[0]
	m.jobs = m.jobs[1:]
	return j, true
}

// Finish implements Queue. What is lost with this process is found again by
// Resume.
func (m *Memory) Finish(Job) {}

// Shard is the part of the input that one of several runs does: every job whose
// place leaves the rest Number-1 when divided by Of.
type Shard struct{ Number, Of int }

// Take reports whether a place in the input is this shard's.
func (s Shard) Take(index int) bool { return s.Of <= 1 || index%s.Of == s.Number-1 }
