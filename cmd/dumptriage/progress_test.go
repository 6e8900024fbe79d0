package main

import (
	"strings"
	"testing"
	"time"
)

// In a log there is a line a minute, which moves no cursor.
func TestProgressInALog(t *testing.T) {
	var b strings.Builder
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := progress{w: &b, log: true, what: "triaging dumps", begun: begun}
	for s := range 150 {
		p.at(begun.Add(time.Duration(s)*time.Second), s, 300)
	}
	p.done()
	want := "dumptriage: triaging dumps: 60 of 300, 1/s, 4m0s left\ndumptriage: triaging dumps: 120 of 300, 1/s, 3m0s left\n"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}

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
