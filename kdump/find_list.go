package kdump

import (
	"dumptriage/dump"
)

// Bounds of the lists that are walked. Ids are indexes into one table of at most
// 2^24 handles, four apart; no real system comes near these.
const (
	maxProcesses = 1 << 16
	maxThreads   = 1 << 20 // of the whole system
	maxLoaded    = 1 << 14 // modules
)

// Page tables can show one page of a file at any number of addresses, and many
// lists can lead into the same entries, so each walk's own bound does not bound
// their sum. A dump has a number of steps to spend: an entry takes one, a module
// more, since its headers and names are read. Real structures take far more of
// the file than a step's worth. The most is what 5,000 processes with 180 modules
// each take: a large terminal server.
const (
	leastSteps   = 1 << 14
	mostSteps    = 1 << 24
	bytesPerStep = 0x100
	moduleSteps  = 16
)

// spend takes steps and reports whether there were so many left. That there are
// none is said once.
func (f *File) spend(n int64) bool {
	limit := min(mostSteps, leastSteps+f.size/bytesPerStep)
	if f.full == nil || f.full.steps.Add(n) <= limit {
		return true
	}
	if !f.full.spent.Swap(true) {
		f.damage(dump.Errorf(dump.Limit, "lists", "the kernel's lists have more entries in sum than a dump of this size can hold without overlap: the rest is left out"))
	}
	return false
}

// mostProcesses bounds processes by what each takes of the file: a page at
// least, its top page table.
func (f *File) mostProcesses() int {
	const few = 64
	return int(min(maxProcesses, few+f.size/pageSize))
}

// listWalk is what a walk along a LIST_ENTRY list found.
type listWalk struct {
	entries []uint64 // addresses of the entries, the head left out
	err     *dump.Error
}

// walkList follows a doubly linked list from its head. Where it breaks off, the
// rest is fetched from the other end. It stops at most entries, and at the first
// entry that it meets again.
func (f *File) walkList(m dump.Memory, head uint64, most int, what string) listWalk {
	return f.walkListOf(m, f.hdr.ptr, head, most, what)
}

func (f *File) walkListOf(m dump.Memory, ptr int, head uint64, most int, what string) listWalk {
	var w listWalk
	arch := dump.AMD64
	if ptr == 4 {
		arch = dump.X86
	}
	if head == 0 {
		return w
	}
	seen := map[uint64]bool{head: true}
	follow := func(field uint64) (out []uint64, code dump.Code) {
		for at := head; ; {
			next, err := dump.ReadPointer(m, arch, at+field)
			switch {
			case err != nil || next == 0:
				return out, dump.OutOfRange
			case next == head:
				return out, ""
			case seen[next]:
				return out, dump.Cycle
			case len(w.entries)+len(out) >= most || !f.spend(1):
				return out, dump.Limit
			}
			seen[next] = true
			out = append(out, next)
			at = next
		}
	}
	var code dump.Code
	w.entries, code = follow(0)
	switch code {
	case "":
		return w
	case dump.Limit:
		if len(w.entries) < most { // steps ran out, which spend said
			return w
		}
		w.err = dump.Errorf(code, what, "more than %d entries in the list at %#x: the rest is left out", most, head)
		return w
	case dump.Cycle:
		w.err = dump.Errorf(code, what, "the list at %#x returns to one of its own entries after %d", head, len(w.entries))
	default:
		w.err = dump.Errorf(code, what, "the list at %#x breaks off after %d entries", head, len(w.entries))
	}
	forward := len(w.entries)
	back, _ := follow(uint64(ptr))
	for i := len(back) - 1; i >= 0; i-- {
		w.entries = append(w.entries, back[i])
	}
	if len(back) > 0 {
		w.err.Msg += " from the front; " + plainCount(len(back)) + " more were reached from its end"
	} else if forward == 0 {
		w.err.Msg += ", from either end"
	}
	return w
}

// offsetFrom returns the addresses of the structures in which the entries lie.
func offsetFrom(entries []uint64, field int) []uint64 {
	out := make([]uint64, len(entries))
	for i, e := range entries {
		out[i] = e - uint64(field)
	}
	return out
}
