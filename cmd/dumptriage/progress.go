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
	fmt.Fprintf(p.w, "\r%s: %d of %d\x1b[K", p.what, done, total)
}

// done wipes the line.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
