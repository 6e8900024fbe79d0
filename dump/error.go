package dump

import (
	"fmt"
	"strings"
)

// Code classifies an Error. Its text is part of the JSON contract.
type Code string

// The error codes of the JSON contract.
const (
	Truncated           Code = "truncated"            // ends beyond the end of the file
	OutOfRange          Code = "out_of_range"         // an offset or address lies outside what it indexes
	BadCount            Code = "bad_count"            // a count that the bytes at hand cannot hold
	BadRecord           Code = "bad_record"           // a record whose fields contradict each other or its format
	UnsupportedFormat   Code = "unsupported_format"   // not a dump, or a kind not read yet
	UnsupportedPlatform Code = "unsupported_platform" // a dump of another operating system
	Cycle               Code = "cycle"                // a list or chain that returns to itself
	Limit               Code = "limit"                // a cap of ours was reached
	Mismatch            Code = "mismatch"             // two inputs that do not belong together
	IO                  Code = "io"                   // the operating system could not read
	Internal            Code = "internal"             // a fault of this program
)

// Error is the one error type of the readers. It says which file, which
// stream or section, where and how much, so that a user can look there with a
// hex editor. Offset and Size are -1 when they have no meaning.
type Error struct {
	Code    Code
	Warning bool   // the answer is complete without it
	File    string // path as the user gave it
	Stream  string // "ThreadList", "TRIAGE_DUMP64", ".pdata" ...
	Offset  int64  // file offset in bytes, or -1
	Size    int64  // number of bytes concerned, or -1
	Msg     string // what is wrong, in plain words
	Err     error  // cause, if any
}

// Error formats the error on one line: file, stream, place, message.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		b.WriteString(": ")
	}
	b.WriteString(e.Detail())
	return b.String()
}

// Detail is Error without the file name.
func (e *Error) Detail() string {
	var b strings.Builder
	if e.Stream != "" {
		b.WriteString(e.Stream)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " (at offset %#x", e.Offset)
		if e.Size >= 0 {
			fmt.Fprintf(&b, ", %d bytes", e.Size)
		}
		b.WriteString(")")
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err if it is an *Error, else one of the code IO that says the same.
func AsError(err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Code: IO, Offset: -1, Size: -1, Msg: err.Error()}
}

// Errorf makes an Error without a place.
func Errorf(code Code, stream, format string, args ...any) *Error {
	return &Error{Code: code, Stream: stream, Offset: -1, Size: -1, Msg: fmt.Sprintf(format, args...)}
}
