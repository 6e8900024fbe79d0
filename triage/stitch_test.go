package triage

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/unwind"
)

const (
	userIP, userSP = 0x7ffe6390d184, 0xd67c9fe328 // behind the system call
	faultIP        = 0x7ff7a0b2102a
	faultSP        = 0xd67c9ff000
)

// TestJoin: the halves are joined when the kernel's trap frame and the user
// dump's registers name one instruction and one stack pointer, and only then.
func TestJoin(t *testing.T) {
	const id, teb = 0x5920, 0xd67cb98000
	exception := &dump.Exception{ThreadID: id, Code: 0xc0000005, Address: faultIP, Context: regsAt(faultIP, faultSP)}
	noSP := dump.Registers{Arch: dump.AMD64}
	noSP.SetPC(userIP)
	for _, x := range []struct {
		name      string
		context   dump.Registers
		exception *dump.Exception
		seam      [2]uint64 // ip and sp of the trap frame, 0 none
		stitched  bool
		user      unwind.Method // of the user half's first frame, none: no half
		handler   unwind.Method
		note      string // a part of it
	}{
		{"equal", regsAt(userIP, userSP), nil, [2]uint64{userIP, userSP}, true, unwind.MethodStitch, 0, ""},
		{"another instruction", regsAt(userIP, userSP), nil, [2]uint64{userIP + 2, userSP}, false, unwind.MethodContext, 0, "not simultaneous: the kernel dump saw the thread at user ip 0x7ffe6390d186, sp 0xd67c9fe328"},
		{"another stack pointer", regsAt(userIP, userSP), nil, [2]uint64{userIP, userSP - 8}, false, unwind.MethodContext, 0, "not simultaneous: the kernel dump saw the thread at user ip 0x7ffe6390d184, sp 0xd67c9fe320"},
		{"not entered from user mode", regsAt(userIP, userSP), nil, [2]uint64{}, false, unwind.MethodContext, 0, ""},
		{"at the exception itself", regsAt(faultIP, faultSP), exception, [2]uint64{faultIP, faultSP}, true, unwind.MethodException, 0, ""},
		{"the exception's writer is at the seam", regsAt(userIP, userSP), exception, [2]uint64{userIP, userSP}, true, unwind.MethodException, unwind.MethodStitch, ""},
		{"the kernel did not see the exception", regsAt(userIP, userSP), exception, [2]uint64{faultIP, faultSP}, false, unwind.MethodException, unwind.MethodContext, "not simultaneous"},
		{"no registers", dump.Registers{}, nil, [2]uint64{userIP, userSP}, false, unwind.MethodTrapFrame, 0, "no registers of this thread"},
		{"no stack pointer", noSP, nil, [2]uint64{userIP, userSP}, false, unwind.MethodTrapFrame, 0, "no registers of this thread"},
		{"no registers anywhere", dump.Registers{}, nil, [2]uint64{}, false, unwind.MethodNone, 0, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			user := &fake{threads: []dump.Thread{{ID: id, TEB: teb, Context: x.context}}, exception: x.exception}
			kernel := &fake{threads: []dump.Thread{kernelThread(id, teb, x.seam[0], x.seam[1])}}
			inc := analyze(t, user.user(t), kernel.kernel(t), Options{})
			if len(inc.Threads) != 1 {
				t.Fatalf("%d threads", len(inc.Threads))
			}
			th := &inc.Threads[0]
			if th.Stitched != x.stitched {
				t.Errorf("stitched is %v", th.Stitched)
			}
			wantFirst(t, "user half", th.User, x.user)
			wantFirst(t, "handler", th.Handler, x.handler)
			wantFirst(t, "kernel half", th.Kernel, unwind.MethodSwitchFrame)
			if (th.Seam != nil) != (x.seam[0] != 0) {
				t.Fatalf("seam %+v", th.Seam)
			}
			if s := th.Seam; s != nil {
				if s.UserIP != x.seam[0] || s.UserSP != x.seam[1] || s.Rule != "initial_stack" {
					t.Errorf("seam %+v", s)
				}
				if (s.Note == "") != (x.note == "") || !strings.Contains(s.Note, x.note) {
					t.Errorf("note %q, want %q", s.Note, x.note)
				}
			}
			if want := map[bool]int{true: 0, false: -1}[x.exception != nil]; inc.Crashing != want {
				t.Errorf("crashing thread %d", inc.Crashing)
			}
		})
	}
}

