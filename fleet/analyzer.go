package fleet

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"

	"dumptriage/dump"
	"dumptriage/report"
	"dumptriage/report/redact"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

// Record is what came of a job.
type Record struct {
	Job    Job
	Key    string // "" when the files could not be read
	Status string // as the JSON says it
	Line   []byte // the JSON object, with its newline
}

// Analyzer does jobs one after the other, keeping images and symbols from one to
// the next. It is used by one goroutine.
type Analyzer struct {
	Tool   report.Tool
	Flags  string         // see report.Options.BatchOptions
	Triage triage.Options // Cache is the analyzer's own
	Rules  *verdict.Rules
	Frames int  // frames of each half of a stack in the JSON, 0 for all
	Alone  bool // dumps in archives are not paired
	// Redact makes the redactor of a record; nil leaves people and machines in.
	Redact func() *redact.Redactor

	cache triage.Cache
}

// Close closes what is cached.
func (a *Analyzer) Close() error { return a.cache.Close() }

// Do does one job. There always is a record: whatever goes wrong, a panic
// included, is in it.
func (a *Analyzer) Do(_ context.Context, j Job) (r Record) {
	key, err := Key(j)
	if err != nil {
		return Failed(a.options(""), j, dump.IO, err.Error())
	}
	defer func() {
		if p := recover(); p != nil {
			a.cache.Close() // it may be in any state
			r = Failed(a.options(key), j, dump.Internal, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return a.do(j, key)
}

func (a *Analyzer) do(j Job, key string) Record {
	in, err := a.open(j)
	if err != nil {
		return failure(a.options(key), j, err)
	}
	defer in.Close()
	opt := a.Triage
	opt.Cache = &a.cache
	inc, err := triage.Analyze(in.user, in.kernel, in.how, opt)
	if err != nil {
		return failure(a.options(key), j, err)
	}
	defer inc.Close()
	inc.Errors = append(inc.Errors, in.warnings...)
	v := verdict.Of(inc, verdict.Options{Rules: a.Rules})
	var line bytes.Buffer
	ropt := a.options(key)
	ropt.Frames, ropt.Verdict = a.Frames, v
	err = report.JSON(&line, inc, ropt)
	if err != nil {
		return failure(a.options(key), j, err)
	}
	status, _ := report.Status(inc)
	return Record{Job: j, Key: key, Status: status, Line: line.Bytes()}
}

// opened are the dumps of a job.
type opened struct {
	user, kernel *triage.Dump
	how          string
	warnings     []*dump.Error
}

func (o *opened) Close() {
	for _, d := range []*triage.Dump{o.user, o.kernel} {
		if d != nil {
			d.Close()
		}
	}
}

func (a *Analyzer) open(j Job) (*opened, error) {
	first, err := triage.Open(j.Path)
	if err != nil {
		return nil, err
	}
	o := &opened{}
	if first.Kernel() {
		o.kernel = first
	} else {
		o.user = first
	}
	var other *triage.Dump
	switch {
	case j.Kernel != "":
		o.how = "beside"
		other, err = triage.Open(j.Kernel)
	case !a.Alone:
		o.how = "archive"
		other, err = first.OpenOtherHalf()
	}
	switch {
	case err != nil: // nobody named it: the first is no worse for it
		e := *dump.AsError(err)
		e.Warning = true
		o.warnings = append(o.warnings, &e)
	case other == nil:
	case other.Kernel() == first.Kernel():
		o.refuse(other, "is not the other half of "+j.Path)
	case !triage.SameProcess(first, other):
		o.refuse(other, fmt.Sprintf("is of process %d, not %d; not used", other.Process().PID, first.Process().PID))
	case other.Kernel():
		o.kernel = other
	default:
		o.user = other
	}
	return o, nil
}

func (o *opened) refuse(d *triage.Dump, why string) {
	e := dump.Errorf(dump.Mismatch, "", "%s", why)
	e.File, e.Warning = d.Path, true
	o.warnings = append(o.warnings, e)
	d.Close()
}

// options are those of a record with the given key.
func (a *Analyzer) options(key string) report.Options {
	opt := report.Options{Tool: a.Tool, BatchKey: key, BatchOptions: a.Flags}
	if a.Redact != nil {
		opt.Redact = a.Redact()
	}
	return opt
}

// Failed is the record of a job that came to nothing.
func Failed(opt report.Options, j Job, code dump.Code, msg string) Record {
	e := dump.Errorf(code, "", "%s", msg)
	e.File, e.Offset, e.Size = j.Path, -1, -1
	return failure(opt, j, e)
}

func failure(opt report.Options, j Job, err error) Record {
	var line bytes.Buffer
	in := []triage.Input{{Path: j.Path, Size: -1}}
	if j.Kernel != "" {
		in = append(in, triage.Input{Path: j.Kernel, Size: -1})
	}
	_ = report.BatchFailureJSON(&line, opt, in, []*dump.Error{dump.AsError(err)}) // a buffer takes anything
	return Record{Job: j, Key: opt.BatchKey, Status: report.StatusError, Line: line.Bytes()}
}
