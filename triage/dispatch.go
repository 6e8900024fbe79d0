package triage

import (
	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// dispatchers are the functions of ntdll that the system enters user code
// through, by their exported names.
type dispatchers struct {
	looked bool
	module *Module // the ntdll that has them
	ranges []dispatcherRange
}

type dispatcherRange struct {
	begin, end uint64
	kind       unwind.Dispatcher
}

var dispatcherExports = []struct {
	name string
	kind unwind.Dispatcher
}{
	{"KiUserExceptionDispatcher", unwind.ExceptionDispatcher},
	{"KiUserApcDispatcher", unwind.APCDispatcher},
}

// Dispatcher implements unwind.DispatcherSpace.
func (s *space) Dispatcher(va uint64) unwind.Dispatcher {
	d := &s.entries
	if !d.looked {
		d.looked = true
		if m, im := s.ntdll(); im != nil && s.arch == dump.AMD64 {
			d.module = m
			d.find(im, m.Base)
		}
	}
	if m := s.find(va); m == nil || m != d.module {
		return unwind.NoDispatcher
	}
	for _, r := range d.ranges {
		if va >= r.begin && va < r.end {
			return r.kind
		}
	}
	return unwind.NoDispatcher
}

func (d *dispatchers) find(im *pdata.Image, base uint64) {
	for _, e := range dispatcherExports {
		rva, ok := exportRVA(im, e.name)
		if !ok {
			continue
		}
		if rf, ok, err := im.Lookup(rva); ok && err == nil {
			d.ranges = append(d.ranges, dispatcherRange{base + uint64(rf.Begin), base + uint64(rf.End), e.kind})
		}
	}
}
