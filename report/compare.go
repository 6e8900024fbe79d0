package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/hang"
)

// SeriesJSON is what dumps of one process, taken in a row, show together.
type SeriesJSON struct {
	Class           string             `json:"class" jsonschema:"enum=deadlock,enum=hang,enum=crash,enum=busy,enum=progress,enum=idle,enum=unknown"`
	Reason          string             `json:"reason" jsonschema_description:"one sentence"`
	SubjectThreadID *uint32            `json:"subject_thread_id,omitempty"`
	Cycle           []uint32           `json:"cycle,omitempty" jsonschema_description:"threads that wait for each other in every dump"`
	ElapsedSeconds  *float64           `json:"elapsed_seconds,omitempty" jsonschema_description:"from the first dump to the last"`
	Warnings        []string           `json:"warnings,omitempty"`
	Dumps           []SeriesDumpJSON   `json:"dumps"`
	Threads         []SeriesThreadJSON `json:"threads"`
}

// SeriesDumpJSON is one dump of a series, in the order of their writing.
type SeriesDumpJSON struct {
	Path     string `json:"path"`
	Captured string `json:"captured,omitempty"`
	Class    string `json:"class" jsonschema_description:"of the dump alone, as in analysis.hang"`
}

// WaitsJSON are a thread's waits by dump, nil where there is none to tell.
type WaitsJSON []*WaitJSON

// SeriesThreadJSON is one thread through a series.
type SeriesThreadJSON struct {
	ThreadID   uint32    `json:"thread_id"`
	ThreadName string    `json:"thread_name,omitempty"`
	Motion     string    `json:"motion" jsonschema:"enum=stuck,enum=waits,enum=returned,enum=moved,enum=busy,enum=started,enum=ended,enum=unknown"`
	CPUSeconds *float64  `json:"cpu_seconds,omitempty" jsonschema_description:"used between the first dump and the last"`
	CPUShare   *float64  `json:"cpu_share,omitempty" jsonschema_description:"of one processor"`
	Common     int       `json:"common_frames" jsonschema_description:"outermost frames that all dumps share"`
	Innermost  string    `json:"innermost_common,omitempty" jsonschema_description:"the innermost of them"`
	Waits      WaitsJSON `json:"waits" jsonschema_description:"by dump; null where a dump has no such thread or its stack tells nothing"`
}

// seriesInputs are the files and the errors of all dumps of a series.
func seriesInputs(s *hang.Series) (in []triage.Input, errs []*dump.Error) {
	for _, inc := range s.Incidents {
		in, errs = append(in, inc.Inputs...), append(errs, inc.Errors...)
	}
	return in, errs
}

// seriesMissing are the images that any dump of a series needed and nobody found,
// each once.
func seriesMissing(s *hang.Series) (out []symbols.Missing) {
	seen := map[string]bool{}
	for _, inc := range s.Incidents {
		for _, m := range inc.Missing {
			if m.Module == nil {
				continue
			}
			if id := m.Module.Name() + "\x00" + m.Key; !seen[id] {
				seen[id] = true
				out = append(out, m)
			}
		}
	}
	return out
}

// SeriesStatus is Status of all dumps of a series: the worst.
func SeriesStatus(s *hang.Series) (status string, exit int) {
	status = StatusOK
	for _, inc := range s.Incidents {
		if name, code := Status(inc); code != 0 && exit != 1 {
			status, exit = name, code
		}
	}
	return status, exit
}

// CompareJSON writes a series as one JSON object on one line.
func CompareJSON(w io.Writer, s *hang.Series, opt Options) error {
	opt.hide(s)
	in, errs := seriesInputs(s)
	d := header(opt.Tool, in, errs)
	d.Status, _ = SeriesStatus(s)
	first := s.Incidents[0]
	d.PID, d.Process, d.SystemInfo = pid(first), processJSON(first), systemJSON(&first.System)
	d.Comparison = seriesJSON(s)
	d.MissingImages = missingJSON(seriesMissing(s))
	return newStream(w, opt).document(&d, nil)
}

