package bugcheck

import (
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// Culprit is the sort of thing that is blamed. Its text is part of the JSON contract.
type Culprit string

// The culprits.
const (
	CulpritNone     Culprit = ""       // nothing could be blamed
	CulpritNobody   Culprit = "nobody" // nothing failed
	CulpritDriver   Culprit = "driver"
	CulpritHardware Culprit = "hardware"
	CulpritProcess  Culprit = "process"
	CulpritKernel   Culprit = "kernel" // for want of anybody else
)

// step is a step of the ladder. Its text is part of the JSON contract.
type step string

const (
	stepRequested step = "requested"
	stepProcessor step = "processor"
	stepHardware  step = "hardware"
	stepProcess   step = "process"
	stepStack     step = "stack"
	stepContext   step = "context"
	stepParameter step = "parameter"
	stepBroken    step = "broken_driver"
	stepUnloaded  step = "unloaded"
	stepProfile   step = "profile"
	stepFrame     step = "frame"
	stepScan      step = "scan"
	stepKernel    step = "kernel"
)

var steps = []step{stepRequested, stepProcessor, stepHardware, stepProcess, stepStack, stepContext, stepParameter, stepBroken, stepUnloaded, stepProfile, stepFrame, stepScan, stepKernel}

// Blame is who is held responsible, by which step of the ladder, and how surely.
type Blame struct {
	Culprit    Culprit
	Module     *triage.Module // nil when it is none, or not loaded
	Name       string         // of the module, process or driver
	Address    uint64         // in Module, 0 when it is not an address that counts
	Frame      *triage.Frame  // names Address
	Index      int            // of the frame in the thread's kernel half, -1
	Parameter  int            // that led to it, -1
	Step       string         // of the ladder
	Source     string         // file:line of the rule about this code, "" none
	Confidence string         // high, medium, low
}

// blame climbs the ladder.
func (j *judge) blame() {
	blame, most, source := j.rules.of(j.v.Name, j.kind())
	for i := range j.rules.ladder {
		r := &j.rules.ladder[i]
		b := Blame{Index: -1, Parameter: -1, Step: r.Pattern.Function(), Confidence: r.Attrs["confidence"]}
		if !j.climb(step(b.Step), &b, blame) {
			continue
		}
		if most != "" && (b.Culprit == CulpritDriver || b.Culprit == CulpritHardware) {
			b.Confidence = least(b.Confidence, most)
			b.Source = source
		}
		if b.Name == "" && b.Module != nil {
			b.Name = b.Module.Name()
		}
		if s := step(b.Step); (j.v.Class == codes.ClassLive || j.v.Class == codes.ClassProcess) && (s == stepFrame || s == stepScan) {
			b.Confidence = "low" // who reported a problem, or saw a process end, is on the stack, not who made it
		}
		j.v.Blame = b
		return
	}
}

// kind is the value of the parameter that tells kinds of a code apart, of an exception
// its code.
func (j *judge) kind() uint64 {
	p := &j.v.Parameters[max(j.v.Sub, 0)]
	if p.Kind == codes.KindStatus {
		return uint64(uint32(p.Value))
	}
	return p.Value
}

// climb tries one step.
func (j *judge) climb(s step, b *Blame, blame string) bool {
	switch s {
	case stepRequested:
		b.Culprit = CulpritNobody
		return j.v.Class == codes.ClassRequested || blame == "nobody"
	case stepProcessor:
		return j.blameHung(b)
	case stepHardware:
		b.Culprit = CulpritHardware
		return blame == "hardware"
	case stepProcess:
		return j.v.Class == codes.ClassProcess && j.blameProcess(b)
	case stepStack:
		return j.blameStack(b)
	case stepContext:
		return j.blameContext(b)
	case stepParameter:
		return j.blameParameter(b)
	case stepBroken:
		b.Culprit, b.Name = CulpritDriver, dump.BaseName(j.bc.BrokenDriver)
		b.Module = j.moduleNamed(j.bc.BrokenDriver)
		return b.Name != ""
	case stepUnloaded:
		return j.blameUnloaded(b)
	case stepProfile:
		return j.blameProfile(b)
	case stepFrame:
		return j.blameFrame(b, false)
	case stepScan:
		return j.blameFrame(b, true) || j.blameScanned(b)
	case stepKernel:
		// Who ended a process, or changed protected code and is found out later, is not
		// the kernel that stands on the stack.
		return j.v.Class != codes.ClassProcess && j.v.Class != codes.ClassSecurity && j.blameKernel(b)
	}
	return false
}

// blameProcess takes the process that a parameter points to.
func (j *judge) blameProcess(b *Blame) bool {
	b.Culprit = CulpritProcess
	for i := range j.v.Parameters {
		p := &j.v.Parameters[i]
		name := p.Name
		if p.Kind == codes.KindThread {
			name = j.processOfThread(p.Value)
		} else if p.Kind == codes.KindText && strings.HasSuffix(strings.ToLower(p.Text), ".exe") {
			name = p.Text
		} else if p.Kind != codes.KindProcess {
			continue
		}
		if name != "" {
			b.Name, b.Parameter = name, i
			return true
		}
	}
	return false
}

// processOfThread names the process of a thread that the dump lists.
func (j *judge) processOfThread(va uint64) string {
	for i := range j.inc.Threads {
		k := j.inc.Threads[i].KernelInfo
		if k == nil || k.ETHREAD != va || k.EPROCESS == 0 {
			continue
		}
		for n := range j.inc.Processes {
			if p := &j.inc.Processes[n]; p.EPROCESS == k.EPROCESS {
				return p.Name
			}
		}
		if p := &j.inc.Process; p.EPROCESS == k.EPROCESS {
			return p.Name
		}
	}
	return ""
}

// blameContext takes the module of the faulting instruction, whose registers were
// found or which unwinding came through.
func (j *judge) blameContext(b *Blame) bool {
	f := &j.bc.Fault
	if f.At == nil || f.At.Module == nil || f.Source == dump.ContextHeader && f.Index < 0 {
		return false
	}
	b.Index, b.Parameter = f.Index, f.Parameter
	return j.blameAt(b, f.At)
}

// blameAt blames the module of an address. In a framework another driver on the
// stack goes first, and the framework itself is never blamed surely.
func (j *judge) blameAt(b *Blame, at *triage.Frame) bool {
	switch j.roleOf(at) {
	case roleKernel:
		return false
	case roleFramework:
		if j.hasDriver() {
			return false
		}
		b.Confidence = least(b.Confidence, "medium")
	}
	b.Culprit, b.Module, b.Address, b.Frame = CulpritDriver, at.Module, at.IP, at
	return true
}

func (j *judge) roleOf(f *triage.Frame) role {
	if f.Module == nil || f.Module.Module == nil || !f.Module.Kernel {
		return roleKernel
	}
	return j.rules.role(rules.Module(f.Module.Name()), f.Name.Function)
}

// hasDriver reports whether unwinding led to a driver that may be blamed.
func (j *judge) hasDriver() bool {
	frames, _ := j.faultFrames()
	return slices.ContainsFunc(frames, func(f triage.Frame) bool { return !scanned(&f) && j.roleOf(&f) == roleDriver })
}

// scanned reports whether only a search of the stack found a frame, or what it
// follows from, and nothing proves it.
func scanned(f *triage.Frame) bool { return !f.Certain() }

// blameParameter takes a driver that a parameter leads to: an instruction's address,
// an IRP's driver, a driver's name or object, a device. Who has an IRP comes before
// whose device it was sent to: that is a bus driver's.
func (j *judge) blameParameter(b *Blame) bool {
	for _, kinds := range [][]codes.ParamKind{{codes.KindCode}, {codes.KindIRP}, {codes.KindDriver}, {codes.KindUnicode, codes.KindText}, {codes.KindDevice}} {
		for i := range j.v.Parameters {
			if slices.Contains(kinds, j.v.Parameters[i].Kind) && j.blameOne(b, i) {
				b.Parameter = i
				return true
			}
		}
		if kinds[0] == codes.KindIRP && j.blamePower(b) {
			return true
		}
	}
	return j.blameObjectName(b)
}

// blameOne takes the driver that one parameter leads to.
func (j *judge) blameOne(b *Blame, i int) bool {
	p := &j.v.Parameters[i]
	var m *triage.Module
	switch p.Kind {
	case codes.KindCode:
		return p.Frame != nil && j.blameAt(b, p.Frame)
	case codes.KindUnicode, codes.KindText:
		m = j.moduleNamed(p.Text)
	case codes.KindDevice:
		m = j.driverOfParameter(i)
		if n := j.v.Device; n != nil && n.PDO == p.Value {
			if only := j.onlyDriver(n); only != nil {
				m = only
			}
			b.Confidence = least(b.Confidence, "medium")
		}
	default:
		m = j.driverOfParameter(i)
	}
	if m == nil || j.rules.role(rules.Module(m.Name()), "") == roleKernel {
		return false
	}
	b.Culprit, b.Module = CulpritDriver, m
	if j.rules.role(rules.Module(m.Name()), "") == roleFramework {
		b.Confidence = least(b.Confidence, "medium")
	}
	return true
}

// blameObjectName takes the driver of an IRP or device whose object has a name and
// whose image is not in the list.
func (j *judge) blameObjectName(b *Blame) bool {
	for i := range j.v.IRPs {
		if irp := &j.v.IRPs[i]; irp.DriverName != "" && irp.Driver == nil {
			b.Culprit, b.Name, b.Parameter = CulpritDriver, irp.DriverName, irp.Parameter
			return true
		}
	}
	return false
}

func (j *judge) blameUnloaded(b *Blame) bool {
	if len(j.v.Unloaded) == 0 {
		return false
	}
	u := &j.v.Unloaded[0]
	b.Culprit, b.Name, b.Address, b.Index, b.Parameter = CulpritDriver, u.Module.Name(), u.Address, u.Frame, u.Parameter
	return true
}

// blameFrame takes the first driver outwards from the fault, then the first
// framework. byScan takes those that only a search found.
func (j *judge) blameFrame(b *Blame, byScan bool) bool {
	frames, first := j.faultFrames()
	for _, want := range []role{roleDriver, roleFramework} {
		for i := range frames {
			f := &frames[i]
			if scanned(f) != byScan || f.Capture || j.roleOf(f) != want {
				continue
			}
			b.Culprit, b.Module, b.Address, b.Frame, b.Index = CulpritDriver, f.Module, f.IP, f, first+i
			if want == roleFramework {
				b.Confidence = "low"
			}
			return true
		}
	}
	return false
}

// blameScanned takes the innermost driver that the search of the stack found beyond
// the frames: one with a call before its address, else one whose code is not at hand.
func (j *judge) blameScanned(b *Blame) bool {
	for _, call := range []CallState{CallFound, NotKnown} {
		for i := range j.v.Drivers {
			d := &j.v.Drivers[i]
			if d.Frames == 0 && d.AfterCall == call && !d.Framework {
				b.Culprit, b.Module, b.Address = CulpritDriver, d.Module, d.Address
				return true
			}
		}
	}
	return false
}

// blameKernel names the kernel for want of anybody: the place of the fault, or the
// first frame that is not the bugcheck's own machinery.
func (j *judge) blameKernel(b *Blame) bool {
	if j.v.Live {
		return false
	}
	at := j.bc.Fault.At
	b.Index = j.bc.Fault.Index
	if at == nil || at.Module == nil {
		at, b.Index = j.firstOfKernel()
	}
	if at == nil {
		return false
	}
	b.Culprit, b.Module = CulpritKernel, at.Module
	if at.Name.Function != "" || j.bc.Fault.At == at { // else it may be the bugcheck's own machinery
		b.Address, b.Frame = at.IP, at
	} else {
		b.Index = -1
	}
	return true
}

// machinery begins the names of what a bugcheck itself puts on the stack.
var machinery = []string{"KeBugCheck", "KiBugCheck", "KiExceptionDispatch", "KiFastFailDispatch", "KiPageFault", "KxBugCheck"}

func (j *judge) firstOfKernel() (*triage.Frame, int) {
	for i := range j.frames {
		f := &j.frames[i]
		if f.Module == nil || !f.Module.Kernel || i == 0 && len(j.frames) > 1 {
			continue // frame 0 is KeBugCheckEx, whether it has its name or not
		}
		if !slices.ContainsFunc(machinery, func(s string) bool { return strings.HasPrefix(f.Name.Function, s) }) {
			return f, i
		}
	}
	return nil, -1
}

func moduleKey(name string) string { return rules.Module(name) }