func wantFirst(t *testing.T, what string, h *Half, want unwind.Method) {
	t.Helper()
	switch {
	case (h != nil) != (want != unwind.MethodNone):
		t.Errorf("%s: %+v, want it to begin by %q", what, h, want)
	case h != nil && (len(h.Frames) == 0 || h.Frames[0].Method != want):
		t.Errorf("%s begins with %+v, want %q", what, h.Frames, want)
	}
}

// A kernel dump alone shows both halves of one moment; a thread that only the
// kernel dump of a pair knows has no user half to be joined to.
func TestKernelAlone(t *testing.T) {
	k := &fake{threads: []dump.Thread{kernelThread(1, 0x7000, userIP, userSP), kernelThread(2, 0, 0, 0)}}
	inc := analyze(t, nil, k.kernel(t), Options{})
	th := threadOf(t, inc, 1)
	wantFirst(t, "user half", th.User, unwind.MethodTrapFrame)
	if !th.Stitched || th.User.Frames[0].IP != userIP || th.User.Frames[0].SP != userSP || th.Seam.Note != "" {
		t.Errorf("%+v, seam %+v", th.User, th.Seam)
	}
	system := threadOf(t, inc, 2)
	wantFirst(t, "user half of a system thread", system.User, unwind.MethodNone)
	if system.Stitched || system.Seam != nil {
		t.Errorf("a thread that never was in user mode: stitched %v, seam %+v", system.Stitched, system.Seam)
	}
	u := &fake{threads: []dump.Thread{{ID: 9, Context: regsAt(faultIP, faultSP)}}}
	inc = analyze(t, u.user(t), k.kernel(t), Options{})
	if th := threadOf(t, inc, 1); th.User != nil || th.Stitched || th.Seam == nil || th.Kernel == nil {
		t.Errorf("a thread of the kernel dump alone: %+v", th)
	}
	if th := threadOf(t, inc, 9); th.Kernel != nil || th.KernelInfo != nil || th.KernelNote == "" || th.User == nil {
		t.Errorf("a thread of the user dump alone: %+v", th)
	}
	if inc := analyze(t, u.user(t), nil, Options{}); inc.Threads[0].KernelNote != "" || inc.Pairing != nil {
		t.Errorf("without a kernel dump nothing needs to be excused: %+v", inc.Threads[0])
	}
}

// waitStack is the live writer's frames above a wait, by name.
func TestMarkCapture(t *testing.T) {
	for _, x := range []struct {
		names   []string
		capture int // frames from the top
	}{
		{[]string{"DbgkpLkmdSnapThreadInContext", "DbgkpLkmdSnapThreadApc", "KiDeliverApc", "KiSwapThread", "NtReadFile"}, 3},
		{[]string{"DbgkpLkmdSnapThreadApc", "KiSwapThread"}, 1},
		{[]string{"KiDeliverApc", "KiSwapThread"}, 0}, // another APC
		{[]string{"KiSwapThread", "DbgkpLkmdSnapThreadApc", "KiDeliverApc"}, 0},
		{[]string{"", "DbgkpLkmdSnapThreadApc"}, 0},
		{[]string{"DbgkpLkmdSnapThreadApc", "KiSwapThread", "KiDeliverApc"}, 1},
		{nil, 0},
	} {
		frames := make([]Frame, len(x.names))
		for i, n := range x.names {
			frames[i].Name.Function = n
		}
		markCapture(frames)
		for i := range frames {
			if frames[i].Capture != (i < x.capture) {
				t.Errorf("%q: frame %d is marked %v", x.names, i, frames[i].Capture)
			}
		}
	}
}

// readLine is the scene as dumps, with the kernel image's folder.
func readLine(t *testing.T) (s *fixtures.Scene, user, kernel *Dump, images string) {
	t.Helper()
	s = fixtures.ReadLine()
	return s, openBytes(t, "ConsoleApp1.dmp", s.User), openBytes(t, "ConsoleApp1.Kernel.dmp", s.Kernel), imageDir(t, map[string][]byte{"ntkrnlmp.exe": s.NT})
}

// Ids of the scene's threads, and what a published debugger session shows of
// the main one: where it stands in user mode.
const (
	mainThread, workerThread = 0x5920, 0x2240
	mainIP, mainSP           = 0x7ffe6390d184, 0xd67c9fe328
)

