package pdb_test

import (
	"fmt"
	"os"

	"dumptriage/symbols/pdb"
)

// The address is where inline.cpp's measure has inlined Box::area.
func Example() {
	file, err := os.Open("testdata/inline-x64.pdb")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := pdb.Open(file, st.Size(), "inline-x64.pdb")
	if err != nil {
		fmt.Println(err)
		return
	}
	loc, _ := f.Lookup(0x1052)
	for _, in := range loc.Inlines {
		fmt.Printf("%s [%s @ %d]\n", in.Function, in.File, in.Line)
	}
	fmt.Printf("%s+%#x [%s @ %d]\n", loc.Function, loc.Offset, loc.File, loc.Line)
	// Output:
	// shapes::Box::area [/src/inline.cpp @ 27]
	// measure+0x12 [/src/inline.cpp @ 56]
}
