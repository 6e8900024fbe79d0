package report

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/hang"
	"dumptriage/unwind"
)

// The owner of what a thread waits for is said though the object is not known, and
// that an id belongs to a thread of another process now.
func TestOwnerWithoutObject(t *testing.T) {
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Threads: make([]triage.Thread, 2)}
	wait := hang.Wait{Class: hang.ClassMutex, Frame: -1, Owner: &hang.Owner{ThreadID: 0x1234, Index: 1, Confidence: hang.High, Evidence: []hang.Evidence{{Source: hang.FromKernel, Frame: -1}}}}
	v := &hang.Verdict{Waits: []hang.Wait{wait}}
	j := hangWaitJSON(inc, v, 0, hexer(16))
	if j.OwnerThreadID == nil || *j.OwnerThreadID != 0x1234 || j.OwnerConfidence != "high" || j.OwnerInDump == nil || !*j.OwnerInDump || len(j.Evidence) != 1 || j.Evidence[0] != "owner: the kernel's structures" {
		t.Errorf("%+v", j)
	}
	v.Waits[0].Owner = &hang.Owner{ThreadID: 0x1234, Index: -1, Foreign: true}
	if j = hangWaitJSON(inc, v, 0, hexer(16)); *j.OwnerInDump || j.Detail != "the owner's id is that of a thread of another process now" {
		t.Errorf("%+v", j)
	}
}

// What a slim lock's word tells, in words and in JSON.
func TestSlimLockWords(t *testing.T) {
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, Threads: []triage.Thread{{Thread: dump.Thread{ID: 0x44}}}}
	for want, s := range map[string]hang.SlimLock{
		"held by a writer":           {Locked: true, LastWaiter: -1},
		"held by 1 reader":           {Locked: true, Readers: 1, LastWaiter: -1},
		"held by 3 readers":          {Locked: true, Readers: 3, LastWaiter: -1},
		"held, with threads queued":  {Locked: true, Contended: true, LastWaiter: 0},
		"the lock is free in memory": {LastWaiter: -1},
	} {
		v := &hang.Verdict{Waits: []hang.Wait{{Class: hang.ClassSRW, Frame: -1, Object: hang.Object{Kind: hang.KindSRW, Value: 0x1000, Slim: &s}}}}
		j := hangWaitJSON(inc, v, 0, hexer(16))
		if j.Detail != want || j.SlimLock.Locked != s.Locked || j.SlimLock.Contended != s.Contended {
			t.Errorf("%s: %+v %+v", want, j, j.SlimLock)
		}
		if l := j.SlimLock; (l.Readers != nil) != (s.Locked && !s.Contended) || (l.LastWaiter != nil) != (s.LastWaiter == 0) || l.LastWaiter != nil && *l.LastWaiter != 0x44 {
			t.Errorf("%s: %+v", want, l)
		}
	}
}

// Frames behind a scan say in text whether anything proves them.
func TestProofMarks(t *testing.T) {
	for _, c := range []struct {
		trust unwind.Trust
		proof triage.Proof
		want  string
	}{
		{unwind.TrustCFI, triage.ProofNotNeeded, ""},
		{unwind.TrustCFI, triage.Proven, ""},
		{unwind.TrustCFI, triage.Unproven, " [unproven]"},
		{unwind.TrustCFI, triage.Refuted, " [refuted]"},
		{unwind.TrustScan, triage.Unproven, " [scan]"},
		{unwind.TrustScan, triage.Refuted, " [scan, refuted]"},
	} {
		if got := howFound(&triage.Frame{Frame: unwind.Frame{Trust: c.trust}, Proof: c.proof}, dump.AMD64); got != c.want {
			t.Errorf("%v, %q: %q, want %q", c.trust, c.proof, got, c.want)
		}
	}
}
