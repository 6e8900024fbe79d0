package signature

import (
	"slices"
	"strings"

	"dumptriage/triage"
)

// maxNodes is how many threads of a chain a text names.
const maxNodes = 6

// ofHang names a hang by what each thread of the chain was doing, so that two
// programs that hang, or two places of one, are told apart. A cycle begins where
// its text sorts first, since any of its threads may be found first.
func ofHang(inc *triage.Incident, h *Hang, r *Rules) *Signature {
	s := &Signature{Kind: KindHang, Class: "HANG_" + strings.ToUpper(strings.Map(wordOnly, h.Class)), Thread: -1}
	type node struct {
		thread     int
		parts, app []string
		stack      *stack
	}
	var nodes []node
	for _, t := range h.Threads[:min(len(h.Threads), maxNodes)] {
		if t < 0 || t >= len(inc.Threads) {
			continue
		}
		st := newStack(inc, t, false, r)
		st.classify(r, false, true)
		nodes = append(nodes, node{t, st.parts(), st.application(r), st})
	}
	if h.Cycle {
		nodes = leastFirst(nodes, func(n node) []string { return n.parts })
	}
	var app, invariant []string
	var addresses []uint64
	for i, n := range nodes {
		if i == 0 {
			s.Thread = n.thread
		} else {
			s.Stack, invariant = append(s.Stack, waitsFor), append(invariant, waitsFor)
			s.Frames = append(s.Frames, waitsFor)
		}
		if len(n.parts) == 0 {
			s.Frames = append(s.Frames, noFrames)
		}
		s.Frames = append(s.Frames, n.parts...)
		s.Stack, invariant = append(s.Stack, n.stack.exact()...), append(invariant, n.stack.invariant()...)
		s.Steps = append(s.Steps, n.stack.steps...)
		app = append(app, n.app...)
		addresses = append(addresses, n.stack.addresses...)
	}
	s.RTLSum, s.CRC32 = AddressHashes(addresses)
	s.finish(app, invariant, emptyName(inc))
	return s
}

// waitsFor stands between two threads of a chain.
const waitsFor = "waits for"

// noFrames stands for the frames of a thread that has none to offer.
const noFrames = "no usable frames"

// wordOnly makes a class one word.
func wordOnly(c rune) rune {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return c
	}
	return '_'
}

// leastFirst rotates a ring so that it begins where its names sort first.
func leastFirst[T any](ring []T, names func(T) []string) []T {
	best, bestNames := ring, []string(nil)
	for i := range ring {
		r := slices.Concat(ring[i:], ring[:i])
		var all []string
		for _, n := range r {
			all = append(all, names(n)...)
		}
		if bestNames == nil || slices.Compare(all, bestNames) < 0 {
			best, bestNames = r, all
		}
	}
	return best
}
