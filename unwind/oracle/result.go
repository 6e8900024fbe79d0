package oracle

import "errors"

// ErrNotBuilt says that the emulator is not part of this build.
var ErrNotBuilt = errors.New("built without the emulator: use -tags oracle (needs cgo and libunicorn-dev)")

// Function is what one function's runs found.
type Function struct {
	Begin      uint32 // RVA
	Runs       int    // entries into it
	Returned   int    // of which reached its return with all preserved registers intact
	Boundaries int    // distinct instruction boundaries of the function
	Checks     Counts // boundaries unwound from, as often as they were reached
	Prologs    int    // checks inside a prolog
	Epilogs    int    // checks that the unwinder took for an epilog
	Leaves     int    // checks by the leaf rule, after a jump out of the function
	Calls      Counts // call sites
	// Undescribed is set when the unwind data names a handler and no operation.
	// Assembler code that does more than a leaf function may is described so: it
	// leaves it to the handler to undo its prolog, which no unwinder can but by
	// running that.
	Undescribed bool
	Wrong       []uint32 // distinct RVAs with a wrong answer, at boundaries and call sites
	Failures    []Failure
}

// Counts counts checks.
type Counts struct {
	Tried int
	Wrong int // an answer that differs from the truth
	// Marked are those of the wrong whose frame said that it was a guess, or
	// that had no frame.
	Marked int
	// Right are those of the marked that led to the true caller.
	Right int
	// Lost are states in which the code had destroyed what it saved. They are
	// neither right nor wrong, and are not among Tried.
	Lost int
}

func (c *Counts) add(o Counts) {
	c.Tried += o.Tried
	c.Wrong += o.Wrong
	c.Marked += o.Marked
	c.Right += o.Right
	c.Lost += o.Lost
}

func (c *Counts) count(v verdict) {
	if v.wrong != "" && v.lost {
		c.Lost++
		return
	}
	c.Tried++
	if v.wrong != "" {
		c.Wrong++
		if v.marked {
			c.Marked++
		}
		if v.right {
			c.Right++
		}
	}
}

// Failure is one wrong answer.
type Failure struct {
	RVA    uint32
	Call   bool   // at a call site
	Wrong  string // what differs from the truth
	Method string // by which rule
	Detail string // the frame's own remark
	Code   string // bytes at the boundary
	Text   string // the instruction, where it can be decoded
}

// Limits bound the effort for one function.
type Limits struct {
	Runs  int // entries at most; fewer when they reach nothing new
	Steps int // instructions of one run
}

// DefaultLimits reach nearly all code of nearly all functions.
var DefaultLimits = Limits{Runs: 12, Steps: 3000}
