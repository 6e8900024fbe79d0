package crash

import (
	"slices"
	"testing"

	"dumptriage/managed"
	"dumptriage/symbols"
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

// The object that the thread handles is the one that was raised if its HRESULT is.
func TestManagedObject(t *testing.T) {
	for _, tc := range []struct {
		hresult uint32
		want    string
	}{{0x80131509, "System.InvalidOperationException"}, {0x80070057, ""}} {
		inc := incident(0xe0434352, triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustContext}})
		inc.Crash.Parameters = []uint64{0x80131509}
		inc.Threads[inc.Crashing].Managed = &managed.Thread{Exception: &managed.Exception{
			Type: "System.InvalidOperationException", Bases: []string{"System.SystemException"}, Message: "boom", HResult: tc.hresult, HasHR: true,
		}}
		got := ""
		v := Of(inc, nil)
		if len(v.Thrown.Types) > 0 {
			got = v.Thrown.Types[0]
		}
		if got != tc.want || v.Thrown.HResult != 0x80131509 || (v.Thrown.Message == "boom") != (tc.want != "") {
			t.Errorf("an object of %#x: %+v, want type %q", tc.hresult, v.Thrown, tc.want)
		}
	}
}

// A .NET method that is the application's is to blame, wherever its code is; those of
// the runtime's assemblies are not.
func TestManagedBlame(t *testing.T) {
	frame := func(module, function string) triage.Frame {
		return triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustCFI}, Name: symbols.Name{Function: function, Source: symbols.SourceCLR},
			Managed: &managed.Method{Module: module, Name: function}}
	}
	inc := incident(0xe0434352, frame("System.Private.CoreLib.dll", "System.ThrowHelper.Throw"), frame("System.Linq.dll", "System.Linq.Enumerable.First"), frame("shop.dll", "Shop.Cart.Pay"))
	v := Of(inc, nil)
	if v.Blame == nil || v.Blame.Frame.Name.Function != "Shop.Cart.Pay" || v.Blame.Rule != BlameFirst {
		t.Errorf("%+v", v.Blame)
	}
}
