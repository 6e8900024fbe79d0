package kdump

import (
	"sync"

	"dumptriage/dump"
)

// vad is a virtual address descriptor: a range of pages that a process reserved
// or mapped at once.
type vad struct {
	va          uint64 // of the MMVAD
	first, last uint64 // pages
	left, right uint64
	flags       uint64
	kind        int
	private     bool
	committed   bool
	anyBytes    bool // a page that nobody touched may hold anything
	protect     uint32
	commit      uint64 // pages charged
	hasCommit   bool

	// Of a view of a section, 0 when not known.
	subsection, firstPTE, lastPTE uint64
}

// vadTree finds descriptors in a process's tree, which lies in kernel memory that
// is never paged. It is safe for concurrent use.
type vadTree struct {
	f    *File
	mem  dump.Memory // of the kernel
	form *vadForm    // nil: nothing is known of the tree
	why  *dump.Error // when it is
	top  uint64

	mu      sync.Mutex
	known   vad       // found last
	gap     [2]uint64 // first and last page of the hole that was found last; empty when it is {1, 0}
	bit     int       // of PrivateMemory, once it is known
	bitOnce sync.Once
}

// newVADTree returns the tree of the process at va.
func (f *File) newVADTree(process uint64) *vadTree {
	t := &vadTree{f: f, mem: f.full.system, known: vad{first: 1}, gap: [2]uint64{1, 0}}
	row, form := f.vads(), f.vadForm()
	if process == 0 || row.root == 0 || form == nil {
		t.why = dump.Errorf(dump.UnsupportedFormat, vadStream, "how this kernel describes the memory of its processes is in no table: what they mapped cannot be listed")
		return t
	}
	top, err := dump.ReadPointer(t.mem, f.hdr.arch, process+uint64(row.root+form.root))
	if err != nil || top != 0 && !kernelAddress(f.hdr.ptr, top) {
		t.why = dump.Errorf(dump.OutOfRange, vadStream, "the tree of the process at %#x does not begin at an address of the kernel that is in the dump: what it mapped cannot be listed", process)
		return t
	}
	t.form, t.top = form, top
	return t
}

// node reads a descriptor. ok is false when it is not in the dump or is none.
func (t *vadTree) node(va uint64) (v vad, ok bool) {
	fm := t.form
	r := t.record(va, fm.size)
	if r == nil {
		return v, false
	}
	v.va = va
	v.first, _ = r.uint(fm.first, fm.number)
	v.last, _ = r.uint(fm.last, fm.number)
	if high, ok := r.uint(fm.firstHigh, 1); ok {
		v.first |= high << 32
	}
	if high, ok := r.uint(fm.lastHigh, 1); ok {
		v.last |= high << 32
	}
	v.left, _ = r.raw(fm.left, r.ptr)
	v.right, _ = r.raw(fm.right, r.ptr)
	for _, child := range []uint64{v.left, v.right} {
		if child != 0 && !kernelAddress(r.ptr, child) {
			return v, false
		}
	}
	v.flags, _ = r.uint(fm.flags, fm.flagsSize)
	v.kind = int(v.flags >> fm.kind & 7)
	v.protect = pageProtection(v.flags >> fm.protect & 0x1f)
	t.charge(&v, r)
	return v, v.first <= v.last && v.last < 1<<(64-pageShift)
}

// charge reads how much is committed. All ones say that there is no limit, so
// that nothing is charged.
func (t *vadTree) charge(v *vad, r *record) {
	fm := t.form
	size := 4
	if fm.chargeBits > 32 {
		size = 8
	}
	mask := uint64(1)<<fm.chargeBits - 1
	n, ok := r.uint(fm.charge, size)
	n &= mask
	most := n == mask
	if high, ok := r.uint(fm.chargeHigh, 1); ok {
		n |= high << fm.chargeBits
		most = most && high == 0xff
	}
	if ok && !most {
		v.commit, v.hasCommit = n, true
	}
	word, _ := r.uint(fm.commit, 4)
	v.committed = word>>fm.commitBit&1 != 0
}

func (t *vadTree) record(va uint64, size int) *record {
	b := make([]byte, size)
	if _, err := t.mem.ReadAt(b, va); err != nil {
		return nil
	}
	return &record{va: va, off: -1, b: b, ptr: t.f.hdr.ptr}
}

