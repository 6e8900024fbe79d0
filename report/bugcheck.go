package report

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/verdict"
)

// bugVerdict is the judgement of the bugcheck, nil when nobody judged it.
func bugVerdict(v *verdict.Verdict) *bugcheck.Verdict {
	if v == nil {
		return nil
	}
	return v.BugCheck
}

func bugCheckJSON(b *triage.BugCheck, v *bugcheck.Verdict, h hexer, arch dump.Arch) *BugCheckJSON {
	if b == nil {
		return nil
	}
	name, _, _ := codes.BugCheck(b.Code)
	text := codes.BugCheckTextOf(b.Code, arch.Narrow(b.Parameters[0]))
	j := &BugCheckJSON{Code: hex32(b.Code), RawCode: hex32(b.Raw), Name: name, Class: string(text.Class), Summary: text.Summary, Live: b.Live, BrokenDriver: b.BrokenDriver}
	values := b.Parameters
	for i := range values {
		values[i] = arch.Narrow(values[i])
		j.Parameters = append(j.Parameters, cmp.Or(b.Hidden[i], h.addr(values[i])))
	}
	if d := codes.BugCheckDocumented(b.Code); d != codes.Documented {
		j.Documented = string(d)
	}
	params, unverified := codes.BugCheckParams(b.Code, values)
	if params != ([4]codes.Param{}) {
		j.Unverified = unverified
		for _, p := range params {
			j.ParameterMeaning = append(j.ParameterMeaning, p.Meaning)
		}
	}
	if v == nil {
		return j
	}
	j.Live = v.Live
	for i := range v.Parameters {
		j.ParameterDetails = append(j.ParameterDetails, parameterJSON(&v.Parameters[i], h))
	}
	j.Blame = bugBlameJSON(&v.Blame, h)
	j.Fault = faultJSON(&b.Fault, h)
	if e := b.Exception; e != nil {
		j.Exception = &BugCheckExcJSON{Code: hex32(e.Code), Name: codes.Exception(e.Code), Address: h.known(arch.Narrow(e.Address))}
		for _, p := range e.Parameters {
			j.Exception.Parameters = append(j.Exception.Parameters, h.addr(arch.Narrow(p)))
		}
	}
	j.stackParts(v, h)
	j.HardwareError = hardwareJSON(v.Hardware, h)
	for _, s := range v.Blobs {
		j.SecondaryData = append(j.SecondaryData, SecondaryDataJSON{guidText(s.GUID), s.Name, s.Holds, s.Size})
	}
	return j
}

func (j *BugCheckJSON) stackParts(v *bugcheck.Verdict, h hexer) {
	for i := range v.Drivers {
		d := &v.Drivers[i]
		j.Drivers = append(j.Drivers, DriverOnStackJSON{d.Module.Name(), d.Frames, index(d.First), h.addr(d.Address), driverFound(d), d.Frames == 0 && d.AfterCall == bugcheck.CallFound})
	}
	for i := range v.Unloaded {
		u := &v.Unloaded[i]
		j.UnloadedHits = append(j.UnloadedHits, BugUnloadedJSON{u.Module.Name(), h.addr(u.Address - u.Module.Base), ordinal(u.Parameter), index(u.Frame)})
	}
	for i := range v.IRPs {
		j.IRPs = append(j.IRPs, irpJSON(&v.IRPs[i], h))
	}
	j.Device = deviceNodeJSON(v.Device, h)
	j.Power = powerJSON(v.Power, h)
	j.Hung, j.Profile = hungJSON(v.Hung, h), profileJSON(v.Profile, h)
	j.StackUse = stackUseJSON(v.Stack)
}

func stackUseJSON(u *bugcheck.StackUse) *StackUseJSON {
	if u == nil {
		return nil
	}
	j := &StackUseJSON{Size: u.Size, Left: u.Left, Overflow: u.Overflow}
	for i := range u.Modules {
		m := &u.Modules[i]
		j.Modules = append(j.Modules, ModuleStackJSON{m.Module.Name(), m.Bytes, m.Frames})
	}
	return j
}

func driverFound(d *bugcheck.DriverOnStack) string {
	switch {
	case d.Frames == 0:
		return "stack"
	case d.Scanned:
		return "scan"
	}
	return "unwound"
}

