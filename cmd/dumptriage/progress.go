package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"
)

// progress is one status line on standard error, when the work takes more than a
// second. Where that is no terminal but a log there is a line a minute.
type progress struct {
	w     io.Writer // nil: say nothing
	log   bool
	what  string
	begun time.Time
	last  time.Time
	shown bool
	// failed is how many of what was done came to nothing.
	failed int
}

func newProgress(c *cli.Context, what string) *progress {
	p := &progress{what: what, begun: time.Now()}
	if !c.Bool(quietFlag.Name) {
		p.w, p.log = c.App.ErrWriter, !isTerminal(c.App.ErrWriter)
	}
	return p
}

func (p *progress) update(done, total int) {
	if p.w == nil {
		return
	}
	p.at(time.Now(), done, total)
}

func (p *progress) at(now time.Time, done, total int) {
	first, every := time.Second, 100*time.Millisecond
	if p.log {
		first, every = time.Minute, time.Minute
	}
	if now.Sub(p.begun) < first || now.Sub(p.last) < every {
		return
	}
	p.last = now
	if p.log {
		fmt.Fprintf(p.w, "dumptriage: %s: %s\n", p.what, p.line(done, total, now.Sub(p.begun)))
		return
	}
	p.shown = true
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
