package report

import (
	"dumptriage/dump"
	"dumptriage/triage"
)

// The lines between the two stacks of a 32-bit thread in a 64-bit dump, outside
// in: the 64-bit code was called last.
const (
	border64 = "-- 64-bit code (WoW64) ------------------------------------------"
	border32 = "-- 32-bit code --------------------------------------------------"
)

// wow64Half prints the 64-bit half of a 32-bit thread, and then the line above
// the 32-bit one. It returns how many frames were numbered.
func (t *text) wow64Half(th *triage.Thread, first int) int {
	if th.Wow64 == nil {
		return first
	}
	t.line(sgrCyan, border64)
	t.half(th.Wow64, halfOptions{first: first})
	if th.User != nil && !wide(th.User, t.arch) {
		t.line(sgrCyan, border32)
	}
	return first + len(th.Wow64.Frames)
}

// emulationJSON says by what a process runs that was made for another
// architecture than its system's.
func emulationJSON(e *triage.Emulation) *EmulationJSON {
	if e == nil {
		return nil
	}
	return &EmulationJSON{GuestArch: e.Guest.String(), HostArch: e.Host.String(), Module: e.Module}
}

// emulation is the line of an incident's heading. Where the host is ARM64 the
// emulator keeps the guest's registers in memory of its own, which is not read.
func (t *text) emulation(e *triage.Emulation) {
	if e == nil {
		return
	}
	note := ""
	if e.Host == dump.ARM64 {
		note = "; where the emulator keeps the guest's registers its stacks are not walked"
	}
	t.line("", "Runs:    %s code on %s (%s%s)", e.Guest, e.Host, e.Module, note)
}
