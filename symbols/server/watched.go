package server

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// watched is a file that a body is written to. It has a limit, and counts.
type watched struct {
	to  io.Writer
	max int64
	n   atomic.Int64
	err error // why writing ended, nil when it was the body that did
}

func (w *watched) Write(p []byte) (int, error) {
	if w.n.Load()+int64(len(p)) > w.max {
		w.err = tooLarge(w.max)
		return 0, w.err
	}
	n, err := w.to.Write(p)
	w.n.Add(int64(n))
	if err != nil {
		w.err = err
	}
	return n, err
}

// watch cancels a transfer that makes no progress in a period: a server may send
// a byte now and then for ever.
func (w *watched) watch(period time.Duration, done <-chan struct{}, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last := int64(0)
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if n := w.n.Load(); n-last < StallBytes {
				cancel(&failure{err: fmt.Errorf("the answer is too slow: %d bytes in %v", n-last, period), down: true})
				return
			} else {
				last = n
			}
		}
	}
}