// finish adds what takes more reads: whether the memory is private, and of which
// section it is a view.
func (t *vadTree) finish(v *vad) {
	fm := t.form
	if bit := t.privateBit(); bit >= 0 {
		v.private = v.flags>>bit&1 != 0
		v.anyBytes = fm.optional != 0 && v.flags>>(bit+fm.optional)&1 != 0
	}
	if v.private {
		return
	}
	v.committed = false // the flag may be another's
	n := t.f.hdr.ptr
	r := t.record(v.va, fm.lastPTE+n)
	if r == nil {
		return
	}
	v.subsection = t.f.kernelPointer(r, fm.subsection)
	v.firstPTE, v.lastPTE = t.f.kernelPointer(r, fm.firstPTE), t.f.kernelPointer(r, fm.lastPTE)
}

// privateBit returns the bit of PrivateMemory. Where it is one of two, nearly all
// private memory has pages of the usual size, so that the bit below it is clear.
func (t *vadTree) privateBit() int {
	if t.form.private >= 0 {
		return t.form.private
	}
	t.bitOnce.Do(func() {
		const lower, upper = 20, 21
		votes := [2]int{}
		t.walk(func(v *vad) bool {
			switch v.flags >> lower & 3 {
			case 1:
				votes[0]++
			case 2:
				votes[1]++
			}
			return true
		})
		t.bit = -1
		switch {
		case votes[0] > votes[1]:
			t.bit = lower
		case votes[1] > votes[0]:
			t.bit = upper
		}
	})
	return t.bit
}

// maxVADDepth bounds a path from the top: trees are balanced, so that 64 levels
// have more nodes than memory has room for.
const maxVADDepth = 64

// find returns the descriptor of a page, nil when there is none. known is false
// when the tree cannot tell.
func (t *vadTree) find(page uint64) (v *vad, known bool) {
	if t == nil || t.form == nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if page >= t.known.first && page <= t.known.last {
		found := t.known
		return &found, true
	}
	if page >= t.gap[0] && page <= t.gap[1] {
		return nil, true
	}
	low, high := uint64(0), uint64(1)<<(64-pageShift)-1
	for at, depth := t.top, 0; at != 0; depth++ {
		n, ok := t.node(at)
		if !ok || depth >= maxVADDepth || n.first < low || n.last > high {
			return nil, false
		}
		switch {
		case page < n.first:
			at, high = n.left, n.first-1
		case page > n.last:
			at, low = n.right, n.last+1
		default:
			t.finish(&n)
			t.known = n
			found := n
			return &found, true
		}
	}
	t.gap = [2]uint64{low, high}
	return nil, true
}

// vadStep is a node on the way down, and the pages that its place leaves it.
type vadStep struct {
	at, low, high uint64
	depth         int
}

const vadStream = "VADs"

// walk calls fn with the descriptors in the order of their addresses until it
// returns false. What is wrong with the tree is returned: descriptors that lead
// back up, overlap or are not in the dump are left out with what hangs below them.
func (t *vadTree) walk(fn func(v *vad) bool) *dump.Error {
	var err *dump.Error
	note := func(code dump.Code, format string, args ...any) {
		if err == nil {
			err = dump.Errorf(code, vadStream, format, args...)
		}
	}
	type open struct {
		v     vad
		high  uint64
		depth int
	}
	var path []open
	next := vadStep{t.top, 0, 1<<(64-pageShift) - 1, 0}
	for {
		for next.at != 0 {
			if !t.f.spend(1) {
				return err // which spend said
			}
			n, ok := t.node(next.at)
			switch {
			case next.depth >= maxVADDepth:
				note(dump.Limit, "the tree at %#x is deeper than %d levels: the rest is left out", t.top, maxVADDepth)
			case !ok:
				note(dump.OutOfRange, "no descriptor can be read at %#x: what hangs below it is left out", next.at)
			case n.first < next.low || n.last > next.high:
				note(dump.BadRecord, "the descriptor at %#x has pages %#x to %#x, which its place in the tree does not leave it", next.at, n.first, n.last)
			default:
				path = append(path, open{n, next.high, next.depth})
				if next = (vadStep{n.left, next.low, n.first - 1, next.depth + 1}); n.first == 0 {
					next.at = 0 // nothing is below the first page
				}
				continue
			}
			next.at = 0
		}
		if len(path) == 0 {
			return err
		}
		o := path[len(path)-1]
		path = path[:len(path)-1]
		if !fn(&o.v) {
			return err
		}
		next = vadStep{o.v.right, o.v.last + 1, o.high, o.depth + 1}
	}
}
