package triage_test

import (
	"fmt"

	"dumptriage/triage"
)

// Both halves of the stack of the thread that waits for a line of input: the
// user dump's and the kernel dump's, joined at the system call.
func Example() {
	user, err := triage.Open("../fixtures/readline/ConsoleApp1.dmp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer user.Close()
	kernel, err := triage.Open("../fixtures/readline/ConsoleApp1.Kernel.dmp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer kernel.Close()

	thread := uint32(0x5920)
	inc, err := triage.Analyze(user, kernel, "given", triage.Options{
		Images: []string{"../fixtures/readline/images"},
		Thread: &thread,
	})
	if err != nil {
		fmt.Println(err) // two different processes
		return
	}
	defer inc.Close()

	for _, t := range inc.Threads {
		fmt.Println("joined:", t.Stitched)
		for _, half := range []*triage.Half{t.Kernel, t.User} {
			if half == nil {
				continue
			}
			for _, f := range half.Frames[max(0, len(half.Frames)-3):] {
				fmt.Printf("%#x %s!%s+%#x by %v\n", f.SP, f.ModuleName(), f.Name.Function, f.Name.Offset, f.Trust)
			}
			fmt.Println("the walk ended:", half.Stop.Reason)
		}
	}
	// Output:
	// joined: true
	// 0xffffe10d62387810 ntoskrnl.exe!IopSynchronousServiceTail+0x238 by cfi
	// 0xffffe10d623878b0 ntoskrnl.exe!NtReadFile+0x599 by cfi
	// 0xffffe10d62387990 ntoskrnl.exe!KiSystemServiceCopyEnd+0x25 by cfi
	// the walk ended: trap_frame
	// 0xd67c9ff030 ConsoleApp1.exe!fn@12038+0x10c by cfi
	// 0xd67c9ff070 KERNEL32.DLL!BaseThreadInitThunk+0x14 by cfi
	// 0xd67c9ff0a0 ntdll.dll!RtlUserThreadStart+0x21 by cfi
	// the walk ended: end_of_stack
}
