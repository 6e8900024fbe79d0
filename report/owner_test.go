package report

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/triage/hang"
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
