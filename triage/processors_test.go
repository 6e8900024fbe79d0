package triage

import (
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// TestProcessorsOfOthers: what a processor ran is walked alike whether its thread is
// shown or another process was asked for.
func TestProcessorsOfOthers(t *testing.T) {
	for _, v := range x64Machines() {
		m := machine.Build(*v)
		inc := analyze(t, nil, openBytes(t, "MEMORY.DMP", m.Dump(machine.Full)), Options{Process: "acmesvc"})
		if len(inc.CPUs) != len(m.CPUs) || len(inc.Threads) != 1 {
			t.Fatalf("%s: %d processors, %d threads", v.Name, len(inc.CPUs), len(inc.Threads))
		}
		for i, c := range inc.CPUs {
			want := m.CPUs[i]
			if c.Kernel == nil || c.Kernel.Frames[len(c.Kernel.Frames)-1].IP != want.Kernel[len(want.Kernel)-1].PC {
				t.Errorf("%s: processor %d: %+v, want it to end in %s", v.Name, i, c.Kernel, want.Kernel[len(want.Kernel)-1].Function)
			}
			if want.Thread != nil && (c.PID != 0x1f30 || c.ProcessName != "report.exe") {
				t.Errorf("%s: processor %d runs a thread of %#x %q", v.Name, i, c.PID, c.ProcessName)
			}
		}
	}
}

// TestFindProcesses names processes in each way that is documented.
func TestFindProcesses(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	d := openBytes(t, "MEMORY.DMP", m.Dump(machine.Full))
	for text, want := range map[string]string{
		"report": "report.exe", "REPORT.EXE": "report.exe", "7984": "report.exe", "0x1f30": "report.exe", "1f30": "report.exe", "1F30": "report.exe",
		"ffffcf8d`51008ad0": "report.exe", "0xffffcf8d51008ad0": "report.exe",
		"*.exe": "acmesvc.exe report.exe legacy32.exe sort.exe", "??????.exe": "report.exe", "*32*": "legacy32.exe", "r*t": "report.exe", "*": "System acmesvc.exe report.exe legacy32.exe sort.exe MemCompression",
		"2500": "MemCompression", "0x2500": "", "9c4": "MemCompression", "0x2410": "sort.exe", "2410": "", "System": "System", "4": "System", "*x": "", "": "", "5a8": "acmesvc.exe", "r*z": "", "?": "",
	} {
		var got []string
		for _, p := range d.FindProcesses(text) {
			got = append(got, p.Name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q means %q, want %q", text, s, want)
		}
	}
	if inc := analyze(t, nil, d, Options{Process: "nobody"}); len(inc.Threads) != 0 {
		t.Errorf("%d threads of nobody", len(inc.Threads))
	}
	inc := analyze(t, nil, d, Options{Process: "sort"})
	if len(inc.Threads) != 0 || !slices.ContainsFunc(inc.Errors, func(e *dump.Error) bool { return strings.Contains(e.Error(), "has ended") }) {
		t.Errorf("%d threads of a process that has ended; %v", len(inc.Threads), inc.Errors)
	}
}