func seriesJSON(s *hang.Series) *SeriesJSON {
	first := s.Incidents[0]
	h := hexFor(first.System.Arch)
	j := &SeriesJSON{Class: string(s.Progress), Reason: seriesReason(s), Cycle: s.Cycle, Warnings: s.Warnings, Threads: []SeriesThreadJSON{}}
	if s.Subject >= 0 {
		j.SubjectThreadID = &s.Threads[s.Subject].ID
	}
	if s.Elapsed > 0 {
		j.ElapsedSeconds = ptr(s.Elapsed.Seconds())
	}
	for k, inc := range s.Incidents {
		j.Dumps = append(j.Dumps, SeriesDumpJSON{seriesPath(inc), timeText(inc.Captured), string(s.Verdicts[k].State)})
	}
	for n := range s.Threads {
		st := &s.Threads[n]
		t := SeriesThreadJSON{ThreadID: st.ID, ThreadName: st.Name, Motion: string(st.Motion), Common: st.Common, Innermost: commonFrame(s, st)}
		if st.HasCPU {
			t.CPUSeconds = ptr(st.CPU.Seconds())
			if s.Elapsed > 0 {
				t.CPUShare = &st.Share
			}
		}
		for k, i := range st.At {
			var w *WaitJSON
			if i >= 0 {
				w = hangWaitJSON(s.Incidents[k], s.Verdicts[k], i, h)
			}
			t.Waits = append(t.Waits, w)
		}
		j.Threads = append(j.Threads, t)
	}
	return j
}

func seriesPath(inc *triage.Incident) string {
	if len(inc.Inputs) == 0 {
		return ""
	}
	return inc.Inputs[0].Path
}

// commonFrame names the innermost frame that all dumps share of a thread: of one
// that stands still the innermost at all, whatever lies behind it.
func commonFrame(s *hang.Series, st *hang.SeriesThread) string {
	still := st.Motion == hang.Stuck || st.Motion == hang.Waits || st.Motion == hang.Returned
	best := ""
	for k, i := range st.At {
		if i < 0 {
			continue
		}
		half := s.Incidents[k].Threads[i].User
		if half == nil {
			half = s.Incidents[k].Threads[i].Kernel
		}
		if half == nil {
			continue
		}
		n := st.Common
		if still {
			n = len(half.Frames)
		}
		if n == 0 || n > len(half.Frames) {
			continue
		}
		f := &half.Frames[len(half.Frames)-n]
		if best == "" || f.Name.Function != "" {
			best = callSite(f, half.Registers.Arch)
		}
		if f.Name.Function != "" {
			break // the dump before may have lacked its image
		}
	}
	return best
}

// seriesReason is one sentence on what a series shows.
func seriesReason(s *hang.Series) string {
	last := len(s.Incidents) - 1
	name := hangNames(s.Incidents[0])
	over := ""
	if s.Elapsed > 0 {
		over = fmt.Sprintf(" over %g s", s.Elapsed.Seconds())
	}
	count := func(m hang.Motion) int {
		n := 0
		for i := range s.Threads {
			if s.Threads[i].Motion == m {
				n++
			}
		}
		return n
	}
	subject := ""
	if s.Subject >= 0 {
		st := &s.Threads[s.Subject]
		if i := st.At[last]; i >= 0 {
			subject = fmt.Sprintf("thread %s %s", name(st.ID), waitText(s.Incidents[last], &s.Verdicts[last].Waits[i], name))
		}
	}
	switch s.Progress {
	case hang.StaysDeadlocked:
		var ids []string
		for _, id := range s.Cycle {
			ids = append(ids, name(id))
		}
		verb := "seem to wait" // where no dump proves it
		for _, v := range s.Verdicts {
			if v.State == hang.Deadlock || v.State == hang.SelfDeadlock {
				verb = "wait"
			}
		}
		return fmt.Sprintf("threads %s %s for each other in every dump%s", strings.Join(ids, ", "), verb, over)
	case hang.StaysHung:
		return "stuck at the same place in every dump" + over + ": " + subject
	case hang.AfterCrash:
		return crashesText(s, name)
	case hang.StaysBusy:
		return fmt.Sprintf("thread %s used %.0f%% of a processor%s", name(s.Threads[s.Subject].ID), 100*s.Threads[s.Subject].Share, over)
	case hang.Progresses:
		return "the process goes on: " + progressText(count)
	case hang.StaysIdle:
		return "every thread waits for work in every dump"
	}
	if s.SameMoment {
		return "the dumps show the same moment: whether anything moves cannot be told"
	}
	return "the stacks cannot be compared"
}

