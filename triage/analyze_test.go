package triage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

func TestAnalyzeNothing(t *testing.T) {
	var e *dump.Error
	if _, err := Analyze(nil, nil, "given", Options{}); !errors.As(err, &e) || e.Code != dump.UnsupportedFormat {
		t.Errorf("%v", err)
	}
}

// What only the kernel dump knows of the process is taken from it, unless its
// current process is another.
func TestProcessFacts(t *testing.T) {
	k := fake{process: dump.Process{PID: 100, HasPID: true, ParentPID: 50, Name: "app.exe", PEB: 0x5000, EPROCESS: 0xffff8000dead0000, DirBase: 0x1aa000},
		system: dump.System{Arch: dump.AMD64, NTVersion: "10.0.19041.3803", CPUCount: 16}}
	shared := []dump.Thread{thread(5, 0x7000)}
	for _, x := range []struct {
		name string
		user fake
		want dump.Process
	}{
		{"nothing known", fake{}, k.process},
		{"all known", fake{process: dump.Process{PID: 100, HasPID: true, ParentPID: 51, Name: "App", PEB: 0x6000}},
			dump.Process{PID: 100, HasPID: true, ParentPID: 51, Name: "App", PEB: 0x6000, EPROCESS: 0xffff8000dead0000, DirBase: 0x1aa000}},
		{"another process is current", fake{process: dump.Process{PID: 7, HasPID: true}, threads: shared}, dump.Process{PID: 7, HasPID: true}},
	} {
		k := k
		k.threads = shared
		inc := analyze(t, x.user.user(t), k.kernel(t), Options{})
		if inc.Process != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, inc.Process, x.want)
		}
		if inc.System.NTVersion != "10.0.19041.3803" || inc.System.CPUCount != 16 {
			t.Errorf("%s: %+v", x.name, inc.System)
		}
	}
	u := fake{system: dump.System{Arch: dump.AMD64, NTVersion: "10.0.1.2", CPUCount: 8}}
	if inc := analyze(t, u.user(t), k.kernel(t), Options{}); inc.System.NTVersion != "10.0.1.2" || inc.System.CPUCount != 8 {
		t.Errorf("the user dump's own facts: %+v", inc.System)
	}
}

func TestSelectThread(t *testing.T) {
	u := fake{threads: []dump.Thread{{ID: 5, Context: regsAt(1, 8)}, {ID: 6, Context: regsAt(2, 8)}}, exception: &dump.Exception{ThreadID: 6, Context: regsAt(3, 8)}}
	k := fake{threads: []dump.Thread{kernelThread(6, 0, userIP, userSP)}, cpus: []dump.CPU{{Number: 0, ETHREAD: 0xffff800000000600, Context: regsAt(4, 8)}}}
	for _, x := range []struct {
		id       uint32
		threads  []uint32
		crashing int
		errors   int
	}{{5, []uint32{5}, -1, 0}, {6, []uint32{6}, 0, 0}, {7, nil, -1, 1}} {
		done := [][2]int{}
		inc := analyze(t, u.user(t), k.kernel(t), Options{Thread: &x.id, Progress: func(n, of int) { done = append(done, [2]int{n, of}) }})
		var ids []uint32
		for i := range inc.Threads {
			ids = append(ids, inc.Threads[i].ID)
			if inc.Threads[i].User == nil {
				t.Errorf("thread %d is not walked", inc.Threads[i].ID)
			}
		}
		if !slices.Equal(ids, x.threads) || inc.Crashing != x.crashing || len(inc.CPUs) != 0 {
			t.Errorf("thread %d: %v, crashing %d, %d processors", x.id, ids, inc.Crashing, len(inc.CPUs))
		}
		if len(inc.Errors) != x.errors || x.errors > 0 && (inc.Errors[0].Code != dump.OutOfRange || !strings.Contains(inc.Errors[0].Msg, "7 (0x7)")) {
			t.Errorf("thread %d: errors %v", x.id, inc.Errors)
		}
		if len(x.threads) == 1 && !slices.Equal(done, [][2]int{{0, 1}}) {
			t.Errorf("thread %d: progress %v", x.id, done)
		}
	}
	// Only the exception's thread is walked from the exception's registers.
	for id, ip := range map[uint32]uint64{5: 1, 6: 3} {
		if th := threadOf(t, analyze(t, u.user(t), nil, Options{}), id); th.User.Frames[0].IP != ip {
			t.Errorf("thread %d is walked from %#x", id, th.User.Frames[0].IP)
		}
	}
	if inc := analyze(t, u.user(t), k.kernel(t), Options{}); len(inc.Threads) != 2 || inc.Crashing != 1 || len(inc.CPUs) != 1 {
		t.Errorf("all: %d threads, crashing %d, %d processors", len(inc.Threads), inc.Crashing, len(inc.CPUs))
	}
}

