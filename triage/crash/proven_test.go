package crash

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// codeAt is memory that holds a few bytes at a few addresses.
type codeAt map[uint64][]byte

func (m codeAt) ReadAt(p []byte, va uint64) (int, error) {
	b, ok := m[va]
	if !ok {
		return 0, dump.Errorf(dump.OutOfRange, "memory", "not in the dump")
	}
	return copy(p, b), nil
}

// branch is a call (e8) or jump (e9) at an address.
func branch(opcode byte, from, to uint64) []byte {
	return append([]byte{opcode}, binary.LittleEndian.AppendUint32(nil, uint32(to-from-5))...)
}

// at makes a frame of app.exe whose function begins at start.
func at(function string, start uint64, trust unwind.Trust) triage.Frame {
	f := frameIn(`C:\demo\app.exe`, function)
	f.Trust, f.IP, f.Name.Offset = trust, start+0x20, 0x20
	if len(function) > 3 && function[:3] == "fn@" {
		f.Name.Source = symbols.SourcePdata
	}
	return f
}

// Who is to blame when a scan took part. The stacks are those of calls that are
// over and of calls that are not, as the comments say.
func TestBlameBehindGuesses(t *testing.T) {
	const scan, cfi = unwind.TrustScan, unwind.TrustCFI
	const stale, live, start = 0x1100, 0x1400, 0x1600
	system := func(function string) triage.Frame { return frameIn(`C:\Windows\System32\KERNELBASE.dll`, function) }
	runtime := func(function string) triage.Frame { return frameIn(`C:\app\vcruntime140.dll`, function) }
	call := uint64(live + 0x20 - 5) // in front of the return address in live
	for name, c := range map[string]struct {
		code   uint32
		frames []triage.Frame
		memory codeAt
		want   string
	}{
		"a call that is over, on the way of a throw": {codeGCC,
			[]triage.Frame{system(""), at("fn@b180", stale, scan), at("__emutls_get_address", 0x1200, cfi), at("__cxa_throw", 0x1300, cfi), at("thrower", live, cfi)}, nil, "thrower"},
		"a helper without a name of a runtime that is linked in": {codeGCC,
			[]triage.Frame{system("RaiseException"), at("fn@1100", stale, cfi), at("__cxa_throw", 0x1300, cfi), at("thrower", live, cfi)}, nil, "thrower"},
		"a destructor that throws while another exception is on its way": {codeCxx,
			[]triage.Frame{system("RaiseException"), runtime("_CxxThrowException"), at("Guard::~Guard", stale, cfi), runtime("__CxxFrameHandler3"), runtime("_CxxThrowException"), at("first", live, cfi)}, nil, "Guard::~Guard"},
		"a guess that nothing speaks against": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, cfi)}, nil, "raiser"},
		"a guess that its caller did call": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, cfi)}, codeAt{call: branch(0xe8, call, stale)}, "raiser"},
		"a guess that its caller did call, through a jump": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, cfi)},
			codeAt{call: branch(0xe8, call, 0x1800), 0x1800: branch(0xe9, 0x1800, stale)}, "raiser"},
		"a guess that its caller did not call": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, cfi), at("main", start, cfi)}, codeAt{call: branch(0xe8, call, 0x1800)}, "caller"},
		"a guess behind which all is guessed": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, scan)}, codeAt{call: branch(0xe8, call, 0x1800)}, "raiser"},
		"a call through a pointer says nothing": {0xe0001234,
			[]triage.Frame{system(""), at("raiser", stale, scan), at("caller", live, cfi)}, codeAt{call: {0x48, 0x90, 0x90, 0xff, 0xd0}}, "raiser"},
	} {
		inc := incident(c.code, c.frames...)
		inc.UserSpace = triage.NewView(c.memory, nil, nil)
		v := Of(inc, nil)
		if v.Blame == nil || v.Blame.Frame.Name.Function != c.want {
			t.Errorf("%s: blames %+v, want %s", name, v.Blame, c.want)
			continue
		}
		for i := range c.frames[:v.Blame.Index+1] {
			if c.frames[i].Trust == scan && v.Blame.Confidence != low {
				t.Errorf("%s: confidence %s behind a guess", name, v.Blame.Confidence)
			}
		}
	}
}

// A recursion that only a scan shows does not take the place of the frame that
// the registers prove.
func TestGuessedRecursion(t *testing.T) {
	frames := []triage.Frame{at("deep", 0x1100, unwind.TrustContext)}
	for range 10 {
		frames = append(frames, at("a", 0x1300, unwind.TrustScan), at("b", 0x1500, unwind.TrustScan))
	}
	share(frames)
	v := Of(incident(0xc00000fd, frames...), nil)
	if v.Recursion == nil {
		t.Fatal("no recursion found")
	}
	if b := v.Blame; b == nil || b.Frame.Name.Function != "deep" || b.Rule != BlameFirst || b.Confidence != high {
		t.Errorf("blames %+v", b)
	}
	for i := range frames {
		frames[i].Trust = unwind.TrustCFI
	}
	if b := Of(incident(0xc00000fd, frames...), nil).Blame; b == nil || b.Frame.Name.Function == "deep" || b.Rule != BlameRecursion {
		t.Errorf("a proved recursion: blames %+v", b)
	}
}
