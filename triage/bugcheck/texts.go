package bugcheck

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// maxText bounds texts that parameters point to.
const maxText = 256

// Texts are shown to people, and few of them lead on to somebody to blame: only those
// count as used where somebody watches the memory, and nothing behind them does.

// leads reports whether a text names what a verdict may rest on: a process or a driver.
func (j *judge) leads(text string) bool {
	return strings.HasSuffix(strings.ToLower(text), ".exe") || j.moduleNamed(text) != nil
}

// never is for texts that no verdict rests on.
func never(string) bool { return false }

// always is for names of drivers, of which verdicts tell.
func always(string) bool { return true }

// ahead is read for bytes of which used will tell the used ones.
func (j *judge) ahead(va uint64, n int) []byte {
	w := j.watcher()
	if w == nil {
		return j.read(va, n)
	}
	b := make([]byte, n)
	got, _ := w.ReadAhead(b, va)
	return b[:max(0, min(got, n))]
}

func (j *judge) used(va uint64, n int) {
	if w := j.watcher(); w != nil && n > 0 {
		w.Used(va, n)
	}
}

// present tells that bytes have to be there, whatever they are.
func (j *judge) present(va uint64, n int) {
	if w, ok := j.watcher().(dump.PresenceWatcher); ok && n > 0 {
		w.Present(va, n)
	}
}

func (j *judge) watcher() dump.Watcher {
	if j.view == nil || j.view.Memory == nil {
		return nil
	}
	return dump.WatcherOf(j.view.Memory)
}

// text reads a string of bytes.
func (j *judge) text(va uint64) (s string, missing bool) {
	b := j.ahead(va, maxText)
	if len(b) == 0 {
		return "", true
	}
	raw := cursor.CString(b)
	if s = readable(raw); j.leads(s) {
		j.used(va, min(len(raw)+1, len(b)))
	}
	return s, false
}

// unicodeAt reads a UNICODE_STRING that a verdict may rest on.
func (j *judge) unicodeAt(va uint64) string {
	s, _ := j.unicodeShown(va, always)
	return s
}

// unicodeShown reads a UNICODE_STRING: its length in bytes, its capacity, its address. It
// counts as used when it matters.
func (j *judge) unicodeShown(va uint64, matters func(string) bool) (s string, missing bool) {
	ptr := j.inc.System.Arch.PointerSize()
	c := cursor.New(j.ahead(va, 2*ptr), "UNICODE_STRING", -1)
	length := min(int(c.U16()), 2*maxText) &^ 1
	c.Seek(ptr)
	at := c.Pointer(ptr)
	if c.Err() != nil {
		return "", true
	}
	b := j.ahead(at, length)
	if len(b) == 0 {
		return "", true
	}
	if s = readable(cursor.UTF16(b)); matters(s) {
		j.used(va, 2*ptr)
		j.used(at, len(b))
	}
	return s, false
}