// The crashing thread is one of the user dump: a thread that the kernel dump
// adds may bear the number 0 that an exception without a thread has.
func TestCrashingThread(t *testing.T) {
	u := fake{threads: []dump.Thread{{ID: 5, Context: regsAt(1, 8)}}, exception: &dump.Exception{Context: regsAt(3, 8)}}
	k := fake{threads: []dump.Thread{kernelThread(0, 0, 0, 0)}}
	if inc := analyze(t, u.user(t), k.kernel(t), Options{}); inc.Crashing != -1 || inc.Crash == nil {
		t.Errorf("crashing %d, crash %+v", inc.Crashing, inc.Crash)
	}
	u.exception = nil
	if inc := analyze(t, u.user(t), nil, Options{}); inc.Crashing != -1 || inc.Crash != nil {
		t.Errorf("crashing %d, crash %+v", inc.Crashing, inc.Crash)
	}
}

// Processors show the half of the thread they were running, walked once.
func TestCPUs(t *testing.T) {
	th := kernelThread(5, 0, 0, 0)
	k := fake{threads: []dump.Thread{th, kernelThread(6, 0, 0, 0)}, cpus: []dump.CPU{
		{Number: 0, ETHREAD: th.Kernel.ETHREAD, Context: regsAt(0x1234, 0x8000), Source: dump.ContextPRCB},
		{Number: 1, ETHREAD: 0xffff8000deadbe00, Context: regsAt(0xfffff80100001234, 0xffffe10d00008000), Source: dump.ContextPRCB, StackBase: 0xffffe10d00009000},
		{Number: 2},
		{Number: 3, ETHREAD: 0, Context: regsAt(0x77, 0x88)},
	}}
	k.threads[1].Kernel.ETHREAD = 0 // not known: no processor ran it for that
	inc := analyze(t, nil, k.kernel(t), Options{})
	if len(inc.CPUs) != 4 {
		t.Fatalf("%d processors", len(inc.CPUs))
	}
	if c := inc.CPUs[0]; c.Thread != 0 || c.Kernel == nil || c.Kernel != inc.Threads[0].Kernel {
		t.Errorf("processor 0: thread %d, %+v", c.Thread, c.Kernel)
	}
	if c := inc.CPUs[1]; c.Thread != -1 || c.Kernel == nil || c.Kernel.Frames[0].IP != 0xfffff80100001234 || c.Kernel.Frames[0].Method != unwind.MethodContext {
		t.Errorf("processor 1: thread %d, %+v", c.Thread, c.Kernel)
	}
	if c := inc.CPUs[2]; c.Thread != -1 || c.Kernel != nil {
		t.Errorf("processor 2 has no registers: thread %d, %+v", c.Thread, c.Kernel)
	}
	if c := inc.CPUs[3]; c.Thread != -1 || c.Kernel == nil || c.Kernel.Frames[0].IP != 0x77 {
		t.Errorf("processor 3: thread %d, %+v", c.Thread, c.Kernel)
	}
}

func TestGroupsTellStacksApart(t *testing.T) {
	half := func(ips ...uint64) *Half {
		h := &Half{}
		for _, ip := range ips {
			h.Frames = append(h.Frames, Frame{Frame: unwind.Frame{IP: ip, SP: ip * 7}})
		}
		return h
	}
	captured := half(0x99, 1, 2)
	captured.Frames[0].Capture = true
	other := half(1, 2)
	other.Frames[1].SP = 12345
	inc := &Incident{Threads: []Thread{
		{User: half(1, 2)},
		{User: half(1, 2, 3)},
		{User: other}, // as thread 0 on another stack
		{Kernel: half(1), User: half(2)},
		{Kernel: half(1, 2)},
		{User: half(0x12)}, // 1,2 without a separator
		{Kernel: captured}, // as thread 4 but for the writer's frames
		{},
		{User: half(2, 1)},
		{},
		{Wow64: half(1, 2)}, // the halves are told apart
	}}
	var got [][]int
	for _, g := range inc.Groups() {
		got = append(got, g.Threads)
	}
	want := [][]int{{0, 2}, {4, 6}, {7, 9}, {1}, {3}, {5}, {8}, {10}} // the largest first
	if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
		t.Errorf("%v, want %v", got, want)
	}
	if g := (&Incident{}).Groups(); len(g) != 0 {
		t.Errorf("no threads: %v", g)
	}
}

