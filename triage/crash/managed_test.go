package crash

import (
	"slices"
	"testing"

	"dumptriage/triage"
	"dumptriage/unwind"
)

// What is read of the exception object takes the place of what its HRESULT tells;
// a crash that is none of .NET's is left alone.
func TestSetManaged(t *testing.T) {
	object := Managed{Types: []string{"App.Broken", "System.Exception"}, Message: "no luck", Address: 0x1234}
	clr := func() *Verdict {
		inc := incident(0xe0434352, triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustContext}})
		inc.Crash.Parameters = []uint64{0x80131500}
		return Of(inc, nil)
	}
	v := clr()
	if !slices.Equal(v.Thrown.ByHResult, []string{"System.Exception"}) {
		t.Errorf("by HRESULT: %+v", v.Thrown)
	}
	v.SetManaged(Managed{Message: "of no type"})
	if v.Thrown.Message != "" || v.Thrown.ByHResult == nil {
		t.Errorf("an object without a type: %+v", v.Thrown)
	}
	v.SetManaged(object)
	if th := v.Thrown; th.Types[0] != "App.Broken" || th.Message != "no luck" || th.HResult != 0x80131500 || !th.HasHR || th.ByHResult != nil || th.Address != 0x1234 {
		t.Errorf("%+v", th)
	}
	other := Of(incident(0xc0000094, triage.Frame{}), nil)
	if other.SetManaged(object); other.Thrown != nil {
		t.Errorf("a division by zero: %+v", other.Thrown)
	}
	(*Verdict)(nil).SetManaged(object)
}
