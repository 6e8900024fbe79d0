package signature

import (
	"testing"
)

// One wait, with all symbols of the system, with its exports and its .pdata, and
// with its exports alone: one bucket, of a hang as of a snapshot.
func TestWaitWithAndWithoutSymbols(t *testing.T) {
	for name, c := range map[string]struct {
		stacks []string
		want   string
	}{
		"a critical section": {[]string{
			"ntdll!NtWaitForAlertByThreadId\nntdll!RtlpWaitOnAddressWithTimeout\nntdll!RtlpWaitOnAddress\nntdll!RtlpEnterCriticalSectionContended\nntdll!RtlEnterCriticalSection\napp!work",
			"ntdll!NtWaitForAlertByThreadId\nntdll!fn@1f400\nntdll!fn@1e100\nntdll!RtlEnterCriticalSection\napp!work",
			"ntdll+9dc24\nntdll+1f412\nntdll!RtlEnterCriticalSection\napp!work",
		}, "ntdll!RtlEnterCriticalSection | app!work"},
		"the loader": {[]string{
			"ntdll!NtWaitForSingleObject\nntdll!LdrpDrainWorkQueue\nntdll!LdrpLoadDllInternal\nntdll!LdrLoadDll\nkernelbase!LoadLibraryExW\napp!plug",
			"ntdll!NtWaitForSingleObject\nntdll!fn@100\nntdll!fn@200\nntdll!LdrLoadDll\nkernelbase!LoadLibraryExW\napp!plug",
		}, "ntdll!LdrLoadDll"},
		"messages": {[]string{
			"win32u!NtUserGetMessage\nuser32!GetMessageW\napp!pump",
			"win32u+1064\nuser32!GetMessageW\napp!pump",
		}, "user32!GetMessageW | app!pump"},
		"a worker": {[]string{
			"ntdll!NtWaitForWorkViaWorkerFactory\nntdll!TppWorkerThread\nkernel32!BaseThreadInitThunk\nntdll!RtlUserThreadStart",
			"ntdll!NtWaitForWorkViaWorkerFactory\nntdll!fn@3000\nkernel32!BaseThreadInitThunk\nntdll!RtlUserThreadStart",
		}, "ntdll!NtWaitForWorkViaWorkerFactory | kernel32!BaseThreadInitThunk | ntdll!RtlUserThreadStart | in app.exe"},
		"nothing public": {[]string{"ntdll+a39e4", "ntdll+b1000\nntdll+c1000"}, "no usable frames in app.exe"},
	} {
		for _, lines := range c.stacks {
			if s := Of(newScene(1<<32).snapshot(lines), Options{}); s.Text != "SNAPSHOT | "+c.want {
				t.Errorf("%s: %q\nwant %q", name, s.Text, "SNAPSHOT | "+c.want)
			}
		}
	}
	a, b := "ntdll!NtWaitForAlertByThreadId\nntdll!RtlpEnterCriticalSectionContended\nntdll!RtlEnterCriticalSection\napp!a", "ntdll+9dc24\nntdll!fn@1f400\nntdll!RtlEnterCriticalSection\napp!a"
	other := "ntdll!NtWaitForSingleObject\nkernelbase!WaitForSingleObjectEx\napp!b"
	hang := Options{Hang: &Hang{Class: "blocked", Threads: []int{0, 1}}}
	x, y := Of(newScene(1<<32).snapshot(a, other), hang), Of(newScene(1<<32).snapshot(b, other), hang)
	if x.ID != y.ID || x.Text != "HANG_BLOCKED | ntdll!RtlEnterCriticalSection | app!a | waits for | app!b" {
		t.Errorf("with symbols    %s\nwithout symbols %s", x.Text, y.Text)
	}
	// A thread without anything public keeps its place in the chain.
	if s := Of(newScene(1<<32).snapshot("ntdll+1", other), hang); s.Text != "HANG_BLOCKED | no usable frames | waits for | app!b" {
		t.Error(s.Text)
	}
}

// In a crash the same functions are where it happened.
func TestInternalsOfCrashesStay(t *testing.T) {
	inc := newScene(1<<32).crash(av, "ntdll!RtlpFreeHeap\nntdll!RtlFreeHeap\napp!f", 0, 1<<40)
	if s := Of(inc, Options{}); s.Text != "AV_READ | ntdll!RtlpFreeHeap | ntdll!RtlFreeHeap | app!f" {
		t.Error(s.Text)
	}
}