// Frames where a module had been say so; frames in a loaded module do not.
func TestUnloadedHits(t *testing.T) {
	u := fake{
		threads:  []dump.Thread{{ID: 1, Context: regsAt(0x7ffe00001234, 0x8000)}, {ID: 2, Context: regsAt(0x7ffe00005000, 0x8000)}, {ID: 3, Context: regsAt(0x7ffe00008010, 0x8000)}},
		modules:  []dump.Module{{Base: 0x7ffe00008000, Size: 0x1000, Path: "now.dll"}},
		unloaded: []dump.Module{{Base: 0x7ffe00000000, Size: 0x5000, Path: "a.dll", Unloaded: true}, {Base: 0x7ffe00001000, Size: 0x1000, Path: "b.dll", Unloaded: true}, {Base: 0x7ffe00008000, Size: 0x1000, Path: "c.dll", Unloaded: true}},
	}
	inc := analyze(t, u.user(t), nil, Options{})
	f := inc.Threads[0].User.Frames[0]
	if f.Module != nil || len(f.Unloaded) != 2 || f.Unloaded[0].Module.Path != "a.dll" || f.Unloaded[0].Offset != 0x1234 || f.Unloaded[1].Module.Path != "b.dll" || f.Unloaded[1].Offset != 0x234 {
		t.Errorf("%+v", f)
	}
	if f := inc.Threads[1].User.Frames[0]; len(f.Unloaded) != 0 { // just past the end
		t.Errorf("%+v", f)
	}
	if f := inc.Threads[2].User.Frames[0]; len(f.Unloaded) != 0 || f.Module == nil || f.Module.Path != "now.dll" || !f.Module.UsedInStack {
		t.Errorf("%+v", f)
	}
	if len(inc.Unloaded) != 3 {
		t.Errorf("%d unloaded modules", len(inc.Unloaded))
	}
}

