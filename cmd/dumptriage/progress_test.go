package main

import (
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	for _, c := range []struct {
		done, total, failed int
		took                time.Duration
		want                string
	}{
		{0, 10, 0, 2 * time.Second, "0 of 10"},
		{50, 200, 0, 2 * time.Second, "50 of 200, 25/s, 6s left"},
		{1, 3601, 1, time.Second, "1 of 3601, 1/s, 1h0m0s left, 1 failed"},
		{200, 200, 2, 4 * time.Second, "200 of 200, 50/s, 2 failed"},
	} {
		p := progress{failed: c.failed}
		if got := p.line(c.done, c.total, c.took); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
