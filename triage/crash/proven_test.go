package crash

import (
	"testing"

	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

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
// over and of calls that are not, as the comments say; package triage tells which
// is which.
func TestBlameBehindGuesses(t *testing.T) {
	const scan, cfi = unwind.TrustScan, unwind.TrustCFI
	const stale, live, start = 0x1100, 0x1400, 0x1600
	system := func(function string) triage.Frame { return frameIn(`C:\Windows\System32\KERNELBASE.dll`, function) }
	runtime := func(function string) triage.Frame { return frameIn(`C:\app\vcruntime140.dll`, function) }
	as := func(p triage.Proof, f triage.Frame) triage.Frame { f.Proof = p; return f }
	const proven, unproven, refuted = triage.Proven, triage.Unproven, triage.Refuted
	for name, c := range map[string]struct {
		code   uint32
		frames []triage.Frame
		want   string
	}{
		"a call that is over, on the way of a throw": {codeGCC,
			[]triage.Frame{system(""), as(refuted, at("fn@b180", stale, scan)), as(refuted, at("__emutls_get_address", 0x1200, cfi)),
				as(proven, at("__cxa_throw", 0x1300, cfi)), as(proven, at("thrower", live, cfi))}, "thrower"},
		"a helper without a name of a runtime that is linked in": {codeGCC,
			[]triage.Frame{system("RaiseException"), at("fn@1100", stale, cfi), at("__cxa_throw", 0x1300, cfi), at("thrower", live, cfi)}, "thrower"},
		"a destructor that throws while another exception is on its way": {codeCxx,
			[]triage.Frame{system("RaiseException"), runtime("_CxxThrowException"), at("Guard::~Guard", stale, cfi), runtime("__CxxFrameHandler3"), runtime("_CxxThrowException"), at("first", live, cfi)}, "Guard::~Guard"},
		"a scan that is proven": {0xe0001234,
			[]triage.Frame{system(""), as(proven, at("raiser", stale, scan)), as(proven, at("caller", live, cfi))}, "raiser"},
		"a scan that is refuted": {0xe0001234,
			[]triage.Frame{system(""), as(refuted, at("raiser", stale, scan)), as(proven, at("caller", live, cfi)), as(proven, at("main", start, cfi))}, "caller"},
		"unwound from a scan that is refuted": {0xe0001234,
			[]triage.Frame{system(""), as(refuted, at("printf", 0x1200, scan)), as(refuted, at("raiser", stale, cfi)), as(proven, at("caller", live, cfi))}, "caller"},
		"a scan that nothing proves, before what is proven": {0xe0001234,
			[]triage.Frame{system(""), as(unproven, at("raiser", stale, scan)), as(unproven, at("other", 0x1200, cfi)), as(proven, at("caller", live, cfi))}, "caller"},
		"nothing is proven": {0xe0001234,
			[]triage.Frame{system(""), as(unproven, at("raiser", stale, scan)), as(unproven, at("caller", live, cfi))}, "raiser"},
	} {
		v := Of(incident(c.code, c.frames...), nil)
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
