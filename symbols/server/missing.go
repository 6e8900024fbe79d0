package server

import (
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// maxMissing bounds the addresses that are remembered.
const maxMissing = 1 << 16

// missing remembers which addresses a server answered that it has nothing for, and
// makes those who ask for one address at once wait for the first of them. It is in
// memory alone: on disk, next to files that many processes share, an answer that was
// true once would hide what has been published since.
type missing struct {
	age time.Duration

	mu     sync.Mutex
	since  map[string]time.Time
	asking map[string]chan struct{} // closed when the answer is there
}

// ask returns the remembered answer, or nil and what the caller must call with the
// server's own.
func (m *missing) ask(address string) (answered func(lacks bool), err error) {
	for {
		m.mu.Lock()
		if at, ok := m.since[address]; ok && time.Since(at) < m.age {
			m.mu.Unlock()
			return nil, fmt.Errorf("not asked again: %w", fs.ErrNotExist)
		}
		other, busy := m.asking[address]
		if !busy {
			done := make(chan struct{})
			m.asking[address] = done
			m.mu.Unlock()
			return func(lacks bool) { m.answer(address, done, lacks) }, nil
		}
		m.mu.Unlock()
		<-other
	}
}

func (m *missing) answer(address string, done chan struct{}, lacks bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lacks {
		if len(m.since) >= maxMissing {
			clear(m.since)
		}
		m.since[address] = time.Now()
	}
	delete(m.asking, address)
	close(done)
}
