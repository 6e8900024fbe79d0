// Package signature names an incident so that the same fault gets the same name
// in every dump: on another machine, with the modules loaded elsewhere, deeper
// in a recursion, written by another tool.
//
// A signature is made of canonical frames, which say module and function and
// never an address or an offset within a function (see canonical.go). Frames
// that were found by scanning the stack are guesses and take no part; neither do
// those of the dump's writer. Rules (signature.rules, and the user's before
// them) decide which of the others are worth a place in the text.
//
// The algorithm has a version, "bkt1". What it answers for a stack never
// changes; a better algorithm will have another name. signature.rules is part of
// it.
//
// The package reads a triage.Incident and no bytes of a dump, but for the code
// that Body is given, of which it believes nothing.
package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/triage"
)

// Algorithm is the version of what Of computes.
const Algorithm = "bkt1"

// Kind says what a signature was made from.
type Kind string

// The kinds.
const (
	KindCrash    Kind = "crash"    // the thread of a user dump's exception
	KindBugCheck Kind = "bugcheck" // the thread of a kernel dump's bugcheck
	KindLiveDump Kind = "live"     // the thread in which a part of the kernel took a live dump
	KindHang     Kind = "hang"     // a chain of waiting threads
	KindSnapshot Kind = "snapshot" // nothing happened that the dump knows of: its first thread
)

// Depths are the numbers of application frames that DepthIDs stand for, in their
// order; 0 is all of them.
var Depths = [...]int{1, 2, 3, 5, 0}

// Signature is what an incident is called. Ids are lower-case hexadecimal.
type Signature struct {
	Kind  Kind
	Class string // what went wrong: "AV_READ_NULL", "BUGCHECK_0xD1", "HANG_DEADLOCK"
	// Text is the class and the frames that matter, joined by " | "; at most
	// MaxText bytes.
	Text string
	ID   string // of Text, 64 bits: the bucket
	// ExactID is of the kind, the class and Stack, 128 bits, with functions of the
	// system called as they would be without debug information.
	ExactID string
	// DepthIDs are of the first frames of the application, 64 bits each, as
	// many as Depths says: the same place in the code whatever the class.
	DepthIDs []string
	Frames   []string // canonical frames in Text, uncut
	Stack    []string // all canonical frames, innermost first, recursion collapsed
	Steps    []Step   // what became of every frame that was looked at
	// RTLSum and CRC32 are hashes of the frames' addresses, for comparison with
	// tools that group by them: see AddressHashes.
	RTLSum, CRC32 uint32
	Thread        int // index in Incident.Threads of the (first) thread, -1 none
}

// Options steer Of.
type Options struct {
	Rules *Rules // nil for the built-in ones
	// Class, when set, is what a crash was, where that is better known than by the
	// exception's code alone.
	Class string
	Hang  *Hang // when the incident is known to hang
	// NoFault says that the exception stands for no fault: a debugger broke in, or
	// the program asked for a dump of itself. Then a hang counts.
	NoFault bool
	// Blame is the canonical frame (module!function, or a module) of the driver that a
	// bugcheck is blamed on for what is not on the thread's stack: a power IRP, another
	// processor's stack, the watchdog's profile. "" when the stack itself says it.
	Blame string
	// Thread, when set, is the index of the thread that a snapshot is about;
	// otherwise that of the exception, or the first.
	Thread *int
}

// Hang is a chain of waiting threads, the waiter before whom it waits for.
type Hang struct {
	Class   string // such as "deadlock"
	Threads []int  // indices in Incident.Threads
	Cycle   bool   // the last waits for the first
}

// Of makes an incident's signature; nil when it has nothing to make one from. An
// exception or a bugcheck comes before a hang.
func Of(inc *triage.Incident, opt Options) *Signature {
	r := opt.Rules
	if r == nil {
		r = Builtin()
	}
	kind, class := classOf(inc)
	if opt.Class != "" && kind == KindCrash {
		class = opt.Class
	}
	if kind == KindCrash && opt.NoFault {
		kind, class = KindSnapshot, classSnapshot
	}
	if kind == KindSnapshot && opt.Hang != nil && len(opt.Hang.Threads) > 0 {
		return ofHang(inc, opt.Hang, r)
	}
	t := threadOf(inc, kind)
	if kind == KindSnapshot && opt.Thread != nil && *opt.Thread >= 0 && *opt.Thread < len(inc.Threads) {
		t = *opt.Thread
	}
	if t < 0 && kind == KindSnapshot {
		return nil
	}
	s := &Signature{Kind: kind, Class: class, Thread: t}
	kernel := kind == KindBugCheck || kind == KindLiveDump
	var st *stack
	if t >= 0 {
		st = newStack(inc, t, kernel, r)
	} else {
		st = &stack{}
	}
	st.classify(r, class == classStackOverflow, kind == KindSnapshot)
	s.Frames, s.Stack, s.Steps = st.parts(), st.exact(), st.steps
	s.RTLSum, s.CRC32 = AddressHashes(st.addresses)
	app := st.application(r)
	if kernel {
		s.Frames = withBlame(s.Frames, inc.BugCheck, opt.Blame)
	} else {
		s.Frames = withProcess(s.Frames, st, processName(inc))
	}
	s.finish(app, st.invariant(), emptyName(inc))
	return s
}

