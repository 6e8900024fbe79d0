package triage

import "testing"

func TestOtherHalf(t *testing.T) {
	for _, c := range []struct {
		member string
		names  []string
		want   string
	}{
		{"app.dmp", []string{"app.dmp", "app.Kernel.dmp"}, "app.Kernel.dmp"},
		{"app.Kernel.dmp", []string{"app.Kernel.dmp", "app.dmp"}, "app.dmp"},
		{"in/APP.DMP", []string{"in/APP.DMP", "app.kernel.dmp", "in/app.KERNEL.dmp"}, "in/app.KERNEL.dmp"},
		{"app.dmp", []string{"app.dmp", "app2.dmp", "app2.Kernel.dmp"}, ""},
		{"app", []string{"app", "app.Kernel.dmp"}, ""},
		{"", nil, ""},
		{".dmp", []string{".dmp", ".kernel.dmp"}, ".kernel.dmp"},
	} {
		if got := otherHalf(c.member, c.names); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.member, c.names, got, c.want)
		}
	}
}
