package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"
)

// progress is one status line on standard error. It appears only on a terminal
// and only when the work takes more than a second.
type progress struct {
	w     io.Writer // nil: say nothing
	what  string
	begun time.Time
	last  time.Time
	shown bool
	// failed is how many of what was done came to nothing.
	failed int
}

func newProgress(c *cli.Context, what string) *progress {
	p := &progress{what: what, begun: time.Now()}
	if !c.Bool(quietFlag.Name) && isTerminal(c.App.ErrWriter) {
		p.w = c.App.ErrWriter
	}
	return p
}

func (p *progress) update(done, total int) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.begun) < time.Second || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(p.w, "\r%s: %s\x1b[K", p.what, p.line(done, total, now.Sub(p.begun)))
}

// line tells how much is done, how fast, and how long the rest will take at that rate.
func (p *progress) line(done, total int, took time.Duration) string {
	s := fmt.Sprintf("%d of %d", done, total)
	if rate := float64(done) / took.Seconds(); done > 0 && took > 0 {
		s += fmt.Sprintf(", %.3g/s", rate)
		if left := total - done; left > 0 {
			s += fmt.Sprintf(", %v left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
		}
	}
	if p.failed > 0 {
		s += fmt.Sprintf(", %d failed", p.failed)
	}
	return s
}

// done wipes the line.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