// withProcess names the process behind frames none of which is a program's: two
// programs that die in the same place of the system do not share a bucket.
func withProcess(frames []string, st *stack, process string) []string {
	if len(frames) == 0 || process == "" || st.ring != nil {
		return frames
	}
	for _, i := range st.text {
		if st.steps[i].Fate == FateKept {
			return frames
		}
	}
	return append(slices.Clip(frames), "in "+process)
}

// threadOf chooses the thread that a signature is made from, -1 when there is
// none with frames.
func threadOf(inc *triage.Incident, kind Kind) int {
	if t := inc.Crashing; t >= 0 && t < len(inc.Threads) {
		return t
	}
	if kind == KindCrash {
		return -1 // its thread is not in the dump: another one's stack says nothing
	}
	for i := range inc.Threads {
		if t := &inc.Threads[i]; hasFrames(t.User) || hasFrames(t.Kernel) {
			return i
		}
	}
	return -1
}

func hasFrames(h *triage.Half) bool { return h != nil && len(h.Frames) > 0 }

// finish makes the text and the ids. app are the application's frames, invariant is
// the stack as exact ids have it; empty stands for the frames when there are none.
func (s *Signature) finish(app, invariant []string, empty string) {
	if len(s.Frames) == 0 {
		s.Frames = []string{empty}
	}
	s.Text = join(s.Class, s.Frames)
	s.ID = hashText(8, s.Text)
	s.ExactID = hashText(16, append([]string{string(s.Kind), s.Class}, invariant...)...)
	if len(app) == 0 {
		app = s.Frames
	}
	for _, n := range Depths {
		if n == 0 || n > len(app) {
			n = len(app)
		}
		s.DepthIDs = append(s.DepthIDs, hashText(8, app[:n]...))
	}
}

// emptyName stands for the frames of a stack that has none to offer.
func emptyName(inc *triage.Incident) string {
	if name := processName(inc); name != "" {
		return noFrames + " in " + name
	}
	return noFrames
}

// processName is the process's image, in lower case, "" when it is not known. A
// kernel dump holds only the begin of a long name, which is good enough.
func processName(inc *triage.Incident) string {
	name := inc.Process.Name
	if name == "" {
		for _, m := range inc.Modules {
			if m != nil && m.Module != nil && !m.Kernel && strings.HasSuffix(strings.ToLower(m.Path), ".exe") {
				name = m.Path
				break
			}
		}
	}
	return strings.ToLower(dump.BaseName(name))
}

// MaxText is the most bytes that a text has.
const MaxText = 255

const (
	separator = " | "
	cutMark   = "..."
)

// join writes a text of at most MaxText bytes. Of more it leaves out parts in the middle: the
// first say how the fault showed, the last is the frame of the program.
func join(class string, parts []string) string {
	whole := strings.Join(append([]string{class}, parts...), separator)
	if len(whole) <= MaxText || len(parts) == 0 {
		return whole
	}
	end := separator + cutMark + separator + parts[len(parts)-1]
	if len(parts) == 1 || len(class)+len(end) > MaxText {
		return fill(class, parts, MaxText)
	}
	return fill(class, parts, MaxText-len(end)) + end
}

// fill writes whole parts as far as they fit in n bytes. Where not even the first does, it
// writes the begin of that one, unless something is to follow.
func fill(class string, parts []string, n int) string {
	text := class
	for i, p := range parts {
		if len(text)+len(separator)+len(p) <= n {
			text += separator + p
			continue
		}
		if i == 0 && n == MaxText {
			text = cut(text+separator+p, n)
		}
		break
	}
	return text
}

// cut shortens a text to n bytes, at a character's start.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(cutMark)], "") + cutMark
}

// hashText is the first n bytes of SHA-256 over parts, with a zero byte between
// two; of one part it is the plain SHA-256 of its text.
func hashText(n int, parts ...string) string {
	h := sha256.New()
	for i, p := range parts {
		if i > 0 {
			h.Write([]byte{0})
		}
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:n])
}