// index is nil for -1.
func index(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// ordinal counts parameters from 1, as everybody does; nil for -1.
func ordinal(i int) *int {
	if i < 0 {
		return nil
	}
	i++
	return &i
}

func parameterJSON(p *bugcheck.Parameter, h hexer) ParameterJSON {
	j := ParameterJSON{Kind: string(p.Kind), Name: p.Name, Text: p.Text, Missing: p.Missing, Region: string(p.Region), Unnamed: p.Unnamed}
	if p.Frame != nil {
		j.Module, j.Offset, j.Symbol = frameParts(p.Frame, h)
	}
	return j
}

func frameParts(f *triage.Frame, h hexer) (module, offset, symbol string) {
	if f.Module != nil && f.Module.Module != nil {
		module, offset = f.Module.Name(), h.addr(f.IP-f.Module.Base)
	}
	return module, offset, nameText(&f.Name)
}

func nameText(n *symbols.Name) string {
	if n.Function == "" {
		return ""
	}
	return n.Function + plus(n.Offset)
}

func bugBlameJSON(b *bugcheck.Blame, h hexer) *BlameJSON {
	if b.Culprit == bugcheck.CulpritNone {
		return nil
	}
	j := &BlameJSON{Culprit: string(b.Culprit), Name: b.Name, Frame: index(b.Index), Parameter: ordinal(b.Parameter),
		Step: b.Step, Rule: stepWords[b.Step], Source: b.Source, Confidence: b.Confidence}
	if b.Module != nil && b.Module.Module != nil {
		j.Module, j.Version = b.Module.Name(), version(b.Module.Version)
		if b.Address != 0 {
			j.Offset = h.addr(b.Address - b.Module.Base)
		}
	}
	if b.Frame != nil {
		j.Symbol = nameText(&b.Frame.Name)
	}
	return j
}

// stepWords says why, by the step of the ladder.
var stepWords = map[string]string{
	"requested":     "somebody asked for the dump: the code tells of no failure",
	"processor":     "driver on the stack of the processor that hangs",
	"hardware":      "a code that hardware raises",
	"process":       "the process that ended",
	"stack":         "driver that used most of the stack that overflowed",
	"context":       "module of the instruction at fault",
	"parameter":     "driver that a parameter leads to",
	"broken_driver": "named by the kernel itself",
	"unloaded":      "an address lies where it had been loaded",
	"profile":       "driver with the most addresses in the DPC watchdog's profile",
	"frame":         "first driver on the stack from the fault outwards",
	"scan":          "driver whose address a search of the stack found",
	"kernel":        "only the kernel is on the stack: it fails on what drivers hand it",
}

func faultJSON(f *triage.Fault, h hexer) *FaultJSON {
	if f.Source == dump.ContextNone {
		return nil
	}
	j := &FaultJSON{Context: contextWords[f.Source], Parameter: ordinal(f.Parameter), Missing: f.Missing, TrapFrame: h.known(f.TrapFrame), Frame: index(f.Index)}
	if f.At != nil {
		j.Address = h.addr(f.At.IP)
		j.Module, j.Offset, j.Symbol = frameParts(f.At, h)
	}
	return j
}

var contextWords = map[dump.ContextSource]string{
	dump.ContextHeader: "header", dump.ContextParameter: "context_record", dump.ContextTrapFrame: "trap_frame",
	dump.ContextTask: "task_state",
}

// guidText writes a GUID as it stands in memory the way registries do.
func guidText(g [16]byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", le.Uint32(g[:4]), le.Uint16(g[4:6]), le.Uint16(g[6:8]), g[8:10], g[10:])
}

// bugCheckReason is a bugcheck in one sentence.
func bugCheckReason(b *triage.BugCheck, v *bugcheck.Verdict) string {
	name, _, _ := codes.BugCheck(b.Code)
	if name == "" {
		name = fmt.Sprintf("bugcheck %#x, which is not public", b.Code)
	}
	if v == nil {
		return name
	}
	what := v.Summary
	if v.Sub >= 0 && v.Parameters[v.Sub].Name != "" {
		what = joinWith(": ", what, v.Parameters[v.Sub].Name)
	}
	if holder := irpHolder(v); holder != "" {
		what += ", which " + holder + " has"
	}
	return joinWith(": ", name, what)
}

// bugBlameText names who is blamed, without an offset in the function; "" nobody.
func bugBlameText(b *bugcheck.Blame) string {
	switch {
	case b.Culprit == bugcheck.CulpritHardware:
		return "hardware"
	case b.Culprit == bugcheck.CulpritNobody:
		return ""
	case b.Frame != nil:
		return blameText(b.Frame)
	case b.Module != nil && b.Module.Module != nil:
		return moduleAlias(b.Module.Module)
	}
	return clean(b.Name)
}
