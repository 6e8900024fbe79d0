package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/managed"
	"dumptriage/triage"
)

// ManagedFrame is a .NET method.
type ManagedFrame struct {
	Kind   string `json:"kind,omitempty" jsonschema:"enum=jit,enum=r2r,enum=stub,enum=dynamic" jsonschema_description:"compiled at run time, ahead of time (ReadyToRun), made by the runtime, compiled for no metadata"`
	Module string `json:"module,omitempty" jsonschema_description:"file name of the method's module"`
	MVID   string `json:"mvid,omitempty" jsonschema_description:"of the build of that module"`
	Type   string `json:"type,omitempty"`
	Method string `json:"method,omitempty"`
	Token  string `json:"token,omitempty" jsonschema_description:"MethodDef token, 8 hexadecimal digits"`
	Source string `json:"source,omitempty" jsonschema:"enum=contracts,enum=image,enum=layout" jsonschema_description:"what the name is by: the runtime's own descriptor, the tables of a ReadyToRun image, or a layout known of such versions"`
	Note   string `json:"note,omitempty" jsonschema_description:"why there is no name, or what is missing of it"`
}

// ManagedThread is a .NET thread.
type ManagedThread struct {
	ThreadID  *uint32           `json:"thread_id,omitempty" jsonschema_description:"the managed id"`
	Name      string            `json:"name,omitempty"`
	Exception *ManagedException `json:"exception,omitempty"`
}

// ManagedException is a .NET exception that a thread was handling, or the last that
// it threw.
type ManagedException struct {
	Type       string             `json:"type,omitempty"`
	Bases      []string           `json:"bases,omitempty" jsonschema_description:"types that it is derived from, its own parent first"`
	Message    string             `json:"message,omitempty"`
	Cut        bool               `json:"message_cut,omitempty" jsonschema_description:"the message is longer"`
	HResult    string             `json:"hresult,omitempty"`
	Address    string             `json:"address,omitempty"`
	LastThrown bool               `json:"last_thrown,omitempty" jsonschema_description:"it is the last that the thread threw, and not known to be being handled"`
	Inner      []ManagedException `json:"inner,omitempty" jsonschema_description:"inner exceptions from the outside in"`
	Stack      []TraceFrameJSON   `json:"stack,omitempty" jsonschema_description:"the stack trace that the exception carries, innermost first"`
	Note       string             `json:"note,omitempty"`
}

// TraceFrameJSON is a frame of the stack trace that an exception carries.
type TraceFrameJSON struct {
	IP      string        `json:"ip"`
	Managed *ManagedFrame `json:"managed,omitempty"`
}

// RuntimeJSON is the .NET runtime of the process.
type RuntimeJSON struct {
	Module string `json:"module,omitempty"`
	Source string `json:"source,omitempty" jsonschema:"enum=contracts,enum=layout" jsonschema_description:"what its structures are read by; absent when nothing tells where they are"`
	Note   string `json:"note,omitempty" jsonschema_description:"what could not be read"`
}

func runtimeJSON(r *triage.ManagedRuntime) *RuntimeJSON {
	if r == nil {
		return nil
	}
	return &RuntimeJSON{Module: r.Host, Source: string(r.Source), Note: clean(r.Note)}
}

// runtime says which .NET runtime the process has.
func (t *text) runtime(r *triage.ManagedRuntime) {
	if r == nil {
		return
	}
	how := "nothing tells where its structures are"
	switch r.Source {
	case managed.SourceContracts:
		how = "by its own contract descriptor"
	case managed.SourceLayout:
		how = "by its code heaps alone"
	}
	t.line("", ".NET:    %s", joinWith(", ", clean(r.Host), how))
	if r.Note != "" {
		t.line(sgrYellow, "         %s", clean(r.Note))
	}
}

