package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dumptriage/fixtures"
)

// one is a thread that does one thing, and what the command line says of it.
type one struct {
	class string
	text  string // of the line behind the thread's id, "" when it has none
	fixtures.WaitThread
}

// waiting is a thread whose innermost functions are given, the rest is the program's.
// The first argument of each is 0x500000.
func waiting(class, text, stack string) one {
	return one{class, text, fixtures.WaitThread{Argument: 0x500000, Stack: append(strings.Split(stack, " < "), "app!main")}}
}

// onHandle waits for a handle through the documented function.
func onHandle(class, text string, handle uint64) one {
	o := waiting(class, text, "ntdll!NtWaitForSingleObject < kernelbase!WaitForSingleObjectEx")
	o.Argument = handle
	return o
}

const (
	monitorWait = "ntdll!NtWaitForMultipleObjects < kernelbase!WaitForMultipleObjectsEx < coreclr!CLREventBase::Wait < system.private.corelib!System.Threading.Monitor.Wait"
	slimWait    = monitorWait + " < system.private.corelib!System.Threading.ManualResetEventSlim.Wait"
)

// everyWait has a thread of every class that a user dump can show.
func everyWait() []one {
	spins := waiting("spinning", "runs and runs (used 90% of a processor since it began)", "app!Hash")
	spins.CPU = 90 * time.Second
	suspended := waiting("suspended", "is suspended: handle 0x500000", "ntdll!NtWaitForSingleObject < kernelbase!WaitForSingleObjectEx < app!Idle")
	suspended.Suspended = true
	alone := waiting("debugger_break", "", "app!DbgBreak")
	alone.Stack = []string{"ntdll!DbgUiRemoteBreakin"}
	return []one{
		waiting("running", "runs (used 0% of a processor since it began)", "app!Compute"), spins, suspended, alone,
		waiting("system_call", "is in a system call", "ntdll!NtQueryVirtualMemory < kernelbase!VirtualQuery"),
		onHandle("object", "waits for an object: handle 0x10", 0x10),
		onHandle("mutex", `waits for a mutex: handle 0x14 Mutant \BaseNamedObjects\turn, held by thread 1a2c.1000`, 0x14),
		onHandle("mutex", "waits for a mutex: handle 0x18 Mutant (free)", 0x18),
		onHandle("event", `waits for an event: handle 0x1c Event \BaseNamedObjects\go (auto reset, not set)`, 0x1c),
		onHandle("semaphore", "waits for a semaphore: handle 0x20 Semaphore (0 of 3 left)", 0x20),
		onHandle("timer", "waits for a timer: handle 0x24 Timer", 0x24),
		onHandle("process", "waits for a process to end: handle 0x28 Process 4660 (0x1234)", 0x28),
		onHandle("thread", "waits for a thread to end: handle 0x2c Thread 1a2c.1000", 0x2c),
		onHandle("job", "waits for a job: handle 0x30 Job", 0x30),
		waiting("objects", "waits for several objects", "ntdll!NtWaitForMultipleObjects < kernelbase!WaitForMultipleObjectsEx"),
		waiting("critical_section", "waits for critical section 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlEnterCriticalSection"),
		waiting("srw_lock", "waits for slim reader/writer lock 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlAcquireSRWLockShared"),
		waiting("condition_variable", "waits for condition variable 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlSleepConditionVariableSRW < kernelbase!SleepConditionVariableSRW"),
		waiting("address", "waits for address 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlWaitOnAddress"),
		waiting("keyed_event", "waits for a keyed event", "ntdll!NtWaitForKeyedEvent"),
		waiting("init_once", "waits for a one-time initialisation: address 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlRunOnceExecuteOnce"),
		waiting("barrier", "waits at a barrier: address 0x0000000000500000", "ntdll!NtWaitForAlertByThreadId < ntdll!RtlBarrier"),
		waiting("resource", "waits for a resource lock: address 0x0000000000500000", "ntdll!NtWaitForSingleObject < ntdll!RtlAcquireResourceExclusive"),
		waiting("monitor", "waits for a .NET monitor", "ntdll!NtWaitForMultipleObjects < kernelbase!WaitForMultipleObjectsEx < coreclr!CLREventBase::Wait < system.private.corelib!System.Threading.Monitor.Enter"),
		waiting("task", "waits for a .NET task", slimWait+" < system.private.corelib!System.Threading.Tasks.Task.SpinThenBlockingWait < system.private.corelib!System.Threading.Tasks.Task.InternalWaitCore"),
		waiting("event", "waits for an event", slimWait),
		waiting("semaphore", "waits for a semaphore", monitorWait+" < system.private.corelib!System.Threading.SemaphoreSlim.Wait"),
		waiting("loader_lock", "waits for the loader lock", "ntdll!NtWaitForSingleObject < ntdll!LdrLoadDll < kernelbase!LoadLibraryExW"),
		waiting("gc_suspension", "waits for a garbage collection", "ntdll!NtWaitForSingleObject < kernelbase!WaitForSingleObjectEx < coreclr!CLREventBase::Wait < coreclr!Thread::RareDisablePreemptiveGC"),
		waiting("sleep", "sleeps", "ntdll!NtDelayExecution < kernelbase!SleepEx"),
		waiting("io", "waits for input or output: handle 0x500000", "ntdll!NtReadFile < kernelbase!ReadFile"),
		waiting("io", "waits for input or output: handle 0x500000", "ntdll!NtWaitForSingleObject < mswsock!WSPRecv < ws2_32!recv"),
		waiting("io_completion", "", "ntdll!NtRemoveIoCompletion < kernelbase!GetQueuedCompletionStatus"),
		waiting("idle_worker", "", "ntdll!NtWaitForWorkViaWorkerFactory < ntdll!TppWorkerThread"),
		waiting("idle_gui", "", "win32u!NtUserGetMessage < user32!GetMessageW"),
		waiting("send_message", "waits for a window to handle a message: window 0x0000000000500000", "win32u!NtUserMessageCall < user32!SendMessageW"),
		waiting("alpc", "waits for an answer from another process or thread: handle 0x500000", "ntdll!NtAlpcSendWaitReceivePort"),
		waiting("rpc", "waits for a remote procedure call: handle 0x500000", "ntdll!NtAlpcSendWaitReceivePort < rpcrt4!NdrClientCall3 < sechost!StartServiceW"),
		waiting("com_call", "waits for a COM call: handle 0x500000", "ntdll!NtAlpcSendWaitReceivePort < rpcrt4!NdrClientCall3 < combase!ObjectStublessClient3"),
		waiting("debug_event", "waits for events of a process it debugs", "ntdll!NtWaitForDebugEvent < kernelbase!WaitForDebugEvent"),
		waiting("exiting", "is ending", "ntdll!NtTerminateThread"),
	}
}

