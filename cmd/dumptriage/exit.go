package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit statuses, the same as the JSON object's status says.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitInterrupted = 130
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
		fmt.Fprintf(stderr, "dumptriage: %s\nsee: %s\n", usage.msg, strings.TrimSpace("dumptriage help "+verb))
		return exitUsage
	case errors.As(err, &internal):
		fmt.Fprintf(stderr, "dumptriage: %s\nThis is a fault of dumptriage, not of the dump. Please report it with the lines below.\n%s\n", internal.Error(), internal.stack)
		return exitFailed
	}
	fmt.Fprintf(stderr, "dumptriage: %s\n", err)
	return exitFailed
}
