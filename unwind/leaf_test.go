package unwind

import "testing"

// The leaf rule in a frame that has called another: code without unwind data is
// believed to be leaf-like there only when its return address is proved. A word in
// a module of which no code is at hand proves nothing.
func TestLeafOfCaller(t *testing.T) {
	for _, c := range []struct {
		what  string
		exact bool // stopped at any instruction, as frame 0 is
		proof bool // a CALL precedes the return address
		trust Trust
	}{
		{"frame 0, proved", true, true, TrustCFI},
		{"frame 0, no code to prove it", true, false, TrustCFI},
		{"caller, proved", false, true, TrustCFI},
		{"caller, no code to prove it", false, false, TrustScan},
	} {
		s := bare()
		to := uint64(noImageBase + 0x3000)
		if c.proof {
			to = s.callAt(0x1540)
		}
		s.poke(sp0, to)
		regs := at(imageBase+0x1300, sp0)
		f := Frame{IP: imageBase + 0x1300, Lookup: imageBase + 0x1300, SP: sp0, Trust: TrustCFI}
		if !c.exact {
			f.Lookup--
		}
		stop, ok := s.walker().Step(&regs, &f, &Options{StackLimit: stackLow, StackBase: stackHigh})
		if !ok || f.IP != to || f.SP != sp0+8 || f.Trust != c.trust {
			t.Errorf("%s: %+v %+v, want trust %v", c.what, f, stop, c.trust)
		}
	}
}
