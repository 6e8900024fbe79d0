package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/redact"
	"dumptriage/triage"
)

// JSON writes an incident as one JSON object on one line. Threads are made and
// written one at a time, so that memory does not grow with their number. The
// error is that of w.
func JSON(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	h := hexFor(inc.System.Arch)
	d := header(opt.Tool, inc.Inputs, inc.Errors)
	d.Status, _ = Status(inc)
	d.Batch = batchJSON(&opt)
	d.PID = pid(inc)
	d.Captured = timeText(inc.Captured)
	d.Process, d.SystemInfo = processJSON(inc), systemJSON(&inc.System)
	d.ManagedRuntime = runtimeJSON(inc.Runtime)
	d.CrashInfo, d.Analysis = crashJSON(inc, h), analysisJSON(inc, opt.Verdict)
	d.Signature = signatureJSON(opt.Verdict, opt.ExplainSignature)
	if d.CrashInfo != nil {
		d.CrashInfo.crashInfo(inc, opt.Verdict, h)
	}
	if v := opt.Verdict; v != nil && v.Crash != nil && v.Crash.Uptime > 0 {
		d.ProcessUptime = ptr(v.Crash.Uptime.Seconds())
	}
	d.BugCheck = bugCheckJSON(inc.BugCheck, bugVerdict(opt.Verdict), h, inc.System.Arch)
	d.ThreadCount = ptr(len(inc.Threads))
	d.Explanation = explanationJSON(inc, h)
	d.Modules = modulesJSON(inc.Modules, h)
	d.UnloadedModules = unloadedJSON(inc.Unloaded, h)
	d.Handles = handlesJSON(inc.Handles, h)
	d.Pairing, d.MissingImages = pairingJSON(inc.Pairing), missingJSON(inc.Missing)
	parts := map[string]func(*stream){
		"threads":         func(s *stream) { s.threads(inc, h, opt) },
		"crashing_thread": func(s *stream) { s.crashingThread(inc, h, opt) },
		"cpus":            func(s *stream) { s.cpus(inc, h, opt) },
		"groups":          func(s *stream) { s.groups(inc, h, opt) },
	}
	if len(inc.Processes) > 0 {
		parts["processes"] = func(s *stream) { s.processes(processesOf(inc), false, nil, h) }
	}
	return newStream(w, opt).document(&d, parts)
}

// BriefJSON writes the verdict alone as one JSON object on one line, in less
// than 2 KB for all but the longest names.
func BriefJSON(w io.Writer, inc *triage.Incident, opt Options) error {
	opt.hide(inc)
	d := header(opt.Tool, nil, nil)
	for _, in := range inc.Inputs {
		d.Inputs = append(d.Inputs, InputJSON{Path: in.Path, SHA256: in.SHA256})
	}
	d.Status, _ = Status(inc)
	d.PID = pid(inc)
	d.Analysis = briefAnalysis(inc, opt.Verdict)
	if s := signatureJSON(opt.Verdict, false); s != nil {
		d.Signature = &SignatureJSON{Text: cut(s.Text, briefWidth), ID: s.ID, Algorithm: s.Algorithm}
	}
	return newStream(w, opt).document(&d, nil)
}

// FailureJSON writes the object of a run that has no incident to show: the
// inputs that were tried and what went wrong.
func FailureJSON(w io.Writer, opt Options, inputs []triage.Input, errs []*dump.Error) error {
	opt.hide(&inputs, &errs)
	d := header(opt.Tool, inputs, errs)
	d.Status = StatusError
	return newStream(w, opt).document(&d, nil)
}

func header(tool Tool, inputs []triage.Input, errs []*dump.Error) Document {
	return Document{Schema: SchemaVersion, Tool: tool, Errors: errorsJSON(errs), Inputs: inputsJSON(inputs)}
}

func pid(inc *triage.Incident) *uint32 {
	if inc.Process.HasPID {
		return &inc.Process.PID
	}
	if inc.Pairing != nil && inc.Pairing.PID != 0 {
		return &inc.Pairing.PID
	}
	return nil
}

