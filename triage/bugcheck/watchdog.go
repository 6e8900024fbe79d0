package bugcheck

import (
	"cmp"
	"slices"

	"dumptriage/internal/cursor"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// HungCPU is the processor that a clock watchdog found hanging.
type HungCPU struct {
	Number    uint32
	Known     bool          // Number is: a parameter gives it, or the processor is in the dump
	Parameter int           // that says so
	CPU       *triage.CPU   // nil when it is not in the dump
	Thread    string        // process and thread id in hexadecimal, "" when not known
	Frame     *triage.Frame // the innermost frame of a driver on its stack, nil none
	Index     int           // of Frame, -1
}

// Profile is what the DPC watchdog wrote down of the processor's stacks while time
// ran out: addresses of code, as far as they were captured.
type Profile struct {
	Parameter int // that points to the DPC_WATCHDOG_GLOBAL_TRIAGE_BLOCK
	PRCB      uint64
	Array     uint64 // where the addresses are, 0 none
	Addresses int
	Drivers   []ProfiledDriver // those with the most addresses first
	Missing   bool             // the dump does not hold the addresses
}

// ProfiledDriver is a driver of a profile.
type ProfiledDriver struct {
	Module    *triage.Module
	Addresses int
	First     uint64 // the first of them
	Framework bool
}

// DPC_WATCHDOG_GLOBAL_TRIAGE_BLOCK of the public wdm.h: its signature, u16 revision
// and size, u16 offset in KPRCB of the address of the profile, u32 its length.
const (
	watchdogSignature = 0xaebecede
	watchdogSize      = 0x10
	maxProfile        = 0x10000 // entries; 8200h is the length in a published dump
)

// watchdogBlock follows a DPC_WATCHDOG_GLOBAL_TRIAGE_BLOCK to the profile of the
// processor that wrote the dump. False when there is none at va.
func (j *judge) watchdogBlock(va uint64, parameter int) bool {
	c := cursor.New(j.read(va, watchdogSize), "DPC_WATCHDOG_GLOBAL_TRIAGE_BLOCK", -1)
	signature := c.U32()
	c.Skip(4)
	offset := c.U16()
	c.Skip(2)
	length := c.U32()
	if c.Err() != nil || signature != watchdogSignature {
		return false
	}
	i := slices.IndexFunc(j.bc.Processors, func(p triage.Processor) bool { return p.Crashed })
	if i < 0 || offset == 0 || length == 0 {
		return true
	}
	p := &Profile{Parameter: parameter, PRCB: j.bc.Processors[i].PRCB}
	p.Array = j.pointer(p.PRCB + uint64(offset))
	j.v.Profile = p
	if p.Array == 0 {
		p.Missing = !j.holds(p.PRCB+uint64(offset), 1)
		return true
	}
	j.readProfile(p, p.PRCB+uint64(offset), min(length, maxProfile))
	return true
}

// readProfile counts whose addresses the profile has. The field behind its address in
// KPRCB says where the next capture goes: what lies beyond is older or empty. Zeros
// part captures.
func (j *judge) readProfile(p *Profile, field uint64, length uint32) {
	ptr := uint64(j.inc.System.Arch.PointerSize())
	end := j.pointer(field + ptr)
	n := uint64(length) / ptr * ptr // whether it counts bytes or addresses is not documented: bytes are fewer
	if used := end - p.Array; end > p.Array && used <= uint64(length)*ptr && used <= maxProfile*ptr {
		n = used
	}
	b := j.read(p.Array, int(n))
	p.Missing = len(b) == 0
	c := cursor.New(b, "DpcWatchdogProfile", -1)
	for range uint64(len(b)) / ptr {
		va := c.Pointer(int(ptr))
		m := j.view.Module(va)
		if va == 0 || m == nil {
			continue
		}
		p.Addresses++
		if j.rules.role(rules.Module(m.Name()), "") != roleKernel {
			p.count(m, va, j.rules.role(rules.Module(m.Name()), "") == roleFramework)
		}
	}
	slices.SortStableFunc(p.Drivers, func(a, b ProfiledDriver) int { return cmp.Compare(b.Addresses, a.Addresses) })
}

func (p *Profile) count(m *triage.Module, va uint64, framework bool) {
	i := slices.IndexFunc(p.Drivers, func(d ProfiledDriver) bool { return d.Module == m })
	if i < 0 {
		if i = len(p.Drivers); i == maxDrivers {
			return
		}
		p.Drivers = append(p.Drivers, ProfiledDriver{Module: m, First: va, Framework: framework})
	}
	p.Drivers[i].Addresses++
}

// blameProfile takes the driver with the most addresses in the profile, where time
// was spent in all: then whoever runs when it is up may be anybody.
func (j *judge) blameProfile(b *Blame) bool {
	const cumulative = 1
	if j.v.Profile == nil || j.v.Parameters[0].Value != cumulative {
		return false
	}
	for i := range j.v.Profile.Drivers {
		if d := &j.v.Profile.Drivers[i]; !d.Framework {
			b.Culprit, b.Module, b.Address, b.Parameter = CulpritDriver, d.Module, d.First, j.v.Profile.Parameter
			return true
		}
	}
	return false
}

// hungCPU finds the processor that parameter i names by its KPRCB; the one after gives
// its number, if that is a number.
func (j *judge) hungCPU(i int) {
	p := &j.v.Parameters[i]
	h := &HungCPU{Parameter: i, Index: -1}
	if i < 3 && j.v.Parameters[i+1].Kind == codes.KindDecimal {
		h.Number, h.Known = uint32(j.v.Parameters[i+1].Value), true
	}
	for k := range j.inc.CPUs {
		c := &j.inc.CPUs[k]
		if c.PRCB != p.Value || p.Value == 0 {
			continue
		}
		h.CPU, h.Number, h.Known = c, c.Number, true
		if t := c.Thread; t >= 0 && j.inc.Threads[t].KernelInfo != nil && !c.Idle {
			h.Thread = threadName(&j.inc.Threads[t].Thread, j.inc.Threads[t].KernelInfo)
		}
		if c.Kernel != nil {
			h.Frame, h.Index = j.innermostDriver(c.Kernel.Frames)
		}
	}
	j.v.Hung = h
}

// blameHung takes the driver that the processor that hangs was running.
func (j *judge) blameHung(b *Blame) bool {
	h := j.v.Hung
	if h == nil || h.Frame == nil || j.roleOf(h.Frame) != roleDriver {
		return false
	}
	b.Culprit, b.Module, b.Address, b.Frame, b.Parameter = CulpritDriver, h.Frame.Module, h.Frame.IP, h.Frame, h.Parameter
	if scanned(h.Frame) {
		b.Confidence = "low"
	}
	return true
}