// crashesText says which dumps are of a crash, which their threads' motions are
// about only if the process went on.
func crashesText(s *hang.Series, name func(uint32) string) string {
	var which []string
	for _, k := range s.Crashes {
		which = append(which, fmt.Sprint(k+1))
	}
	out := plural(len(which), "dump") + " (" + strings.Join(which, ", ") + ") were written for a crash, not for a hang; see triage of each"
	if len(which) == 1 {
		out = "dump " + which[0] + " was written for a crash, not for a hang; see triage of it"
	}
	inc := s.Incidents[s.Crashes[len(s.Crashes)-1]]
	if c := inc.Crashing; c >= 0 {
		out += ": " + joinWith(", ", "thread "+name(inc.Threads[c].ID), crashName(inc))
	}
	return out
}

// crashName names the exception or the bugcheck that a dump was written for.
func crashName(inc *triage.Incident) string {
	switch {
	case inc.Crash != nil:
		return cmp.Or(codes.Exception(inc.Crash.Code), fmt.Sprintf("%08x", inc.Crash.Code))
	case inc.BugCheck != nil:
		name, _, _ := codes.BugCheck(inc.BugCheck.Code)
		return cmp.Or(name, fmt.Sprintf("%x", inc.BugCheck.Code))
	}
	return ""
}

// progressText counts what threads did, and those that did nothing.
func progressText(count func(hang.Motion) int) string {
	parts := []string{fmt.Sprintf("%s moved or ran", plural(count(hang.Moved)+count(hang.Returned)+count(hang.Busy), "thread"))}
	if n := count(hang.Started) + count(hang.Ended); n > 0 {
		parts = append(parts, fmt.Sprintf("%d began or ended", n))
	}
	if n := count(hang.Stuck); n == 1 {
		parts = append(parts, "1 is stuck")
	} else {
		parts = append(parts, fmt.Sprintf("%d are stuck", n))
	}
	return strings.Join(parts, ", ")
}

// motionTexts put into words what a thread did.
var motionTexts = map[hang.Motion]string{
	hang.Stuck: "stuck", hang.Waits: "waits for work", hang.Returned: "ran, and is back", hang.Moved: "moved",
	hang.Busy: "busy", hang.Started: "started", hang.Ended: "ended", hang.Unseen: "not known",
}

// seriesID is a thread's id with that of its own process: the idle threads of a
// dump of a whole system are not of the process that the series is about.
func (t *text) seriesID(s *hang.Series, st *hang.SeriesThread) string {
	for k, i := range st.At {
		if i >= 0 {
			return t.idOf(&s.Incidents[k].Threads[i])
		}
	}
	return t.threadID(st.ID)
}

// CompareText writes a series for people: what it shows, the dumps, and a line
// for every thread.
func CompareText(w io.Writer, s *hang.Series, opt Options) error {
	opt.hide(s)
	first, last := s.Incidents[0], len(s.Incidents)-1
	t := newText(w, opt, first.System.Arch)
	t.pid = pid(first)
	t.line(sgrBold, "Verdict: %s: %s", s.Progress, clean(seriesReason(s)))
	for k, inc := range s.Incidents {
		state := strings.ReplaceAll(string(s.Verdicts[k].State), "_", " ")
		if slices.Contains(s.Crashes, k) {
			state = joinWith(", ", "crash", crashName(inc))
		}
		t.line("", "Dump %d:  %s", k+1, clean(joinWith(", ", seriesPath(inc), timeText(inc.Captured), state)))
	}
	for _, warning := range s.Warnings {
		t.line(sgrYellow, "Note:    %s", clean(warning))
	}
	t.line("", "")
	t.line(sgrBold, "Thread      Motion            CPU         Now, and the innermost frame that all dumps share")
	for n := range s.Threads {
		st := &s.Threads[n]
		cpu := "-"
		if st.HasCPU {
			cpu = fmt.Sprintf("%.2f s", st.CPU.Seconds())
			if s.Elapsed > 0 {
				cpu += fmt.Sprintf(" %3.0f%%", 100*st.Share)
			}
		}
		now := ""
		if i := st.At[last]; i >= 0 {
			now = waitText(s.Incidents[last], &s.Verdicts[last].Waits[i], t.threadID)
		}
		sgr := ""
		if n == s.Subject {
			sgr = sgrRed
		}
		t.line(sgr, "%-11s %-17s %-11s %s", t.seriesID(s, st), motionTexts[st.Motion], cpu, clean(joinWith("; at ", joinWith(": ", st.Name, now), commonFrame(s, st))))
	}
	t.missing(seriesMissing(s))
	_, errs := seriesInputs(s)
	t.errors(errs)
	return t.flush()
}
