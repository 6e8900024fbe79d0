// Package oracle checks the x64 and ARM64 unwinders against the processor. It executes the
// functions of a PE image from random states in an emulator, stops at every
// instruction boundary, unwinds one frame there and compares the caller it gets
// (rip, rsp, rbx, rbp, rsi, rdi, r12 to r15, xmm6 to xmm15; pc, sp, x19 to x28,
// fp) with the registers the function was entered with. What a correct unwinder must answer is thereby
// known without reading any unwind data.
//
// Calls are stepped over, as what a callee does is its own function's matter,
// after a check of the call site the way a caller's frame meets it: by the
// return address less one, or less one instruction. Conditional branches go where no run has been yet,
// whatever the flags say, so that all code is reached; that can make code
// overwrite what it saved, and such states, where the truth is nowhere left to
// be found, are counted apart and not as wrong.
//
// The emulator is the C library unicorn, through cgo and only with the build
// tag oracle; without it everything builds and New reports ErrNotBuilt. Unicorn
// ends the process on some instructions, so that Check runs it in a child
// process, which it restarts behind the function that killed it.
//
// RunX86 executes 32-bit images otherwise: with the calls, so that at every
// instruction the whole stack is known. Its unwind data is the frame records of
// debug information, which the caller provides.
//
// Images are executed but reach nothing outside the emulator.
package oracle
