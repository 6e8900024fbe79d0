package symbols

import "dumptriage/dump"

// memory is what a store that remembers has found. It is as large as what the
// store has open, and as the number of modules that were searched in vain.
type memory struct {
	images map[imageKey]foundImage
	debug  map[debugKey]found
}

type imageKey struct {
	name            string
	size            uint64
	stamp, checkSum uint32
}

type debugKey struct {
	cv    dump.CodeView
	image string
}

// rememberImage makes the store answer a question that it was asked before without
// looking again. What was not there then is not found later either.
func (s *Store) rememberImage(m *dump.Module, look func() foundImage) foundImage {
	if s.memory == nil {
		return look()
	}
	key := imageKey{m.Path, m.Size, m.TimeDateStamp, m.CheckSum}
	f, ok := s.memory.images[key]
	if !ok {
		f = look()
		s.memory.images[key] = f
	}
	if f.missing != nil { // the caller's to change
		miss := *f.missing
		miss.Module = m
		f.missing = &miss
	}
	return f
}

// rememberDebug is the same for debug information. Such as turned out damaged is
// opened again: its damage is told once, to whom it concerns.
func (s *Store) rememberDebug(cv dump.CodeView, image string, look func() found) found {
	if s.memory == nil {
		return look()
	}
	key := debugKey{cv, image}
	f, ok := s.memory.debug[key]
	if !ok || f.debug != nil && len(f.debug.Damage()) > 0 {
		f = look()
		s.memory.debug[key] = f
	}
	return f
}

// Opened returns how many files the store holds open.
func (s *Store) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
