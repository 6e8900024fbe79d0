package triage

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// Group is threads whose stacks are the same, frame by frame.
type Group struct {
	ID      string // of the stack, the same wherever the process's modules are loaded
	Threads []int  // indices in Incident.Threads
}

// Groups returns the threads grouped by equal stacks in all their halves,
// leaving out the frames of the dump's writer. Most threads first; equal sizes
// in the order of their first thread.
func (inc *Incident) Groups() []Group {
	var groups []Group
	index := map[string]int{}
	for i := range inc.Threads {
		id := stackID(&inc.Threads[i])
		at, ok := index[id]
		if !ok {
			at = len(groups)
			index[id] = at
			groups = append(groups, Group{ID: id})
		}
		groups[at].Threads = append(groups[at].Threads, i)
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(len(b.Threads), len(a.Threads)) })
	return groups
}

// stackID hashes a stack. Frames in modules count by name and offset, so that
// the id is the same in another process; those outside by address.
func stackID(t *Thread) string {
	h := sha256.New()
	hashHalf(h, 'k', t.Kernel)
	hashHalf(h, 'w', t.Wow64)
	hashHalf(h, 'u', t.User)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashHalf(h hash.Hash, kind byte, half *Half) {
	if half == nil {
		return
	}
	buf := make([]byte, 0, 128)
	for i := range half.Frames {
		f := &half.Frames[i]
		if f.Capture {
			continue
		}
		at := f.IP
		buf = append(buf[:0], kind)
		if f.Module != nil && f.Module.Module != nil {
			buf = append(append(buf, strings.ToLower(f.Module.Name())...), '+')
			at -= f.Module.Base
		}
		h.Write(binary.LittleEndian.AppendUint64(buf, at))
	}
}
