package scrub

import (
	"cmp"
	"slices"

	"dumptriage/dump"
	"dumptriage/minidump"
)

// pageSize is the unit in which used bytes are counted.
const pageSize = 4096

const (
	smallestRecord = 64
	maxRecords     = 1 << 16
)

// pageUse has a bit for each byte of a page.
type pageUse [pageSize / 64]uint64

// recorder is a memory that remembers which of its bytes were used.
type recorder struct {
	mem  dump.Memory
	used map[uint64]*pageUse // by page number
	// records are what was read at once and is larger than a few words, such as saved
	// registers; ascending when frozen.
	records []span

	folders map[uint64]int // bytes of folders in UTF-16, by where a path begins

	frozen bool // what is used is not counted any more
	paused bool // not now
}

var _ dump.PathWatcher = (*recorder)(nil)

func newRecorder(mem dump.Memory) *recorder {
	return &recorder{mem: mem, used: map[uint64]*pageUse{}, folders: map[uint64]int{}}
}

// ReadAt implements dump.Memory.
func (r *recorder) ReadAt(p []byte, va uint64) (int, error) {
	n, err := r.mem.ReadAt(p, va)
	r.Used(va, n)
	if n >= smallestRecord && len(r.records) < maxRecords && !r.frozen && !r.paused {
		r.records = append(r.records, span{va, va + uint64(n)})
	}
	return n, err
}

// ReadAhead implements dump.Watcher.
func (r *recorder) ReadAhead(p []byte, va uint64) (int, error) { return r.mem.ReadAt(p, va) }

// Watcher implements dump.Watched.
func (r *recorder) Watcher() dump.Watcher { return r }

// Used implements dump.Watcher.
func (r *recorder) Used(va uint64, n int) {
	for n > 0 && !r.frozen && !r.paused {
		page := r.used[va/pageSize]
		if page == nil {
			page = &pageUse{}
			r.used[va/pageSize] = page
		}
		off := int(va % pageSize)
		k := min(n, pageSize-off)
		page.mark(off, k)
		va, n = va+uint64(k), n-k
	}
}

// Folders implements dump.PathWatcher.
func (r *recorder) Folders(va uint64, n int) {
	if !r.frozen && !r.paused {
		r.folders[va] = max(r.folders[va], n)
	}
}

// freeze ends the recording; records are then ascending.
func (r *recorder) freeze() {
	r.frozen = true
	slices.SortFunc(r.records, func(a, b span) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	r.records = slices.Compact(r.records)
}

// mark sets n bits from bit off on.
func (p *pageUse) mark(off, n int) {
	for n > 0 {
		bit := off % 64
		k := min(n, 64-bit)
		p[off/64] |= (^uint64(0) >> (64 - k)) << bit
		off, n = off+k, n-k
	}
}

// all reports whether every bit from off on was set.
func (p *pageUse) all(off, n int) bool {
	for i := range n {
		if p[(off+i)/64]&(1<<((off+i)%64)) == 0 {
			return false
		}
	}
	return true
}

// recordedSource is a dump whose memory is recorded.
type recordedSource struct {
	dump.Source
	mem *recorder
}

// Memory implements dump.Source.
func (s *recordedSource) Memory() dump.Memory { return s.mem }

// recordedTables is one that lists function tables, too.
type recordedTables struct {
	*recordedSource
	tableSource
}

type tableSource interface {
	FunctionTables() ([]minidump.FunctionTable, error)
}

// watched puts a recorder between a dump and whoever reads its memory.
func watched(src dump.Source) (dump.Source, *recorder) {
	r := newRecorder(src.Memory())
	s := &recordedSource{src, r}
	if t, ok := src.(tableSource); ok {
		return recordedTables{s, t}, r
	}
	return s, r
}
