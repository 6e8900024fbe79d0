package undname_test

import (
	"fmt"

	"dumptriage/symbols/undname"
)

func ExampleDemangle() {
	const name = "?run@Job@app@@QEAAHPEBD@Z"
	whole, _ := undname.Demangle(name, undname.Options{})
	short, _ := undname.Demangle(name, undname.Options{NameOnly: true})
	fmt.Println(whole)
	fmt.Println(short)
	// Output:
	// public: int __cdecl app::Job::run(char const *)
	// app::Job::run
}
