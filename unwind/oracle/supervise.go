package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// Job is one image and how much of it to check.
type Job struct {
	Path   string
	Stride int // every how many entries; 0 and 1 mean all
	Limits Limits
}

// Report is what a Job found.
type Report struct {
	Path       string
	Entries    int
	Functions  int
	Boundaries int
	Returned   int
	Prologs    int
	Epilogs    int
	Leaves     int
	Checks     Counts
	Calls      Counts
	// Undescribed are boundaries and call sites of functions whose unwind data
	// describes no frame; they are in no other number but Functions.
	Undescribed Counts
	Wrong       []uint32 // distinct RVAs with a wrong answer
	Failures    []Failure
	Aborted     []uint32 // Begin of functions that ended the emulator's process
	Took        time.Duration
}

func (r *Report) add(f *Function) {
	r.Functions++
	if f.Undescribed {
		r.Undescribed.add(f.Checks)
		r.Undescribed.add(f.Calls)
		return
	}
	r.Boundaries += f.Boundaries
	r.Returned += min(f.Returned, 1)
	r.Prologs += f.Prologs
	r.Epilogs += f.Epilogs
	r.Leaves += f.Leaves
	r.Checks.add(f.Checks)
	r.Calls.add(f.Calls)
	r.Wrong = append(r.Wrong, f.Wrong...)
	r.Failures = append(r.Failures, f.Failures...)
}

const (
	childVariable = "DUMPTRIAGE_ORACLE_JOB"
	maxRestarts   = 200
	patience      = 60 * time.Second // for one function
)

// childJob is what a child process is told.
type childJob struct {
	Job
	From int // entry to begin with
}

// message is one line from a child: an entry begun, or done.
type message struct {
	Entry    int
	Begin    uint32
	Entries  int       `json:",omitempty"`
	Function *Function `json:",omitempty"`
}

// ChildMain does a child process's work and exits when this process is one. Any
// program that calls Run must call it first.
func ChildMain() {
	text, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	var job childJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.work(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func (j childJob) work(w io.Writer) error {
	o, err := Open(j.Path)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	if err := out.Encode(message{Entry: -1, Entries: o.Entries()}); err != nil {
		return err
	}
	for i := j.From; i < o.Entries(); i += max(j.Stride, 1) {
		if err := out.Encode(message{Entry: i, Begin: o.im.entries[i].Begin}); err != nil {
			return err
		}
		if f := o.Check(i, j.Limits); f != nil {
			if err := out.Encode(message{Entry: i, Function: f}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run does a job in child processes of this program, which must begin with
// ChildMain. A child that ends early is replaced by one that begins behind the
// function that ended it.
func Run(ctx context.Context, job Job) (*Report, error) {
	begun := time.Now()
	report := &Report{Path: job.Path}
	next := childJob{Job: job}
	for range maxRestarts {
		last, err := report.child(ctx, next)
		if err == nil {
			slices.Sort(report.Wrong)
			report.Wrong = slices.Compact(report.Wrong)
			report.Took = time.Since(begun)
			return report, nil
		}
		if last.Entry < next.From || ctx.Err() != nil {
			return nil, err // nothing was begun: not a function's fault
		}
		report.Aborted = append(report.Aborted, last.Begin)
		next.From = last.Entry + max(job.Stride, 1)
	}
	return nil, fmt.Errorf("%s: the emulator ended %d times", job.Path, maxRestarts)
}

// child runs one child process and returns the last entry that it began.
func (r *Report) child(ctx context.Context, job childJob) (last message, err error) {
	last.Entry = -1
	text, err := json.Marshal(job)
	if err != nil {
		return last, err
	}
	self, err := os.Executable()
	if err != nil {
		return last, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		return last, err
	}
	if err := cmd.Start(); err != nil {
		return last, err
	}
	watchdog := time.AfterFunc(patience, cancel)
	last = r.listen(out, func() { watchdog.Reset(patience) })
	watchdog.Stop()
	if err := cmd.Wait(); err != nil {
		return last, fmt.Errorf("%s: %w: %s", strconv.Quote(job.Path), err, firstLine(errors.Bytes()))
	}
	return last, nil
}

func (r *Report) listen(out io.Reader, alive func()) (last message) {
	last.Entry = -1
	lines := json.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	for {
		var m message
		if err := lines.Decode(&m); err != nil {
			if !errors.Is(err, io.EOF) {
				_, _ = io.Copy(io.Discard, out)
			}
			return last
		}
		alive()
		switch {
		case m.Entries > 0:
			r.Entries = m.Entries
		case m.Function != nil:
			r.add(m.Function)
		default:
			last = m
		}
	}
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line[:min(len(line), 200)])
}
