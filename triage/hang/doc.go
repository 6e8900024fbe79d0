// Package hang says what the threads of a process wait for, who holds what they
// want, and from that whether and why the process hangs.
//
// Classes of waits come from rules about functions (waits.rules). What a thread
// waits for comes from the arguments of the function it waits in: recovered from
// the code that called it, the registers that unwinding restored and the stack;
// from RTL_CRITICAL_SECTION (winnt.h) in memory; and from the dump's handles. The
// volatile registers of a thread in a system call hold nothing that can be used.
// The way of passing arguments is Microsoft's public x64 and x86 conventions.
//
// Nothing in the process is trusted: an owner counts only when the lock's fields
// agree with each other, every walk is capped, and graphs may hold cycles of any
// kind. An owner that was inferred from code rather than read says so. What is
// not known stays unknown.
package hang
