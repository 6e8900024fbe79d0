// Package kdump reads Windows kernel dumps: PAGEDU64 (64-bit) and PAGEDUMP
// (32-bit) files. Triage dumps (DumpType 4, "small memory dumps") are read in
// full, both those of a bugcheck and the live ones that procdump -mk and others
// ask the kernel for. Of dumps with physical memory (complete, kernel, active,
// automatic, and a debugger's .dump /k, /ka, /f) the memory is translated by the
// page tables, and modules, processes and threads are found by the kernel's own
// lists, cross-checked with the table of ids.
//
// The parts of the latter: phys*.go say where in the file a page of physical
// memory lies, *paging.go translate, kdbg_find.go and find_*.go find things,
// view.go shows the dump as one of its processes sees it.
//
// A triage dump needs no symbols: its copy of KDDEBUGGER_DATA64 says where the
// fields of KPRCB, KTHREAD and EPROCESS lie. The few fields it does not cover
// (process and thread id, image name, times, KTHREAD.TrapFrame) come from a
// table of offsets by structure size and are always checked against what is
// read, or found by scanning.
//
// Sources: the public headers of the Debugging Tools for the parts that have a
// name there (CONTEXT, EXCEPTION_RECORD, KDDEBUGGER_DATA64, DUMP_HEADER), the
// processors' manuals for page tables, published descriptions of the bitmap and
// range headers, and measurement of real dumps against WinDbg's own output. What
// stands measured is the x64 layout of triage dumps; ARM64 goes by the same code.
// The 32-bit layout of TRIAGE_DUMP and its parts is derived from the 64-bit one,
// and no real file with physical memory was at hand.
//
// The input is not trusted. Every offset and count is a claim that is checked
// against the bytes at hand; what fails is reported by Damage and left out.
package kdump
