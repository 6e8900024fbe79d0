package minidump_test

import (
	"fmt"
	"log"
	"os"

	"dumptriage/minidump"
)

// A dump that is damaged in part still answers; Damage says what is missing.
func Example() {
	file, err := os.Open("app.dmp")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	dmp, err := minidump.Open(file, info.Size(), "app.dmp")
	if err != nil {
		log.Fatal(err) // not a minidump of Windows
	}
	for _, t := range dmp.Threads() {
		if pc, ok := t.Context.PC(); ok {
			fmt.Printf("%d %s at %#x\n", t.ID, t.Name, pc)
		}
	}
	for _, e := range dmp.DecodeAll() {
		log.Print(e)
	}
}
