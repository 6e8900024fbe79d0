package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	"dumptriage/triage"
)

// group is a set of threads whose stacks are the same, as indexes.
type group struct {
	id      string
	members []int
}

// groupThreads puts threads together whose frames have the same addresses in
// the same order in both halves, leaving out the frames of the dump's writer.
// Most threads first; equal sizes in the order of their first thread.
func groupThreads(inc *triage.Incident) []group {
	var groups []group
	index := map[string]int{}
	for i := range inc.Threads {
		id := stackID(&inc.Threads[i])
		at, ok := index[id]
		if !ok {
			at = len(groups)
			index[id] = at
			groups = append(groups, group{id: id})
		}
		groups[at].members = append(groups[at].members, i)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.members), len(a.members)) })
	return groups
}

// stackID hashes a stack. Frames in modules count by name and offset, so that
// the id is the same in another process; those outside by address.
func stackID(t *triage.Thread) string {
	h := sha256.New()
	hashHalf(h, 'k', t.Kernel)
	hashHalf(h, 'u', t.User)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashHalf(h hash.Hash, kind byte, half *triage.Half) {
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
			buf = append(append(buf, f.Module.Name()...), '+')
			at -= f.Module.Base
		}
		h.Write(binary.LittleEndian.AppendUint64(buf, at))
	}
}
