package fleet

import (
	"context"
	"sync"
)

// Worker does jobs one after the other. There always is a record, unless the
// context is over.
type Worker interface {
	Do(ctx context.Context, j Job) Record
	Close() error
}

// Config says how a batch is run.
type Config struct {
	Queue   Queue
	Workers int // at least 1
	New     func() (Worker, error)
	// Skip reports whether a job has been done before; its answer may cost the
	// reading of the files, so it is asked by the workers.
	Skip func(Job) bool
	// Emit gets the records in the order in which the queue gave the jobs, one at
	// a time. An error ends the batch.
	Emit func(Record) error
}

// window is how many jobs a worker may be ahead of the slowest: records wait in
// memory for those before them.
const window = 8

// batch is a run in progress.
type batch struct {
	Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	ahead  chan struct{} // a token for each job that was taken and is not emitted
	done   chan numbered
	mu     sync.Mutex // held while a job is taken and numbered
	taken  int
}

// numbered is a record, or the lack of one, with the job's place in the queue.
type numbered struct {
	n       int
	record  Record
	skipped bool
}

// Run works through a queue. The error is the first of making a worker, of Emit,
// or of the context.
func Run(ctx context.Context, c Config) error {
	c.Workers = max(c.Workers, 1)
	b := &batch{Config: c, ahead: make(chan struct{}, c.Workers*window), done: make(chan numbered)}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	defer b.cancel(nil)
	var wg sync.WaitGroup
	for range c.Workers {
		wg.Go(b.work)
	}
	go func() {
		wg.Wait()
		close(b.done)
	}()
	waiting := map[int]numbered{}
	next := 0
	for r := range b.done {
		waiting[r.n] = r
		for {
			r, ok := waiting[next]
			if !ok {
				break
			}
			delete(waiting, next)
			next++
			b.emit(r)
			<-b.ahead
		}
	}
	return context.Cause(b.ctx)
}

func (b *batch) emit(r numbered) {
	if b.ctx.Err() != nil || r.skipped {
		return
	}
	if err := b.Emit(r.record); err != nil {
		b.cancel(err)
		return
	}
	b.Queue.Finish(r.record.Job)
}

func (b *batch) work() {
	w, err := b.New()
	if err != nil {
		b.cancel(err)
		return
	}
	defer w.Close()
	for {
		select {
		case b.ahead <- struct{}{}:
		case <-b.ctx.Done():
			return
		}
		j, n, ok := b.take()
		if !ok {
			return
		}
		r := numbered{n: n}
		if r.skipped = b.Skip != nil && b.Skip(j); !r.skipped {
			r.record = w.Do(b.ctx, j)
		}
		b.done <- r
	}
}

func (b *batch) take() (Job, int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j, ok := b.Queue.Take(b.ctx)
	if ok {
		b.taken++
	}
	return j, b.taken - 1, ok
}
