// Package server gets files from HTTP symbol servers: SymSrv's, such as
// Microsoft's, and those that hold Breakpad's files. It is the only package of the
// project that uses a network, and only for addresses that a caller names.
//
// What a server sends is not trusted: sizes, times, redirects and retries are
// limited here, and what was received is proved by package symbols before it is
// used or kept.
//
// Sources: Microsoft, "Using SymSrv" and "Symbol Store Folder Tree" (the keys and
// file.ptr); RFC 9110 (HTTP).
package server
