package signature

import (
	"testing"

	"dumptriage/managed"
)

func TestManagedFrame(t *testing.T) {
	for _, tc := range []struct {
		m    managed.Method
		want string
	}{
		{managed.Method{Module: "Shop.dll", Type: "Shop.Cart", Name: "Pay", Token: 0x06000001}, "shop!Shop.Cart.Pay"},
		{managed.Method{Module: "a.exe", Type: "Box`1+Inner", Name: "Go", TypeArgs: []string{"System.Guid"}}, "a!Box`1+Inner.Go"},
		{managed.Method{Module: "a.dll", Type: "P+<>c", Name: "<Main>b__8_1"}, "a!P+<>c.<Main>b__"},
		{managed.Method{Module: "a.dll", Type: "P+<>c__DisplayClass12_0", Name: "<Main>b__0"}, "a!P+<>c__DisplayClass.<Main>b__"},
		{managed.Method{Module: "a.dll", Type: "P+<Read>d__5", Name: "MoveNext"}, "a!P+<Read>d__.MoveNext"},
		{managed.Method{Module: "a.dll", Type: "P", Name: "<Main>g__Local|3_0"}, "a!P.<Main>g__Local"},
		{managed.Method{Module: "a.dll", Type: "P", Name: "Step2_1"}, "a!P.Step2_1"},
		{managed.Method{Type: "DynamicClass", Name: "Lambda"}, "DynamicClass.Lambda"},
		{managed.Method{Module: "a.dll", Token: 0x06000010}, "a!06000010"},
		{managed.Method{Token: 0x06000010}, ""},
		{managed.Method{Kind: managed.KindStub}, ""},
	} {
		if got := managedFrame(&tc.m).name; got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.m, got, tc.want)
		}
	}
}
