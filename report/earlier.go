package report

import (
	"fmt"
	"strconv"

	"dumptriage/triage"
	"dumptriage/triage/crash"
)

// EarlierJSON is an exception that the thread was raising or handling when the one of
// the verdict came.
type EarlierJSON struct {
	Type       string      `json:"type"`
	Code       string      `json:"code"`
	Address    string      `json:"address" jsonschema_description:"where it was raised"`
	Parameters []string    `json:"parameters,omitempty"`
	Record     string      `json:"record" jsonschema_description:"address of its EXCEPTION_RECORD"`
	Found      string      `json:"found" jsonschema_description:"nested: the exception's own record points to it; frame: in a frame that raises or dispatches; stack: left on the stack, and may be over"`
	ThreadID   *uint32     `json:"thread_id,omitempty" jsonschema_description:"of analysis.raising"`
	Frame      *int        `json:"frame,omitempty" jsonschema_description:"index in the thread's frames of the frame whose stack holds the record"`
	By         string      `json:"by,omitempty" jsonschema_description:"who raised it"`
	Exception  *ThrownJSON `json:"exception,omitempty" jsonschema_description:"object of a C++ exception"`
}

func earlierJSON(list []crash.Earlier, h hexer) []EarlierJSON {
	var out []EarlierJSON
	for i := range list {
		e := &list[i]
		j := EarlierJSON{Type: CrashType(&e.Exception), Code: hex32(e.Code), Address: h.addr(e.Address), Record: h.addr(e.At),
			Parameters: parametersJSON(e.Parameters, h), Found: foundEarlier(e), Exception: thrownJSON(e.Thrown, h)}
		if e.Frame >= 0 {
			j.Frame = &e.Frame
		}
		if e.By != nil {
			j.By = blameText(e.By)
		}
		out = append(out, j)
	}
	return out
}

// briefEarlier is the innermost of them without what takes space.
func briefEarlier(list []EarlierJSON) []EarlierJSON {
	if len(list) == 0 {
		return nil
	}
	e := list[0]
	e.Parameters, e.By = nil, cut(e.By, briefWidth)
	if o := e.Exception; o != nil {
		o.Types, o.Type, o.Message = nil, cut(o.Type, briefWidth), cut(o.Message, briefWidth)
	}
	return []EarlierJSON{e}
}

func foundEarlier(e *crash.Earlier) string {
	switch {
	case e.Nested:
		return "nested"
	case e.Live:
		return "frame"
	}
	return "stack"
}

func parametersJSON(params []uint64, h hexer) []string {
	var out []string
	for _, p := range params {
		out = append(out, h.addr(p))
	}
	return out
}

func thrownJSON(t *crash.Thrown, h hexer) *ThrownJSON {
	if t == nil {
		return nil
	}
	j := &ThrownJSON{Message: t.Message, Address: h.known(t.Address), Rethrown: t.Again}
	if len(t.Types) > 0 {
		j.Type, j.Types = t.Types[0], t.Types
	}
	if t.HasHR {
		j.HResult, j.TypesByHResult = hex32(t.HResult), t.ByHResult
	}
	return j
}

// raisingJSON are the exceptions that threads were raising, with the threads.
func raisingJSON(list []crash.Earlier, h hexer) []EarlierJSON {
	out := earlierJSON(list, h)
	for i := range out {
		out[i].ThreadID = &list[i].ThreadID
	}
	return out
}

// raising writes which threads were raising or handling exceptions.
func (t *text) raising(inc *triage.Incident, list []crash.Earlier, opt Options) {
	for i := range list {
		if opt.Brief && i > 0 {
			return
		}
		t.fact(opt, sgrYellow, "Raising", "thread "+t.threadID(list[i].ThreadID)+": "+t.earlierWords(inc, &list[i]))
	}
}

// earlierWords say what an exception was that came before.
func (t *text) earlierWords(inc *triage.Incident, e *crash.Earlier) string {
	what := codeWords(&e.Exception)
	if o := e.Thrown; o != nil && len(o.Types) > 0 {
		what = joinWith(" ", "C++ exception "+o.Types[0], quoted(o.Message))
	}
	at := inc.UserSpace.Name(e.Address)
	by := "raised at " + callSite(&at, t.arch)
	if e.By != nil {
		by = "raised by " + callSite(e.By, t.arch)
	}
	how := map[string]string{"nested": "the exception's record points to it", "frame": "frame " + strconv.Itoa(e.Frame),
		"stack": "left on the stack, it may be over"}[foundEarlier(e)]
	return joinWith(", ", what, by, how)
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}

// parameters writes what an exception was raised with, but for those whose parameters are
// said in words.
func (t *text) parameters(c *triage.Crash) {
	switch c.Code {
	case codeAccessViolation, codeInPageError, codeStackBufferOverrun, 0x80000003:
		return
	}
	if len(c.Parameters) == 0 {
		return
	}
	var list string
	for i, p := range c.Parameters {
		list = joinWith(" ", list, fmt.Sprintf("%d: %s", i, t.addr(t.arch.Narrow(p))))
	}
	t.line("", "         parameters %s", list)
}
