// Package undname turns the decorated names of Microsoft's C++ compiler (and of
// clang-cl) back into declarations:
//
//	undname.Demangle("?run@Job@app@@QEAAHPEBD@Z", undname.Options{})
//	// public: int __cdecl app::Job::run(char const *)
//	undname.Demangle("?run@Job@app@@QEAAHPEBD@Z", undname.Options{NameOnly: true})
//	// app::Job::run
//
// It depends on the standard library only and may be imported by any project.
// All functions may be called from several goroutines.
//
// # Sources
//
// Microsoft does not publish the scheme. What is implemented follows its public
// descriptions (LLVM's and Wine's documentation and tests, Agner Fog's "Calling
// conventions") and compilers' output. The text is that of llvm-undname 19 to
// the letter, but for this: a repeated anonymous namespace is written out as the
// first one is, where llvm-undname writes its hash; adjusting thunks of private
// functions are virtual as all others are; and a few more names are understood
// (auto results, 128-bit integers, handles of C++/CLI, types local to a function
// in descriptors). Template arguments that are floating-point numbers or objects,
// as C++20 has them, are not.
//
// # Trust
//
// Names are untrusted. Length, nesting, the size of the result and the steps to
// write it have caps: back-references let a name of a hundred bytes describe
// megabytes. Whatever is not a whole name gives an *Error.
package undname