func waitHandles() []fixtures.Handle {
	return []fixtures.Handle{
		fixtures.MutexHandle(0x14, `\BaseNamedObjects\turn`, 0x1000), fixtures.MutexHandle(0x18, "", 0), fixtures.EventHandle(0x1c, `\BaseNamedObjects\go`),
		fixtures.SemaphoreHandle(0x20, 3), {Value: 0x24, Type: "Timer"}, fixtures.ProcessHandle(0x28, 0x1234),
		fixtures.ThreadHandle(0x2c, 0x1000, fixtures.WaitTEB(0)), {Value: 0x30, Type: "Job"},
	}
}

type waitAnswer struct {
	Analysis struct {
		Class string
		Hang  struct {
			Class, Reason, Confidence string
			SubjectThreadID           uint32 `json:"subject_thread_id"`
			Cycles                    [][]uint32
			RootBlockers              []struct {
				ThreadID uint32   `json:"thread_id"`
				Waiters  []uint32 `json:"waiters"`
			} `json:"root_blockers"`
		}
	}
	Threads []struct {
		ID   uint32 `json:"thread_id"`
		Wait *struct{ Class, Detail string }
	}
}

// judgeWaits runs triage on a scene, and gives its text and its JSON.
func judgeWaits(t *testing.T, s fixtures.WaitScene) (text string, got waitAnswer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "waits.dmp")
	if err := os.WriteFile(path, fixtures.BuildWaits(s), 0o600); err != nil {
		t.Fatal(err)
	}
	verb := func(args ...string) string {
		var out, errs strings.Builder
		if code := run(append([]string{"triage", "--not-beside"}, append(args, path)...), &out, &errs); code != 0 {
			t.Fatalf("status %d: %s", code, errs.String())
		}
		return out.String()
	}
	if err := json.Unmarshal([]byte(verb("--json")), &got); err != nil {
		t.Fatal(err)
	}
	return verb(), got
}

// TestEveryClassOfWait shows each class from the command line, in text and in JSON.
func TestEveryClassOfWait(t *testing.T) {
	all := everyWait()
	for len(all) > 0 { // the text lists a number of threads only
		part := all[:min(len(all), 20)]
		all = all[len(part):]
		s := fixtures.WaitScene{Handles: waitHandles()}
		for i, o := range part {
			o.ID = 0x2000 + 4*uint32(i)
			s.Threads = append(s.Threads, o.WaitThread)
		}
		first := fixtures.WaitThread{ID: 0x1000, Stack: []string{"ntdll!NtDelayExecution", "kernelbase!SleepEx", "app!main"}}
		s.Threads = append([]fixtures.WaitThread{first}, s.Threads...)
		text, got := judgeWaits(t, s)
		for i, o := range part {
			th := got.Threads[slices.IndexFunc(s.Threads, func(x fixtures.WaitThread) bool { return x.ID == 0x2000+4*uint32(i) })]
			if th.Wait == nil || th.Wait.Class != o.class {
				t.Errorf("%v: %+v, want %s", o.Stack, th.Wait, o.class)
			}
			if o.text != "" && !strings.Contains(text, fmt.Sprintf(" thread 1a2c.%x %s\n", th.ID, o.text)) {
				t.Errorf("%v: no line %q in\n%s", o.Stack, o.text, threadLines(text, th.ID))
			}
		}
	}
}