func TestReadLinePair(t *testing.T) {
	s, user, kernel, images := readLine(t)
	inc := analyze(t, user, kernel, Options{Images: []string{images}})
	if inc.Pairing == nil || inc.Pairing.PID != 0x3adc || len(inc.Pairing.Warnings) != 0 || inc.Crashing != -1 {
		t.Errorf("pairing %+v, crashing %d", inc.Pairing, inc.Crashing)
	}
	if len(inc.Threads) != 4 || len(inc.Missing) != 0 {
		t.Errorf("%d threads, missing %+v", len(inc.Threads), inc.Missing)
	}
	for i := range inc.Threads {
		th := &inc.Threads[i]
		wantHalf(t, "user", th.User, s.UserStacks[th.ID])
		wantHalf(t, "kernel", th.Kernel, s.KernelStacks[th.ID])
		for j, f := range th.Kernel.Frames {
			if f.Capture != (j < 3) { // snap, snap's APC, its delivery
				t.Errorf("thread %#x kernel frame %d (%s) is marked %v", th.ID, j, f.Name.Function, f.Capture)
			}
		}
		if moved := th.ID == workerThread; th.Stitched == moved {
			t.Errorf("thread %#x: stitched %v", th.ID, th.Stitched)
		} else if moved != strings.HasPrefix(th.Seam.Note, "not simultaneous") {
			t.Errorf("thread %#x: note %q", th.ID, th.Seam.Note)
		}
	}
	if m := threadOf(t, inc, mainThread); m.Seam.UserIP != mainIP || m.Seam.UserSP != mainSP || m.User.Frames[0].Method != unwind.MethodStitch {
		t.Errorf("main thread: seam %+v", m.Seam)
	}
	if w := threadOf(t, inc, workerThread); w.User.Frames[0].Method != unwind.MethodContext {
		t.Errorf("worker: %q", w.User.Frames[0].Method)
	}
}

// Without the kernel's image the trap frame still gives the seam.
func TestReadLineWithoutKernelImage(t *testing.T) {
	s, user, kernel, _ := readLine(t)
	inc := analyze(t, user, kernel, Options{Images: []string{t.TempDir()}})
	main := threadOf(t, inc, mainThread)
	if !main.Stitched || main.Seam.UserIP != mainIP || main.Seam.UserSP != mainSP {
		t.Errorf("seam %+v", main.Seam)
	}
	wantHalf(t, "user", main.User, s.UserStacks[mainThread])
	known := map[uint64]bool{}
	for _, f := range s.KernelStacks[mainThread] {
		known[f.PC] = true
	}
	for i, f := range main.Kernel.Frames {
		if i > 0 && f.Trust == unwind.TrustCFI && f.Method == unwind.MethodPdata {
			t.Errorf("frame %d claims unwind data of an image that is not there", i)
		}
		if f.Name.Function != "" || f.Capture {
			t.Errorf("frame %d has the name %q, capture %v", i, f.Name.Function, f.Capture)
		}
	}
	if !known[main.Kernel.Frames[0].IP] {
		t.Errorf("frame 0 at %#x", main.Kernel.Frames[0].IP)
	}
	// The trap frame's place proves that of the system service's own frame.
	stub, last := s.KernelStacks[mainThread][len(s.KernelStacks[mainThread])-1], main.Kernel.Frames[len(main.Kernel.Frames)-1]
	if last.IP != stub.PC || last.SP != stub.SP || last.Method != unwind.MethodTrapSlot {
		t.Errorf("the outermost frame is %#x at %#x by %q, want %#x at %#x", last.IP, last.SP, last.Method, stub.PC, stub.SP)
	}
	if len(inc.Missing) != 1 || inc.Missing[0].Module.Name() != "ntoskrnl.exe" || inc.Missing[0].Tried[0] != "dump memory" || len(inc.Missing[0].Tried) != 2 {
		t.Errorf("missing %+v", inc.Missing)
	}
}

func TestReadLineKernelAlone(t *testing.T) {
	s, _, kernel, images := readLine(t)
	inc := analyze(t, nil, kernel, Options{Images: []string{images}})
	if inc.Process.PID != 0x3adc || inc.Pairing != nil || inc.BugCheck == nil || !inc.BugCheck.Live || inc.Crashing != -1 {
		t.Errorf("process %+v, bugcheck %+v, crashing %d", inc.Process, inc.BugCheck, inc.Crashing)
	}
	main := threadOf(t, inc, mainThread)
	wantHalf(t, "kernel", main.Kernel, s.KernelStacks[mainThread])
	if !main.Stitched || main.User == nil || main.User.Frames[0].IP != mainIP || main.User.Frames[0].SP != mainSP {
		t.Errorf("user half %+v", main.User)
	}
	// By the time of the kernel dump the worker was elsewhere.
	if w := threadOf(t, inc, workerThread); !w.Stitched || w.User.Frames[0].IP == s.UserStacks[workerThread][0].PC {
		t.Errorf("worker at %#x", w.User.Frames[0].IP)
	}
}