func managedFrameJSON(m *managed.Method) *ManagedFrame {
	if m == nil {
		return nil
	}
	j := &ManagedFrame{Kind: string(m.Kind), Module: clean(m.Module), MVID: m.MVID, Type: clean(m.Type), Method: clean(m.Name), Source: string(m.Source), Note: clean(m.Note)}
	if m.Token != 0 {
		j.Token = fmt.Sprintf("%08x", m.Token)
	}
	return j
}

func managedThreadJSON(t *managed.Thread, h hexer) *ManagedThread {
	if t == nil {
		return nil
	}
	j := &ManagedThread{ThreadID: &t.ID, Name: clean(t.Name)}
	if t.Exception != nil {
		e := managedExceptionJSON(t.Exception, h)
		e.LastThrown = t.LastThrown
		for i := range t.Exception.Inner {
			e.Inner = append(e.Inner, managedExceptionJSON(&t.Exception.Inner[i], h))
		}
		j.Exception = &e
	}
	return j
}

func managedExceptionJSON(e *managed.Exception, h hexer) ManagedException {
	j := ManagedException{Type: clean(e.Type), Bases: e.Bases, Message: e.Message, Cut: e.Cut, Address: h.known(e.Address), Note: clean(e.Note)}
	if e.HasHR {
		j.HResult = hex32(e.HResult)
	}
	for _, f := range e.Stack {
		j.Stack = append(j.Stack, TraceFrameJSON{h.addr(f.IP), managedFrameJSON(f.Method)})
	}
	return j
}

// managedSite names a frame in .NET code outside modules.
func managedSite(f *triage.Frame, arch dump.Arch) string {
	m := f.Managed
	module := clean(managedModule(m.Module))
	switch {
	case f.Name.Function != "" && module != "":
		return module + "!" + clean(f.Name.Function) + plus(f.Name.Offset)
	case f.Name.Function != "":
		return clean(f.Name.Function) + plus(f.Name.Offset)
	case m.Token != 0 && module != "":
		return fmt.Sprintf("%s!%08x%s", module, m.Token, plus(f.IP-m.Start))
	case m.Kind == managed.KindStub:
		return "0x" + address(f.IP, arch) + " (.NET stub)"
	}
	return "0x" + address(f.IP, arch) + " (.NET code)"
}

// managedModule is a module's name without its extension, as debuggers print it.
func managedModule(name string) string {
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, ".dll") || strings.HasSuffix(lower, ".exe") {
		return name[:len(name)-4]
	}
	return name
}

// traceFrames is how many frames of an exception's own stack trace are shown.
const traceFrames = 16

// managedException writes the exception of a managed thread.
func (t *text) managedException(th *triage.Thread) {
	if th.Managed == nil || th.Managed.Exception == nil {
		return
	}
	e := th.Managed.Exception
	what := "   .NET exception:"
	if th.Managed.LastThrown {
		what = "   last .NET exception:"
	}
	t.line(sgrYellow, "%s %s", what, exceptionText(e))
	t.exceptionTrace(e)
	for i := range e.Inner {
		t.line(sgrYellow, "   inner exception: %s", exceptionText(&e.Inner[i]))
		t.exceptionTrace(&e.Inner[i])
	}
}

// exceptionText is "Type: message (0x80131509)".
func exceptionText(e *managed.Exception) string {
	s := joinWith(": ", clean(e.Type), clean(strings.Join(strings.Fields(e.Message), " ")))
	if e.Cut {
		s += "..."
	}
	if e.HasHR {
		s = strings.TrimSpace(s + " (" + hex32(e.HResult) + ")")
	}
	if e.Note != "" {
		s = joinWith("; ", s, clean(e.Note))
	}
	return s
}

func (t *text) exceptionTrace(e *managed.Exception) {
	for i, f := range e.Stack {
		if i == traceFrames {
			t.line(sgrDim, "      ... %d more frames", len(e.Stack)-i)
			return
		}
		name := "0x" + address(f.IP, t.arch)
		if m := f.Method; m != nil && m.Name != "" {
			name = joinWith("!", clean(managedModule(m.Module)), clean(m.Declaration()))
		}
		t.line(sgrDim, "      at %s", name)
	}
}