// TestClassesOfAnException are of the thread that a dump's exception is of.
func TestClassesOfAnException(t *testing.T) {
	for code, want := range map[uint32]string{0xc0000005: "crashed", 0x80000003: "breakpoint", 0xcfffffff: "sleep"} {
		_, got := judgeWaits(t, fixtures.WaitScene{Exception: code, Threads: []fixtures.WaitThread{{ID: 0x1000, Stack: []string{"ntdll!NtDelayExecution", "kernelbase!SleepEx", "app!main"}}}})
		if w := got.Threads[0].Wait; w == nil || w.Class != want {
			t.Errorf("%x: %+v, want %s", code, w, want)
		}
	}
}

// scene names the threads of a small scene.
func scene(threads ...fixtures.WaitThread) fixtures.WaitScene {
	return fixtures.WaitScene{Threads: threads}
}

func joining(id uint32, handle uint64, stack ...string) fixtures.WaitThread {
	return fixtures.WaitThread{ID: id, Argument: handle, Stack: append([]string{"ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx"}, stack...)}
}

// TestWaitsForThreads are waits for a thread's end, which a handle's records name.
func TestWaitsForThreads(t *testing.T) {
	const main, worker, second = 0x1000, 0x1004, 0x1008
	mutex, thread := fixtures.MutexHandle(0x14, "", main), fixtures.ThreadHandle(0x2c, worker, fixtures.WaitTEB(1))
	ended := fixtures.ThreadHandle(0x2c, worker, fixtures.WaitTEB(1))
	ended.Info[0].Data[0] = 0
	sleeps := fixtures.WaitThread{ID: worker, Stack: []string{"ntdll!NtDelayExecution", "kernelbase!SleepEx", "app!Work"}}
	entry := fixtures.WaitThread{ID: worker, Bare: true, Stack: []string{"ntdll!NtWaitForSingleObject", "ntdll!LdrInitializeThunk"}}
	for _, c := range []struct {
		name    string
		scene   fixtures.WaitScene
		handles []fixtures.Handle
		class   string
		subject uint32
		cycle   bool
		reason  string
	}{
		{"the thread waits for a mutex of who waits for it", scene(joining(main, 0x2c, "app!main"), joining(worker, 0x14, "app!Work")),
			[]fixtures.Handle{mutex, thread}, "deadlock", main, true, "threads 1a2c.1000, 1a2c.1004 wait for each other"},
		{"a DLL's entry point waits for a thread, which waits to begin", scene(joining(main, 0x2c, "plug!DllMain", "ntdll!LdrLoadDll", "kernelbase!LoadLibraryExW", "app!main"), entry),
			[]fixtures.Handle{thread}, "deadlock", main, true, "threads 1a2c.1000, 1a2c.1004 wait for each other"},
		{"the thread only sleeps", scene(joining(main, 0x2c, "app!main"), sleeps), []fixtures.Handle{thread}, "waiting", main, false,
			"no thread is seen to hold up others; thread 1a2c.1000 waits for a thread to end: handle 0x2c Thread 1a2c.1004"},
		{"and a window waits for it", scene(joining(main, 0x2c, "app!OnClick", "user32!DispatchMessageW", "app!main"), sleeps), []fixtures.Handle{thread}, "blocked", worker, false,
			"1 thread is held up by another: thread 1a2c.1004 sleeps"},
		{"it has ended", scene(joining(main, 0x2c, "app!main"), sleeps), []fixtures.Handle{ended}, "waiting", main, false,
			"no thread is seen to hold up others; thread 1a2c.1000 waits for a thread to end: handle 0x2c Thread 1a2c.1004 (ended)"},
		{"two windows wait for it", scene(joining(main, 0x2c, "app!OnClick", "user32!DispatchMessageW", "app!main"), sleeps, joining(second, 0x2c, "app!OnClick", "user32!DispatchMessageW", "app!second")),
			[]fixtures.Handle{thread}, "blocked", worker, false, "2 threads are held up by another: thread 1a2c.1004 sleeps"},
	} {
		c.scene.Handles = c.handles
		text, got := judgeWaits(t, c.scene)
		h := got.Analysis.Hang
		if h.Class != c.class || h.SubjectThreadID != c.subject || (len(h.Cycles) == 1) != c.cycle || h.Reason != c.reason {
			t.Errorf("%s: %+v, want %s of %x: %s", c.name, h, c.class, c.subject, c.reason)
		}
		if !strings.Contains(unwrapped(text), c.reason) {
			t.Errorf("%s: the text does not say %q", c.name, c.reason)
		}
	}
}