// stream writes JSON piece by piece. The first error sticks.
type stream struct {
	w   *bufio.Writer
	buf bytes.Buffer // one piece; reused
	enc *json.Encoder
	err error

	redact *redact.Redactor
}

const writeSize = 64 << 10

func newStream(w io.Writer, opt Options) *stream {
	s := &stream{w: bufio.NewWriterSize(w, writeSize), redact: opt.Redact}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

func (s *stream) raw(text string) {
	if s.err == nil {
		_, s.err = s.w.WriteString(text)
	}
}

// value writes one value without the newline that an Encoder adds.
func (s *stream) value(v any) {
	if s.err != nil {
		return
	}
	s.buf.Reset()
	if s.err = s.enc.Encode(v); s.err == nil {
		_, s.err = s.w.Write(printable(s.redact.JSON(bytes.TrimSuffix(s.buf.Bytes(), []byte("\n")))))
	}
}

// document writes d field by field in the order of its type, which is also
// what the schema is made from. A field named in special is written by its
// function instead, key included if it has anything to write.
func (s *stream) document(d *Document, special map[string]func(*stream)) error {
	v := reflect.ValueOf(d).Elem()
	sep := "{"
	for i := range v.NumField() {
		key, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f := special[key]; f != nil {
			f(s)
			continue
		}
		if strings.Contains(opts, "omitempty") && empty(v.Field(i)) {
			continue
		}
		s.raw(sep + `"` + key + `":`)
		s.value(v.Field(i).Interface())
		sep = ","
	}
	s.raw("}\n")
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

// empty is encoding/json's meaning of omitempty, but a list that was made and
// holds nothing is a fact and stays.
func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.IsNil()
	}
	return v.IsZero()
}

// list writes `,"key":[...]` from one value at a time.
func list[T any](s *stream, key string, seq func(yield func(T) bool)) {
	s.raw(`,"` + key + `":[`)
	sep := ""
	for v := range seq {
		s.raw(sep)
		s.value(v)
		sep = ","
		if s.err != nil {
			return
		}
	}
	s.raw("]")
}

func (s *stream) threads(inc *triage.Incident, h hexer, opt Options) {
	list(s, "threads", func(yield func(*ThreadJSON) bool) {
		for i := range inc.Threads {
			j := threadJSON(&inc.Threads[i], h, opt.Frames)
			j.Wait = cmp.Or(waitJSON(inc, opt.Verdict, i, h), j.Wait)
			if !yield(&j) {
				return
			}
		}
	})
}

func (s *stream) crashingThread(inc *triage.Incident, h hexer, opt Options) {
	if inc.Crashing < 0 || inc.Crashing >= len(inc.Threads) {
		return
	}
	j := threadJSON(&inc.Threads[inc.Crashing], h, opt.Frames)
	j.ThreadsIndex = &inc.Crashing
	j.Wait = cmp.Or(waitJSON(inc, opt.Verdict, inc.Crashing, h), j.Wait)
	s.raw(`,"crashing_thread":`)
	s.value(&j)
}

func (s *stream) cpus(inc *triage.Incident, h hexer, opt Options) {
	if len(inc.CPUs) == 0 {
		return
	}
	list(s, "cpus", func(yield func(CPUJSON) bool) {
		for i := range inc.CPUs {
			if !yield(cpuJSON(inc, &inc.CPUs[i], h, opt.Frames)) {
				return
			}
		}
	})
}

func (s *stream) groups(inc *triage.Incident, h hexer, opt Options) {
	if !opt.Unique {
		return
	}
	list(s, "groups", func(yield func(GroupJSON) bool) {
		for _, g := range inc.Groups() {
			first := threadJSON(&inc.Threads[g.Threads[0]], h, opt.Frames)
			j := GroupJSON{ID: g.ID, Frames: first.Frames, KernelFrames: first.KernelFrames}
			for _, m := range g.Threads {
				j.ThreadIDs = append(j.ThreadIDs, inc.Threads[m].ID)
			}
			if !yield(j) {
				return
			}
		}
	})
}
