package hang

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// memory32 is memory by 32-bit words.
type memory32 map[uint32]uint32

func (m memory32) ReadAt(p []byte, va uint64) (int, error) {
	for i := range p {
		at := uint32(va) + uint32(i)
		w, ok := m[at&^3]
		if !ok {
			return i, &dump.MemoryError{VA: uint64(at), Size: len(p) - i}
		}
		p[i] = binary.LittleEndian.AppendUint32(nil, w)[at&3]
	}
	return len(p), nil
}

func (m memory32) put(va uint32, words ...uint32) {
	for i, w := range words {
		m[va+4*uint32(i)] = w
	}
}

const (
	lock32    = 0x00412340
	debug32   = 0x00298000
	owner32   = 0x1a4c
	handle32  = 0x1c8
	waiting32 = 0x1a40
)

// thread32 is a 32-bit thread that waits for a critical section as Windows 7
// does. The stack, from the top down: app!f pushed the lock and called
// RtlEnterCriticalSection, which pushed ebp and the lock and called
// RtlpWaitForCriticalSection, which pushed three arguments and called the stub.
func thread32(m memory32) triage.Thread {
	f := frames("ntdll!ZwWaitForSingleObject", "ntdll!RtlpWaitForCriticalSection", "ntdll!RtlEnterCriticalSection", "app!f")
	set := func(i int, ip, sp, fp uint64) {
		f[i].IP, f[i].SP, f[i].FP, f[i].HasFP = ip, sp, fp, true
		f[i].Trust = unwind.TrustFramePointer
	}
	set(0, 0x77001015, 0x18f700, 0x18f740)
	m.put(0x18f700, 0x77002042, handle32, 0, 0) // return address, handle, alertable, timeout
	set(1, 0x77002042, 0x18f704, 0x18f740)
	m.put(0x18f740, 0x18f760, 0x77003033, lock32) // ebp, return address, argument
	set(2, 0x77003033, 0x18f748, 0x18f760)
	m.put(0x18f760, 0x18f7a0, 0x00401050, lock32)
	set(3, 0x00401050, 0x18f768, 0x18f7a0)
	return triage.Thread{Thread: dump.Thread{ID: waiting32}, User: &triage.Half{Frames: f, Registers: dump.Registers{Arch: dump.X86}}}
}

func incident32(m memory32) *triage.Incident {
	inc := incident(thread32(m), thread(owner32, "app!work", "app!main"))
	inc.System.Arch = dump.X86
	inc.UserSpace = triage.NewView(m, nil, nil)
	return inc
}

func TestCriticalSectionOfX86(t *testing.T) {
	m := memory32{}
	m.put(lock32, debug32, 0xfffffffa, 1, owner32, 0, 0)
	m.put(debug32, 0, lock32)
	v := Of(incident32(m), builtinRules(t))
	w := v.Waits[0]
	if w.Class != ClassCritical || w.Object.Value != lock32 || w.Object.Lock == nil || !w.Object.Lock.Confirmed || w.Object.Evidence[0].Source != FromStack {
		t.Fatalf("%s %+v", w.Class, w.Object)
	}
	if w.Owner == nil || w.Owner.ThreadID != owner32 || v.State != Blocked || v.Subject != 1 {
		t.Errorf("owner %+v, %s about %d", w.Owner, v.State, v.Subject)
	}
}

// Where the return address is not where it should be, neither are arguments.
func TestX86ArgumentsNeedTheReturnAddress(t *testing.T) {
	m := memory32{}
	inc := incident32(m)
	m.put(lock32, debug32, 0xfffffffa, 1, owner32, 0, 0)
	m.put(0x18f764, 0x00401051)
	m.put(0x18f744, 0x77003034)
	if w := Of(inc, nil).Waits[0]; w.Object.Kind == KindCritical && w.Object.Known() {
		t.Errorf("found %+v", w.Object)
	}
	if w := Of(incident32(memory32{}), nil).Waits[0]; w.Owner != nil {
		t.Errorf("owner %+v without memory", w.Owner)
	}
}

// What cannot be a critical section gives no owner.
func TestImplausibleLocks(t *testing.T) {
	for name, words := range map[string][]uint32{
		"owner not a multiple of 4": {debug32, 0xfffffffa, 1, owner32 + 1, 0, 0},
		"owner without recursion":   {debug32, 0xfffffffa, 0, owner32, 0, 0},
		"recursion without owner":   {debug32, 0xfffffffa, 1, 0, 0, 0},
		"negative recursion":        {debug32, 0xfffffffa, 0xffffff00, owner32, 0, 0},
		"no debug information":      {0x1234, 0xfffffffa, 1, owner32, 0, 0},
	} {
		m := memory32{}
		inc := incident32(m)
		m.put(lock32, words...)
		if w := Of(inc, nil).Waits[0]; w.Owner != nil || w.Object.Lock != nil {
			t.Errorf("%s: lock %+v, owner %+v", name, w.Object.Lock, w.Owner)
		}
	}
}

// Frames found by scanning name no object.
func TestGuessedFramesNameNothing(t *testing.T) {
	m := memory32{}
	inc := incident32(m)
	m.put(lock32, debug32, 0xfffffffa, 1, owner32, 0, 0)
	for i := range inc.Threads[0].User.Frames {
		inc.Threads[0].User.Frames[i].Trust = unwind.TrustScan
	}
	if w := Of(inc, nil).Waits[0]; w.Object.Known() || w.Owner != nil || w.Confidence != Low {
		t.Errorf("%+v owner %+v, confidence %s", w.Object, w.Owner, w.Confidence)
	}
}