// unwrapped is a text in one line: verdicts that are long are broken.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// threadLines are those of a text that name a thread.
func threadLines(text string, id uint32) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, fmt.Sprintf("1a2c.%x ", id)) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// TestStarvedPool has all threads of a .NET thread pool wait for tasks.
func TestStarvedPool(t *testing.T) {
	task := strings.Split(slimWait+" < system.private.corelib!System.Threading.Tasks.Task.InternalWaitCore", " < ")
	dispatch := []string{"shop!Shop.Orders.Load", "system.private.corelib!System.Threading.ThreadPoolWorkQueue.Dispatch"}
	idle := strings.Split("ntdll!NtRemoveIoCompletion < kernelbase!GetQueuedCompletionStatus < system.private.corelib!System.Threading.LowLevelLifoSemaphore.Wait < system.private.corelib!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart", " < ")
	blocked := func(id uint32) fixtures.WaitThread {
		return fixtures.WaitThread{ID: id, Name: ".NET TP Worker", Stack: slices.Concat(task, dispatch)}
	}
	sleeps := fixtures.WaitThread{ID: 0x100c, Stack: slices.Concat([]string{"ntdll!NtDelayExecution", "kernelbase!SleepEx"}, dispatch)}
	sleepsToo := sleeps
	sleepsToo.ID = 0x1014
	main := fixtures.WaitThread{ID: 0x1000, Stack: append(slices.Clone(task), "shop!Shop.Program.Main")}
	for _, c := range []struct {
		name  string
		scene fixtures.WaitScene
		class string
	}{
		{"all wait", scene(main, blocked(0x1004), blocked(0x1008), blocked(0x1010), sleeps), "pool_starvation"},
		{"fewer than the four processors", scene(main, blocked(0x1004), blocked(0x1008), blocked(0x1010)), "waiting"},
		{"one waits for work", scene(main, blocked(0x1004), blocked(0x1008), blocked(0x1010), fixtures.WaitThread{ID: 0x100c, Stack: idle}), "waiting"},
		{"one computes", scene(main, blocked(0x1004), blocked(0x1008), blocked(0x1010), fixtures.WaitThread{ID: 0x100c, Stack: dispatch}), "waiting"},
		{"a pool of one", scene(main, blocked(0x1004)), "waiting"},
		{"most wait for something else", scene(main, blocked(0x1004), blocked(0x1008), sleeps, sleepsToo), "waiting"},
	} {
		text, got := judgeWaits(t, c.scene)
		h := got.Analysis.Hang
		if h.Class != c.class {
			t.Errorf("%s: %+v, want %s", c.name, h, c.class)
		}
		const words = "all 4 threads of the .NET pool wait, 3 of them for tasks, which may need the pool: thread 1a2c.1004 waits for a .NET task"
		if c.class == "pool_starvation" && (h.Reason != words || !strings.Contains(unwrapped(text), words)) {
			t.Errorf("%s: %s", c.name, h.Reason)
		}
	}
}

// TestHandleStates lists what handle data says of objects.
func TestHandleStates(t *testing.T) {
	s := scene(fixtures.WaitThread{ID: 0x1000, Stack: []string{"ntdll!NtDelayExecution", "kernelbase!SleepEx", "app!main"}})
	s.Handles = waitHandles()
	path := filepath.Join(t.TempDir(), "handles.dmp")
	if err := os.WriteFile(path, fixtures.BuildWaits(s), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{`Mutant     \BaseNamedObjects\turn (held by thread 1a2c.1000)`, "Mutant     (free)", `Event      \BaseNamedObjects\go (auto reset, not set)`,
			"Semaphore  (0 of 3 left)", "Process    4660 (0x1234)", "Thread     1a2c.1000"}},
		{[]string{"--json"}, []string{`"type_name":"Mutant","object_name":"\\BaseNamedObjects\\turn","access":"0x001f0001","owner_thread_id":4096`,
			`"type_name":"Event","object_name":"\\BaseNamedObjects\\go","access":"0x001f0003","state":"auto reset, not set"`,
			`"type_name":"Process","access":"0x001fffff","process_id":4660`, `"type_name":"Thread","access":"0x001fffff","process_id":6700,"thread_id":4096`}},
	} {
		var out, errs strings.Builder
		if code := run(slices.Concat([]string{"handles"}, c.args, []string{path}), &out, &errs); code != 0 {
			t.Fatalf("status %d: %s", code, errs.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
}
