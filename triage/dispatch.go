package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// dispatchers are the functions of ntdll that the system enters user code
// through, by their exported names.
type dispatchers struct {
	module *Module // the ntdll they were looked for in
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
	m := s.find(va)
	if m == nil || s.arch != dump.AMD64 || !strings.EqualFold(m.Name(), "ntdll.dll") {
		return unwind.NoDispatcher
	}
	d := &s.entries
	if d.module != m {
		*d = dispatchers{module: m}
		if im := s.imageOf(m); im != nil {
			d.find(im, m.Base)
		}
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
