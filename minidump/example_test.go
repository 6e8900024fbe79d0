package minidump_test

import (
	"fmt"
	"os"

	"dumptriage/minidump"
)

// A dump that is damaged in part still answers; Damage says what is missing.
func Example() {
	file, err := os.Open("../fixtures/crash/crashdemo.dmp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	dmp, err := minidump.Open(file, info.Size(), "crashdemo.dmp")
	if err != nil {
		fmt.Println(err) // not a minidump of Windows
		return
	}
	for _, t := range dmp.Threads() {
		if pc, ok := t.Context.PC(); ok {
			fmt.Printf("thread %d at %#x\n", t.ID, pc)
		}
	}
	if x := dmp.Exception(); x != nil {
		fmt.Printf("exception %#x of thread %d\n", x.Code, x.ThreadID)
	}
	for _, e := range dmp.DecodeAll() {
		fmt.Println("damaged:", e)
	}
	// Output:
	// thread 6700 at 0x7ff7a0b2102a
	// exception 0xc0000005 of thread 6700
}
