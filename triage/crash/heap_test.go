package crash

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// The layout of 32-bit code, and what is no such structure.
func TestHeapFailureX86(t *testing.T) {
	words := func(w ...uint32) (b []byte) {
		for _, v := range w {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	for _, c := range []struct {
		memory []byte
		want   *HeapFailure
	}{
		{words(1, 0xb0, 11, 0x520000, 0x525e10), &HeapFailure{11, "usage_after_free", 0x520000, 0x525e10}},
		{words(1, 0xb0, 99, 0x520000, 0), &HeapFailure{99, "", 0x520000, 0}}, // of a system to come
		{words(1, 0xb0, 11, 0x520000), nil},                                  // cut off
		{words(1, 0, 0, 0, 0), nil},                                          // as it is in the file
		{words(1, 0xb0, 0, 0, 0), nil},                                       // never filled
		{words(0x1234567, 0xb0, 11, 0x520000, 0), nil},
		{words(1, 0xb0, 11, 0x520004, 0), nil}, // no heap begins there
	} {
		inc := incident(codeHeapCorruption)
		inc.System.Build = 19045
		inc.System.Arch, inc.Crash.Context.Arch = dump.X86, dump.X86
		inc.Crash.Parameters = []uint64{0x775d4268}
		inc.UserSpace = triage.NewView(pages{0x775d4268: c.memory}, nil, []*triage.Module{{Module: &dump.Module{Base: 0x77500000, Size: 0x180000, Path: "ntdll.dll"}}})
		if v := Of(inc, nil); (v.Heap == nil) != (c.want == nil) || v.Heap != nil && *v.Heap != *c.want {
			t.Errorf("%x: %+v, want %+v", c.memory, v.Heap, c.want)
		}
	}
}

// The numbers are those of _HEAP_FAILURE_TYPE in the public symbols of each system.
func TestHeapFailureNames(t *testing.T) {
	for _, c := range []struct {
		build, failure uint32
		want           string
	}{
		{7601, 8, "block_not_busy"},
		{7601, 10, "usage_after_free"},
		{7601, 13, "listentry_corruption"},
		{9600, 12, "freelists_corruption"},
		{16299, 11, "cross_heap_operation"},
		{16299, 18, "null_heap"},
		{17134, 9, "invalid_argument"},
		{17134, 10, "invalid_allocation_type"},
		{17134, 19, "null_heap"},
		{18362, 11, "usage_after_free"},
		{18362, 22, "invalid_va_mgr_query"},
		{17000, 11, ""}, // between the two
		{0, 11, ""},     // the dump does not tell
		{0, 9, "invalid_argument"},
		{18362, 1000, ""},
		{7601, 0xffffffff, ""},
	} {
		if got := heapFailureName(c.failure, c.build); got != c.want {
			t.Errorf("%d of build %d: %q, want %q", c.failure, c.build, got, c.want)
		}
	}
}

// A dump without an exception that was written while one was being reported.
func TestRaising(t *testing.T) {
	const sp = 0x70000
	const app, base = `C:\demo\app.exe`, `C:\Windows\System32\kernelbase.dll`
	frames := []triage.Frame{frameIn(base, "UnhandledExceptionFilter"), frameIn(base, "RaiseException"), frameIn(app, "_CxxThrowException"), frameIn(app, "parse")}
	share(frames)
	for i := range frames {
		frames[i].SP = sp + 0x100*uint64(i)
	}
	stack := make([]byte, 0x400)
	// code, flags, record, address, number of parameters, parameters
	for i, v := range []uint64{0xe06d7363 | 1<<32, 0, 0x1010, 4, 0x19930520, sp + 0x300, 0x5000, 0x1000} {
		binary.LittleEndian.PutUint64(stack[0x120+8*i:], v)
	}
	inc := incident(0, frames...)
	inc.Crash = nil
	th := &inc.Threads[0]
	th.StackBase, th.User.Registers.Arch = sp+0x400, dump.AMD64
	inc.UserSpace = triage.NewView(pages{sp: stack}, nil, []*triage.Module{frames[0].Module})
	got := Raising(inc, nil)
	if len(got) != 1 || got[0].Code != codeCxx || got[0].Frame != 1 || got[0].ThreadID != 1 || got[0].By == nil || got[0].By.Name.Function != "parse" || got[0].Thrown == nil || got[0].Thrown.Address != sp+0x300 {
		t.Fatalf("%+v", got)
	}
	inc.Crash = &triage.Crash{}
	if got := Raising(inc, nil); got != nil {
		t.Errorf("beside an exception of the dump's own: %+v", got)
	}
	inc.Crash, frames[1].Name.Function = nil, "CloseHandle"
	if got := Raising(inc, nil); got != nil {
		t.Errorf("without a frame that raises: %+v", got)
	}
	// Where the exception is terminate's, the one that led to it is live.
	frames[1].Name.Function = "RaiseException"
	frames[0].Name.Function = "terminate"
	inc.Crash = incident(codeFailFast).Crash
	inc.Crash.Parameters = []uint64{7}
	if v := Of(inc, nil); len(v.Earlier) != 1 || !v.Earlier[0].Live || v.Earlier[0].By == nil || v.Earlier[0].By.Name.Function != "parse" {
		t.Errorf("%+v", v.Earlier)
	}
}

// reads counts what is read of memory that is all zero.
type reads struct{ n int }

func (r *reads) ReadAt(p []byte, va uint64) (int, error) {
	r.n++
	clear(p)
	return len(p), nil
}

// However many threads a dump has that seem to raise, few stacks are searched.
func TestRaisingIsCapped(t *testing.T) {
	const threads, stack, page = 3000, 1 << 20, 0x1000
	frames := []triage.Frame{frameIn(`C:\Windows\System32\kernelbase.dll`, "RaiseException")}
	frames[0].SP = 0x70000
	inc := incident(0, frames...)
	inc.Crash = nil
	inc.Threads[0].StackBase, inc.Threads[0].User.Registers.Arch = 0x70000+4*stack, dump.AMD64
	for len(inc.Threads) < threads {
		inc.Threads = append(inc.Threads, inc.Threads[0])
	}
	var mem reads
	inc.UserSpace = triage.NewView(&mem, nil, nil)
	if got := Raising(inc, nil); len(got) != 0 || mem.n == 0 || mem.n > 256*stack/page {
		t.Errorf("%d found in %d reads", len(got), mem.n)
	}
}
