package report

import (
	"fmt"
	"strings"

	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

// HungCPUJSON is the processor that a clock watchdog found hanging.
type HungCPUJSON struct {
	CPU       *uint32 `json:"cpu,omitempty" jsonschema_description:"its number"`
	Parameter int     `json:"parameter" jsonschema_description:"1 to 4: that says so"`
	InDump    bool    `json:"in_dump" jsonschema_description:"the processor's state is in the dump; cpus shows its stack"`
	Idle      bool    `json:"idle,omitempty"`
	Stack     string  `json:"stack,omitempty" jsonschema_description:"dpc or interrupt: it was on that stack of its own; unknown: on one of them"`
	Thread    string  `json:"thread,omitempty" jsonschema_description:"process and thread id in hexadecimal"`
	At        string  `json:"at,omitempty" jsonschema_description:"innermost frame of a driver on its stack"`
	Frame     *int    `json:"frame,omitempty" jsonschema_description:"its index there"`
}

// ProfileJSON is what the DPC watchdog captured of a processor's stacks.
type ProfileJSON struct {
	Parameter int                 `json:"parameter" jsonschema_description:"1 to 4: that points to the watchdog's block"`
	PRCB      string              `json:"prcb"`
	Address   string              `json:"address,omitempty" jsonschema_description:"of the captured addresses; none when the processor has no profile"`
	Missing   bool                `json:"missing,omitempty" jsonschema_description:"the dump does not hold it"`
	Addresses int                 `json:"addresses" jsonschema_description:"in a module"`
	Drivers   []ProfileDriverJSON `json:"drivers,omitempty" jsonschema_description:"those with the most addresses first, the kernel left out"`
}

// ProfileDriverJSON is a driver of a profile.
type ProfileDriverJSON struct {
	Module    string `json:"module"`
	Addresses int    `json:"addresses"`
	First     string `json:"first" jsonschema_description:"offset in the module of the first address"`
}

func hungJSON(v *bugcheck.HungCPU, h hexer) *HungCPUJSON {
	if v == nil {
		return nil
	}
	j := &HungCPUJSON{Parameter: v.Parameter + 1, InDump: v.CPU != nil && v.CPU.Kernel != nil, Thread: v.Thread, Frame: index(v.Index)}
	if v.Known {
		j.CPU = &v.Number
	}
	if v.CPU != nil {
		j.Idle = v.CPU.Idle
		if v.CPU.Switched != nil {
			j.Stack = v.CPU.Switched.Kind
		}
	}
	if v.Frame != nil {
		j.At = frameText(v.Frame, h)
	}
	return j
}

func profileJSON(p *bugcheck.Profile, h hexer) *ProfileJSON {
	if p == nil {
		return nil
	}
	j := &ProfileJSON{Parameter: p.Parameter + 1, PRCB: h.addr(p.PRCB), Address: h.known(p.Array), Missing: p.Missing, Addresses: p.Addresses}
	for _, d := range p.Drivers {
		j.Drivers = append(j.Drivers, ProfileDriverJSON{d.Module.Name(), d.Addresses, h.addr(d.First - d.Module.Base)})
	}
	return j
}

// watchdog writes what watchdogs say.
func (t *text) watchdog(inc *triage.Incident, v *bugcheck.Verdict, opt Options) {
	if h := v.Hung; h != nil {
		t.fact(opt, "", "Hangs", t.hungWords(inc, h))
	}
	if p := v.Profile; p != nil {
		t.fact(opt, "", "Profile", profileWords(p))
	}
}

func (t *text) hungWords(inc *triage.Incident, h *bugcheck.HungCPU) string {
	if !h.Known {
		return "a processor whose state is not in the dump"
	}
	if h.CPU == nil {
		return fmt.Sprintf("processor %d, whose state is not in the dump", h.Number)
	}
	words := strings.Replace(strings.Replace(cpuText(inc, h.CPU), "Processor", "processor", 1), "  ", ", ", 1)
	switch {
	case h.Frame != nil:
		words += ", in " + callSite(h.Frame, t.arch)
	case h.CPU.Kernel == nil:
		words += ", its registers are not in the dump"
	default:
		words += ", no driver on its stack"
	}
	return words
}

func profileWords(p *bugcheck.Profile) string {
	switch {
	case p.Missing:
		return "what the watchdog captured is not in the dump"
	case p.Array == 0:
		return "" // profiling is off on most machines
	case p.Addresses == 0:
		return "the watchdog captured nothing"
	}
	var parts []string
	for i, d := range p.Drivers {
		if i == textDrivers {
			parts = append(parts, fmt.Sprintf("and %d more", len(p.Drivers)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", moduleAlias(d.Module.Module), d.Addresses))
	}
	if len(parts) == 0 {
		parts = []string{"the kernel's alone"}
	}
	return fmt.Sprintf("%s that the watchdog captured: %s", number(p.Addresses, "address", "addresses"), strings.Join(parts, ", "))
}

// hungStack writes the stack of the processor that hangs, unless it is the thread's that
// is written anyway.
func (t *text) hungStack(inc *triage.Incident, v *bugcheck.Verdict) {
	if v == nil || v.Hung == nil || v.Hung.CPU == nil || v.Hung.CPU.Kernel == nil || v.Hung.CPU.Thread >= 0 && v.Hung.CPU.Thread == inc.Crashing {
		return
	}
	t.line("", "")
	t.line(sgrBold, "%s, the one that hangs", cpuText(inc, v.Hung.CPU))
	t.half(v.Hung.CPU.Kernel, halfOptions{})
}

func number(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
