// Package report turns a triage.Incident into what people and programs read:
// WinDbg-shaped text, and JSON whose field names, meaning and number formats
// are those of rust-minidump's minidump-stackwalk with additions beside them.
//
// It reads no bytes and no files, and it is the only place where numbers
// become text. What an incident does not know is left out; nothing is printed
// as zero because it is missing. Strings in an incident come from dumps and are
// not trusted: text output escapes whatever a terminal could act on, and JSON
// output is always valid UTF-8.
//
// Sources: the JSON schema document of rust-minidump for names and formats, and
// published WinDbg sessions for the columns of the text.
package report

import (
	"dumptriage/dump"
	"dumptriage/report/redact"
	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

// SchemaVersion names the version of the JSON that this package writes.
const SchemaVersion = "dumptriage/1"

// Tool identifies the program in its output.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Options steer a rendering.
type Options struct {
	Tool   Tool
	Frames int  // frames printed per half of a stack; 0 means all
	Unique bool // group threads whose stacks are the same
	Color  bool // text only: SGR colours
	Brief  bool // triage text only: the verdict alone
	// BatchKey, of a batch, is the key of the files' content.
	BatchKey string
	// BatchOptions, of a batch, tells the flags that change records.
	BatchOptions string
	// ExplainSignature shows what became of every frame on the way to the
	// signature.
	ExplainSignature bool
	// Verdict is what the incident was; nil when nobody judged it.
	Verdict *verdict.Verdict
	// Redact, when set, takes people and machines out of what is written, and out of
	// the facts that it is written from.
	Redact *redact.Redactor
}

// The values of Status.
const (
	StatusOK      = "OK"
	StatusPartial = "PARTIAL"
	StatusError   = "ERROR"
)

// Status returns what the JSON contract calls the status of an analysis, and
// the process exit status that says the same: OK 0, PARTIAL 3, ERROR 1.
// Warnings do not count: what they report is complete without them.
func Status(inc *triage.Incident) (string, int) {
	partial := false
	for _, e := range inc.Errors {
		if e == nil || e.Warning {
			continue
		}
		if fatal(e.Code, hasContent(inc)) {
			return StatusError, 1
		}
		partial = true
	}
	if partial {
		return StatusPartial, 3
	}
	return StatusOK, 0
}

// fatal reports whether an error means that there is no answer at all, rather
// than an answer with a part missing.
func fatal(code dump.Code, content bool) bool {
	return code == dump.Mismatch || code == dump.UnsupportedPlatform || !content
}

func hasContent(inc *triage.Incident) bool {
	return len(inc.Threads) > 0 || len(inc.Modules) > 0 || len(inc.CPUs) > 0 ||
		inc.Crash != nil || inc.BugCheck != nil || inc.System.Arch != dump.ArchUnknown
}
