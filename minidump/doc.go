// Package minidump reads Windows user-mode dumps: minidumps (magic "MDMP", as
// MiniDumpWriteDump, WER, ProcDump, Breakpad and Crashpad write them) and the
// older full user dumps (magic "USERDUMP" and "USERDU64").
//
// Sources: Microsoft's public documentation of minidumpapiset.h for the header,
// the directory and every stream below LastReservedStream; the public formats
// of Breakpad and Crashpad for theirs; measurements of real dumps where those
// are silent, marked as such at the place.
//
// Nothing in a file is trusted. Offsets and sizes are checked against the file,
// counts against the bytes that follow them, and no allocation follows from a
// count alone; strings and records that a hostile file lets overlap are limited
// to the file's own size in sum. What cannot be read becomes an entry of
// Damage, and everything else is still answered.
//
// Streams are decoded on first use and once; opening costs the header, the
// directory and the 56 bytes that name the platform. A File may be used from
// several goroutines at the same time.
package minidump
