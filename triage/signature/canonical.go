package signature

import (
	"fmt"
	"strings"

	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/rules"
	"dumptriage/unwind"
)

// A canonical frame is "module!function": the image's base name in lower case
// without its extension ("nt" for every kernel), and
//
//	module!name        the function's name, normalised (see Normalize)
//	module!fn#0a1b...  no name, but the function's body is at hand: its hash (see Body)
//	module!fn@1a2b0    no name and no hash: the RVA that .pdata says it begins at
//	module+1a2c4       nothing known of the function: the RVA of the frame
//	module.dll+1a2c4   the same in a module that had been unloaded, with its extension
//	module!Ns.Type.Method   a .NET method, without arguments, compiled at run time or not
//	module!06000010    a .NET method without a name: its token
//	[jit]              code made at run time, of which tables told
//
// Code that lies in no module and of which nothing is known has no canonical
// frame: its address means nothing in another process.
const jitName = "[jit]"

// canonical is a frame's module and function as rules match them, and its name.
type canonical struct {
	module, function string
	name             string // "" when it has none
	internal         bool   // an [internal] rule matched
	exact            string // what exact ids are made of, "" the name
}

// namer names the frames of a half.
type namer struct {
	rules  *Rules
	view   *triage.View
	bodies map[uint64]string // by the function's start
}

// frame names frame i.
func (n *namer) frame(frames []triage.Frame, i int) canonical {
	f := &frames[i]
	if f.Managed != nil {
		if c := managedFrame(f.Managed); c.name != "" {
			return c
		}
	}
	if f.Module == nil || f.Module.Module == nil {
		return outsideModules(frames, i)
	}
	return n.inModule(f)
}

func (n *namer) inModule(f *triage.Frame) canonical {
	c := canonical{module: rules.Module(f.Module.Name())}
	switch {
	case f.Name.Function == "":
		c.name = fmt.Sprintf("%s+%x", c.module, f.IP-f.Module.Base)
		return c
	case f.Name.Source != symbols.SourcePdata:
		c.function = Normalize(f.Name.Function)
	default:
		c.function = f.Name.Function
		if body := n.body(f); body != "" {
			c.function = "fn#" + body
		}
	}
	c.name = c.module + "!" + c.function
	return c
}

// exact is what exact ids have for a frame of the system that debug information
// named: what it would be called without. So a dump has one exact id with the
// system's symbols and without. "" stands for the frame's name.
func (n *namer) exact(f *triage.Frame, c *canonical) string {
	switch f.Name.Source {
	case symbols.SourceExport, symbols.SourcePdata, symbols.SourceNone, symbols.SourceCLR:
		return ""
	}
	if c.module == "" || n.rules == nil || n.rules.system.Find(c.module, c.function) == nil {
		return ""
	}
	bare := *f
	bare.Name = n.view.ImageName(f)
	named := n.inModule(&bare)
	return named.name
}

// body hashes the function that a frame is in, once: recursions are long.
func (n *namer) body(f *triage.Frame) string {
	start := f.IP - f.Name.Offset
	body, done := n.bodies[start]
	if !done {
		body = Body(n.view.FunctionCode(f, MaxBody))
		if n.bodies == nil {
			n.bodies = map[uint64]string{}
		}
		n.bodies[start] = body
	}
	return body
}

func outsideModules(frames []triage.Frame, i int) canonical {
	f := &frames[i]
	switch {
	case f.Name.Function != "":
		n := Normalize(f.Name.Function)
		return canonical{function: n, name: n}
	case len(f.Unloaded) > 0:
		u := f.Unloaded[0]
		return canonical{module: rules.Module(u.Module.Name()), name: fmt.Sprintf("%s+%x", strings.ToLower(u.Module.Name()), u.Offset)}
	case i+1 < len(frames) && madeAtRunTime(frames[i+1].Method):
		return canonical{name: jitName}
	}
	return canonical{}
}

// madeAtRunTime reports whether the frame that was found by a method was called
// by code that a table of generated code describes.
func madeAtRunTime(m unwind.Method) bool {
	return m == unwind.MethodFunctionTable || m == unwind.MethodDynamicTable || m == unwind.MethodCodeHeap
}

// splitName takes a canonical name's module off.
func splitName(name string) (module, rest string) {
	if i := strings.IndexAny(name, "!+"); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
