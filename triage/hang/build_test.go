package hang

import (
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// frames makes a stack of "module!function" names, innermost first.
func frames(names ...string) []triage.Frame {
	var out []triage.Frame
	for i, n := range names {
		module, function, _ := strings.Cut(n, "!")
		f := triage.Frame{Frame: unwind.Frame{IP: 0x1000 + uint64(i), SP: 0x8000 + 16*uint64(i), Trust: unwind.TrustCFI}}
		f.Module = &triage.Module{Module: &dump.Module{Path: `C:\Windows\System32\` + module + ".dll"}}
		if module == "nt" {
			f.Module.Path = "ntoskrnl.exe"
		}
		if function != "" {
			f.Name = symbols.Name{Function: function, Offset: 0x14, Source: symbols.SourceExport}
		}
		out = append(out, f)
	}
	return out
}

func half(names ...string) *triage.Half {
	return &triage.Half{Frames: frames(names...), Registers: dump.Registers{Arch: dump.AMD64}}
}

// thread is a thread of a user dump with a stack.
func thread(id uint32, names ...string) triage.Thread {
	return triage.Thread{Thread: dump.Thread{ID: id}, User: half(names...)}
}

func incident(threads ...triage.Thread) *triage.Incident {
	return &triage.Incident{Crashing: -1, Threads: threads, System: dump.System{Arch: dump.AMD64}, Process: dump.Process{PID: 7, HasPID: true},
		Captured: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func builtinRules(t testing.TB) *Rules {
	t.Helper()
	r, err := NewRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