// Images come from memory where that has their unwind data, else from a file;
// what is nowhere is named with the places where it was looked for.
func TestImages(t *testing.T) {
	im := func(name string, base uint64) *fixtures.Image {
		return &fixtures.Image{Name: name, Base: base, TimeDateStamp: 0x5e000000 + uint32(base>>32), SizeOfImage: 0x4000,
			Functions: []*fixtures.Function{{Name: "Run", RVA: 0x1000, Size: 0x40, Prolog: fixtures.Steps(fixtures.Alloc(0x28))}}}
	}
	whole, header, absent, idle := im("whole.dll", 0x100000000), im("header.dll", 0x200000000), im("absent.dll", 0x300000000), im("idle.dll", 0x400000000)
	memory := mapped(whole).(pages)
	memory[header.Base] = header.Mapped()[0].Data
	module := func(im *fixtures.Image) dump.Module {
		return dump.Module{Base: im.Base, Size: uint64(im.Size()), TimeDateStamp: im.TimeDateStamp, Path: `C:\x\` + im.Name}
	}
	u := fake{memory: memory, modules: []dump.Module{module(absent), module(idle), module(header), module(whole)}}
	for i, im := range []*fixtures.Image{whole, header, absent} {
		u.threads = append(u.threads, dump.Thread{ID: uint32(i), Context: regsAt(im.Base+0x1010, 0x8000)})
	}
	dir := imageDir(t, map[string][]byte{"header.dll": header.File(), "whole.dll": whole.File()})
	inc := analyze(t, u.user(t), nil, Options{Images: []string{dir}})
	want := map[string]symbols.ImageState{"whole.dll": symbols.ImageFromMemory, "header.dll": symbols.ImageFromFile, "absent.dll": symbols.ImageMissing, "idle.dll": symbols.ImageNotNeeded}
	for i, m := range inc.Modules {
		if i > 0 && inc.Modules[i-1].Base > m.Base {
			t.Error("modules are not in the order of their addresses")
		}
		found := m.Image == symbols.ImageFromMemory || m.Image == symbols.ImageFromFile
		if m.Image != want[m.Name()] || m.UsedInStack != (m.Name() != "idle.dll") || m.Named != found || (m.ImagePath != "") != (m.Image == symbols.ImageFromFile) {
			t.Errorf("%s: %+v", m.Name(), *m)
		}
	}
	if len(inc.Missing) != 1 || inc.Missing[0].Module.Name() != "absent.dll" || !slices.Equal(inc.Missing[0].Tried, []string{"dump memory", dir}) {
		t.Errorf("missing %+v", inc.Missing)
	}
	// Without the file, the header in memory still is the image, but its unwind
	// data are missed.
	inc = analyze(t, u.user(t), nil, Options{})
	if len(inc.Missing) != 2 || inc.Missing[0].Module.Name() != "header.dll" {
		t.Errorf("missing %+v", inc.Missing)
	}
}

func TestSpace(t *testing.T) {
	sp := newSpace(&fake{system: dump.System{Arch: dump.AMD64},
		modules: []dump.Module{{Base: 0x5000, Size: 0x1000, Path: "b"}, {Base: 0x2000, Size: 0x1000, Path: "a"}, {Base: ^uint64(0) - 0xfff, Size: 0x2000, Path: "top"}},
		regions: []dump.Region{{Base: 0x9000, Size: 0x1000, Protect: 0x20}, {Base: 0x8000, Size: 0x800, Protect: 4}}}, symbols.NewStore(nil))
	for va, want := range map[uint64]string{0x1fff: "", 0x2000: "a", 0x2fff: "a", 0x3000: "", 0x4fff: "", 0x5000: "b", 0x5fff: "b", 0x6000: "", 0: "", ^uint64(0): "top"} {
		name := ""
		if m, ok := sp.Module(va); ok {
			name = m.Path
		}
		if name != want {
			t.Errorf("%#x is in %q, want %q", va, name, want)
		}
	}
	for va, want := range map[uint64][2]bool{0x9000: {true, true}, 0x9fff: {true, true}, 0xa000: {false, false}, 0x8000: {false, true}, 0x87ff: {false, true}, 0x8800: {false, false}, 0x7fff: {false, false}, 0x2010: {false, false}} {
		if x, known := sp.Executable(va); x != want[0] || known != want[1] {
			t.Errorf("%#x: executable %v, known %v", va, x, known)
		}
	}
	if im, base := sp.Image(0x9000); im != nil || base != 0 {
		t.Errorf("an image outside modules at %#x", base)
	}
}

// Damage of both dumps is told with the files' names, and modules of both are
// listed.
func TestCollect(t *testing.T) {
	u := fake{damage: []*dump.Error{{Code: dump.BadCount, Offset: 0x40, Msg: "u2"}, {Code: dump.BadCount, Offset: 0x20, Msg: "u1"}}, modules: []dump.Module{{Base: 0x5000, Size: 1, Path: "u"}}}
	k := fake{damage: []*dump.Error{{Code: dump.BadCount, Offset: 0x10, File: "other", Msg: "k"}}, modules: []dump.Module{{Base: 0x1000, Size: 1, Path: "k"}}}
	inc := analyze(t, u.user(t), k.kernel(t), Options{})
	var got []string
	for _, e := range inc.Errors {
		got = append(got, e.File+" "+e.Msg)
	}
	if !slices.Equal(got, []string{"app.dmp u1", "app.dmp u2", "other k"}) {
		t.Errorf("%q", got)
	}
	if u.damage[0].File != "" {
		t.Error("the source's own errors were changed")
	}
	if len(inc.Modules) != 2 || inc.Modules[0].Path != "u" || inc.Modules[1].Path != "k" {
		t.Errorf("modules %+v", inc.Modules)
	}
	if len(inc.Inputs) != 2 || inc.Inputs[0].Path != "app.dmp" || inc.Inputs[1].Path != "app.Kernel.dmp" || inc.Inputs[0].Kind != "fake" {
		t.Errorf("inputs %+v", inc.Inputs)
	}
}
