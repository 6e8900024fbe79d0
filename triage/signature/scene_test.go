package signature

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// scene builds incidents from lines such as
//
//	app!f+1c          a frame with a name
//	app+1234          one without
//	?app!f            found by a scan
//	~nt!snap          of the dump's writer
//	@1000             outside all modules
//	jit               the same, described by a function table
//
// innermost first, with the modules at a base of its own choice.
type scene struct {
	base    uint64
	modules map[string]*triage.Module
	order   []*triage.Module
	exes    string // modules that are programs, with a space before each
}

func newScene(base uint64) *scene {
	return &scene{base: base, modules: map[string]*triage.Module{}, exes: " app"}
}

func (s *scene) module(name string) *triage.Module {
	if m, ok := s.modules[name]; ok {
		return m
	}
	ext := ".dll"
	if strings.Contains(s.exes, " "+name) {
		ext = ".exe"
	}
	m := &triage.Module{Module: &dump.Module{Base: s.base + uint64(len(s.order))<<24, Size: 1 << 24, Path: `C:\x\` + strings.ToUpper(name) + ext}}
	s.modules[name] = m
	s.order = append(s.order, m)
	return m
}

func (s *scene) half(lines string) *triage.Half {
	h := &triage.Half{}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f := triage.Frame{Frame: unwind.Frame{Trust: unwind.TrustCFI, Method: unwind.MethodPdata}, Name: symbols.Name{Source: symbols.SourceNone}}
		if len(h.Frames) == 0 {
			f.Trust = unwind.TrustContext
		}
		if n := len(h.Frames); n > 0 && h.Frames[n-1].Name.Full == jitMark {
			f.Method = unwind.MethodFunctionTable
			h.Frames[n-1].Name.Full = ""
		}
		switch line[0] {
		case '?':
			f.Trust, line = unwind.TrustScan, line[1:]
		case '-':
			f.Proof, line = triage.Unproven, line[1:]
		case '!':
			f.Proof, line = triage.Refuted, line[1:]
		case '+':
			f.Proof, line = triage.Proven, line[1:]
		case '~':
			f.Capture, line = true, line[1:]
		}
		s.place(&f, line)
		h.Frames = append(h.Frames, f)
	}
	return h
}

// jitMark makes the frame behind it one that a function table found.
const jitMark = "jit"

func (s *scene) place(f *triage.Frame, line string) {
	if line == "jit" {
		f.IP, f.Name.Full = 0x7000, jitMark
		return
	}
	if line[0] == '@' {
		fmt.Sscanf(line[1:], "%x", &f.IP)
		return
	}
	if module, rva, ok := strings.Cut(line, "+"); ok && !strings.Contains(module, "!") {
		f.Module = s.module(module)
		var n uint64
		fmt.Sscanf(rva, "%x", &n)
		f.IP = f.Module.Base + n
		return
	}
	module, function, _ := strings.Cut(line, "!")
	f.Module = s.module(module)
	f.IP = f.Module.Base + 0x1000
	f.Name = symbols.Name{Function: function, Source: symbols.SourcePDB}
	if at := strings.LastIndex(function, "+"); at > 0 {
		f.Name.Function = function[:at]
		fmt.Sscanf(function[at+1:], "%x", &f.Name.Offset)
	}
	if strings.HasPrefix(f.Name.Function, "fn@") {
		f.Name.Source = symbols.SourcePdata
	}
}

// crash is an incident whose only thread has an exception.
func (s *scene) crash(code uint32, lines string, parameters ...uint64) *triage.Incident {
	inc := s.snapshot(lines)
	inc.Crashing = 0
	inc.Crash = &triage.Crash{Exception: dump.Exception{Code: code, Parameters: parameters}}
	return inc
}

// snapshot has a thread for each of its stacks.
func (s *scene) snapshot(stacks ...string) *triage.Incident {
	inc := &triage.Incident{Crashing: -1, System: dump.System{Arch: dump.AMD64}}
	s.module("app")
	for _, lines := range stacks {
		inc.Threads = append(inc.Threads, triage.Thread{User: s.half(lines)})
	}
	inc.Modules = s.order
	return inc
}
