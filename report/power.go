package report

import (
	"fmt"
	"strings"

	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

func irpJSON(r *bugcheck.IRP, h hexer) BugIRPJSON {
	j := BugIRPJSON{Address: h.addr(r.Address), Parameter: r.Parameter + 1, Device: h.known(r.Device),
		Driver: r.DriverName, Module: moduleName(r.Driver), Completed: r.Completed}
	if r.Device != 0 || len(r.Locations) > 0 {
		minor := int(r.Minor)
		j.Major, j.Minor = codes.IRPMajor(r.Major), &minor
	}
	if p := r.Power; p != nil {
		of, state := powerState(p)
		j.Power = &PowerRequestJSON{of, state, codes.PowerAction(p.Shutdown)}
	}
	for i := range r.Locations {
		l := &r.Locations[i]
		loc := IRPLocationJSON{Number: l.Number, Major: codes.IRPMajor(l.Major), Minor: int(l.Minor), Pending: l.Pending,
			Device: h.known(l.Device), Driver: l.DriverName, Module: moduleName(l.Driver)}
		if l.Completion != nil {
			loc.Completion = frameText(l.Completion, h)
		}
		j.Locations = append(j.Locations, loc)
	}
	return j
}

func moduleName(m *triage.Module) string {
	if m == nil {
		return ""
	}
	return m.Name()
}

// frameText is module!symbol+offset, or module+offset.
func frameText(f *triage.Frame, h hexer) string {
	module, offset, symbol := frameParts(f, h)
	if symbol != "" {
		return module + "!" + symbol
	}
	return module + "+" + offset
}

func powerState(p *bugcheck.PowerRequest) (of, state string) {
	if p.Device {
		return "device", codes.DevicePower(p.State)
	}
	return "system", codes.SystemPower(p.State)
}

func deviceNodeJSON(n *bugcheck.DeviceNode, h hexer) *DeviceNodeJSON {
	if n == nil || n.PDO == 0 {
		return nil
	}
	j := &DeviceNodeJSON{PDO: h.addr(n.PDO), Instance: n.Instance, Service: n.Service}
	for _, d := range n.Stack {
		j.Stack = append(j.Stack, DeviceStackJSON{h.addr(d.Address), d.DriverName, moduleName(d.Driver)})
	}
	return j
}

func powerJSON(p *bugcheck.PowerTriage, h hexer) *PowerTriageJSON {
	if p == nil {
		return nil
	}
	j := &PowerTriageJSON{Parameter: p.Parameter + 1, Truncated: p.Truncated}
	for i := range p.IRPs {
		irp := irpJSON(&p.IRPs[i].IRP, h)
		irp.For = deviceNodeJSON(&p.IRPs[i].PDO, h)
		j.IRPs = append(j.IRPs, irp)
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		t := PowerThreadJSON{ETHREAD: h.addr(w.ETHREAD), Thread: w.Name, IRP: h.known(w.IRP), Device: h.known(w.Device), Driver: w.DriverName, Module: moduleName(w.Driver)}
		if w.Frame != nil {
			t.At = frameText(w.Frame, h)
		}
		j.Threads = append(j.Threads, t)
	}
	for i := range p.Devices {
		j.Devices = append(j.Devices, *deviceNodeJSON(&p.Devices[i], h))
	}
	return j
}

// irpHolder names the driver that has the IRP which a power failure is about, "" when
// that is not known.
func irpHolder(v *bugcheck.Verdict) string {
	for i := range v.IRPs {
		r := &v.IRPs[i]
		switch {
		case v.Parameters[r.Parameter].Kind != codes.KindIRP || r.Power == nil:
		case r.Driver != nil && r.Driver.Module != nil:
			return moduleAlias(r.Driver.Module)
		case r.DriverName != "":
			return clean(r.DriverName)
		}
	}
	return ""
}

// textPower is how many IRPs, threads and devices the text names; the JSON has all.
const textPower = 4

// power writes the IRPs that parameters point to, and what a power failure is about.
func (t *text) power(v *bugcheck.Verdict, opt Options) {
	for i := range v.IRPs {
		r := &v.IRPs[i]
		t.fact(opt, "", "IRP", t.irpWords(r))
		t.fact(opt, "", "From", fromWords(r))
	}
	if v.Device != nil {
		t.fact(opt, "", "Device", deviceWords(v.Device))
	}
	p := v.Power
	if p == nil {
		return
	}
	for i := range p.Devices[:min(len(p.Devices), textPower)] {
		t.fact(opt, "", "Waits", "for "+deviceWords(&p.Devices[i]))
	}
	others := 0
	for i := range p.IRPs {
		r := &p.IRPs[i]
		if len(v.IRPs) > 0 && v.IRPs[0].Address == r.Address {
			continue
		}
		if others++; others <= textPower {
			t.fact(opt, "", "Pending", t.irpWords(&r.IRP))
		}
	}
	if others > textPower {
		t.fact(opt, "", "Pending", fmt.Sprintf("and %d more power IRPs", others-textPower))
	}
	for i := range p.Workers {
		t.fact(opt, "", "Thread", t.workerWords(&p.Workers[i]))
	}
	if p.Truncated {
		t.fact(opt, sgrYellow, "Power", "the dump does not hold all power IRPs and threads")
	}
}

func (t *text) irpWords(r *bugcheck.IRP) string {
	if r.Completed {
		return t.addr(r.Address) + ", no driver has it: it is back with its sender, or was not sent"
	}
	who := r.DriverName
	if r.Driver != nil {
		who = joinWith(", ", who, r.Driver.Name())
	}
	if who == "" {
		return t.addr(r.Address) + ", the driver that has it is not in the dump"
	}
	minor := fmt.Sprintf("minor %d", r.Minor)
	if name := codes.PowerMinor(r.Minor); codes.IRPMajor(r.Major) == "IRP_MJ_POWER" && name != "" {
		minor = name
	}
	return joinWith(", ", t.addr(r.Address), joinWith(" ", codes.IRPMajor(r.Major), minor), powerWords(r.Power), "at "+who)
}

func powerWords(p *bugcheck.PowerRequest) string {
	if p == nil {
		return ""
	}
	of, state := powerState(p)
	return joinWith(" for ", joinWith(" to ", of, state), codes.PowerAction(p.Shutdown))
}

// fromWords names the drivers that passed an IRP on, the last one first.
func fromWords(r *bugcheck.IRP) string {
	var names []string
	for i := 1; i < len(r.Locations); i++ {
		if l := &r.Locations[i]; l.DriverName != "" {
			names = append(names, l.DriverName)
		}
	}
	return strings.Join(names, ", ")
}

// deviceWords describes a device: its instance path, its service, and the drivers of
// its stack from the bus driver upwards.
func deviceWords(n *bugcheck.DeviceNode) string {
	var drivers []string
	for _, d := range n.Stack {
		if d.DriverName != "" {
			drivers = append(drivers, d.DriverName)
		}
	}
	service := n.Service
	if service != "" {
		service = "service " + service
	}
	return joinWith(": ", joinWith(", ", n.Instance, service), strings.Join(drivers, ", "))
}

// workerWords says what a thread of the power manager is at; "" when it is idle.
func (t *text) workerWords(w *bugcheck.PowerWorker) string {
	if w.IRP == 0 {
		return ""
	}
	name := w.Name
	if name == "" {
		name = t.addr(w.ETHREAD)
	}
	at := ""
	if w.Frame != nil {
		at = "in " + callSite(w.Frame, t.arch)
	}
	return joinWith(", ", fmt.Sprintf("%s is handing IRP %s to %s", name, t.addr(w.IRP), joinWith(", ", w.DriverName, moduleName(w.Driver))), at)
}
