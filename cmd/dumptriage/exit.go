package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"dumptriage/report"
)

// The exit statuses, the same as the JSON object's status says.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitStatuses is what help says of them.
var exitStatuses = []struct {
	status  int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed: not a dump, another platform's, two different processes, no such process"},
	{exitUsage, "wrong usage; nothing on standard output"},
	{exitPartial, "done in part: something in the dump is damaged or not read yet, it has no such thread or frame, or some files to fetch or dumps of a batch failed; the output says what"},
	{exitInterrupted, "interrupted"},
	{exitTerminated, "told to end (SIGTERM)"},
}

// usageError is a wrong command line.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// statusError carries an exit status whose reason has been told already.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// internalError is a panic of this program.
type internalError struct{ msg, stack string }

func (e internalError) Error() string { return "internal error: " + e.msg }

// exitStatus is the one place that maps errors to exit statuses. The verb, where
// it is known, is whose help to read.
func exitStatus(err error, verb string, stderr io.Writer) int {
	var usage usageError
	var status statusError
	var internal internalError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		tell(stderr, "dumptriage: %s\nsee: %s", usage.msg, strings.TrimSpace("dumptriage help "+verb))
		return exitUsage
	case errors.As(err, &internal):
		tell(stderr, "dumptriage: %s\nThis is a fault of dumptriage, not of the dump. Please report it with the lines below.", internal.Error())
		fmt.Fprintln(stderr, internal.stack)
		return exitFailed
	}
	tell(stderr, "dumptriage: %s", err)
	return exitFailed
}

// tell prints lines for people on standard error. Names of files and what databases say
// stand in them, which a terminal must not act on. They are redacted first: a name that
// is escaped is not recognised.
func tell(stderr io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w, ok := stderr.(redactedWriter); ok {
		stderr, text = w.w, w.r.Message(text)
	}
	fmt.Fprintln(stderr, report.Message(text))
}
