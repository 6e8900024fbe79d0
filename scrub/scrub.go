// Package scrub makes of a user dump a small one in which every thread unwinds the
// same and which holds nothing that was not needed for that.
//
// It records which bytes of memory an analysis uses and writes those alone, with
// the registers, the modules by their base names, the exception and what is known
// of protections. Of a stack even less is written: of the words that were looked
// at, those that are return addresses of its frames or point into the stack. The
// others are 1, or 0 if they were. Command lines, environment, handles, comments, annotations,
// vector registers and folders are left out.
//
// The new dump is analysed like the old one, and their frames are compared. Threads
// that do not come out the same get more of what was looked at, in steps, which
// the Result tells.
//
// Sources: Microsoft's documentation of minidumpapiset.h for the layout. The dump
// that is read is not trusted: its readers bound what it can claim.
package scrub

import (
	"bytes"
	"cmp"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/minidump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// Options steer what is kept.
type Options struct {
	// Triage says where images and symbols are; the scrubbed dump is walked with the
	// same.
	Triage triage.Options
	// KeepNames keeps the names of threads.
	KeepNames bool
	// Comment is put into the new dump, for whoever wonders what it is.
	Comment string
}

// Result is a scrubbed dump.
type Result struct {
	Bytes   []byte // the dump
	Threads int
	Frames  int   // of all halves of all threads
	Memory  int64 // bytes of memory in it
	// Loosened are threads that needed more of their stacks than return addresses and
	// pointers into the stack, ascending.
	Loosened []Loosened
	// Differences are what does not come out as it was, whatever is kept.
	Differences []Difference
}

// Loosened is a thread that did not unwind the same by the least.
type Loosened struct {
	Thread uint32
	Level  Level
}

// Level says which words of a stack are kept, of those that were looked at.
type Level uint8

// The levels, each with what the ones before it keep.
const (
	Pointers Level = iota // return addresses of frames, pointers into stacks
	Code                  // pointers to code
	Steps                 // what was looked at to find those frames that do not come out without it, saved registers
	All                   // every word that was looked at
)

var levelNames = [...]string{"return addresses and pointers into the stack", "pointers to code too", "what was looked at to find some of its frames", "every word that was looked at"}

func (l Level) String() string { return levelNames[min(int(l), len(levelNames)-1)] }

// scrubber is the state of one call of Dump.
type scrubber struct {
	in     *triage.Dump
	opt    Options
	inc    *triage.Incident // of the dump as it is
	rec    *recorder
	levels []Level         // by index in inc.Threads
	steps  [][]span        // by index in inc.Threads: parts of stacks that are kept as they were looked at
	places []area          // ascending
	stacks [][]area        // the same by thread
	frames map[uint64]bool // addresses of frames, and where they are looked up
	sorted []uint64        // the same, ascending
}

// Dump scrubs a user dump. The error is a *dump.Error; differences that remain are
// in the result, and whether they matter is the caller's to say.
func Dump(in *triage.Dump, opt Options) (*Result, error) {
	if in.Kernel() {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: in.Path, Offset: -1, Size: -1,
			Msg: "a kernel dump cannot be scrubbed: its pages are shared by all processes, and what of them a stack needs is not separated from the rest; scrub the user dump of the process"}
	}
	if layouts[in.System().Arch] == nil {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: in.Path, Offset: -1, Size: -1,
			Msg: "dumps of " + in.System().Arch.String() + " cannot be scrubbed: their stacks are not walked"}
	}
	s := &scrubber{in: in, opt: opt}
	s.pinPlaces()
	recorded := *in
	recorded.Source, s.rec = watched(in.Source)
	var err error
	if s.inc, err = triage.Analyze(&recorded, nil, "", s.opt.Triage); err != nil {
		return nil, err
	}
	defer s.inc.Close()
	s.levels, s.steps = make([]Level, len(s.inc.Threads)), make([][]span, len(s.inc.Threads))
	s.keepThreadBlocks()
	s.findAreas()
	s.rec.freeze() // what is asked from now on nobody needs for a stack
	return s.settle()
}

// pinPlaces makes the folder of the dump one that is looked into for the new one too,
// wherever that lies.
func (s *scrubber) pinPlaces() {
	t := &s.opt.Triage
	var beside symbols.Path
	if !t.NotBeside {
		beside = triage.Beside(s.in)
	}
	t.Symbols = slices.Concat(beside, symbols.DirPath(t.Images...), t.Symbols)
	t.Images, t.NotBeside = nil, true
}

// settle writes dumps that keep more and more until the threads come out the same.
func (s *scrubber) settle() (*Result, error) {
	for {
		res := &Result{Threads: len(s.inc.Threads)}
		blocks, err := s.memory()
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			res.Memory += int64(len(b.data))
		}
		res.Bytes = s.write(blocks)
		differs, err := s.verify(res)
		if err != nil {
			return nil, err
		}
		if !s.loosen(differs) {
			s.tellLoosened(res)
			return res, nil
		}
	}
}

// maxOwnRecords bounds the records of one thread: a hostile dump has stacks that all
// lie on each other, and a record belongs to each.
const maxOwnRecords = 64

// maxSteps bounds the frames of a thread for which what was looked at is kept, and with
// it how often the new dump is walked.
const maxSteps = 24

// loosen lets threads that differ keep more; false when there is nothing to do.
func (s *scrubber) loosen(differs []mismatch) bool {
	more := false
	for _, m := range differs {
		level := &s.levels[m.thread]
		step, ok := m.step()
		switch {
		case *level == All:
			continue
		case *level == Pointers:
			*level = Code
		case ok && len(s.steps[m.thread]) < maxSteps && !slices.Contains(s.steps[m.thread], step):
			*level = Steps
			s.steps[m.thread] = append(s.steps[m.thread], step)
		case s.addRecords(m.thread):
			*level = Steps
		default:
			*level = All
		}
		more = true
	}
	return more
}

// addRecords keeps what was read at once from a thread's stacks, such as the 32-bit
// registers that WoW64 saves there; false when that was done or there is nothing.
func (s *scrubber) addRecords(thread int) bool {
	before := len(s.steps[thread])
	for _, a := range s.stacks[thread] {
		from, _ := slices.BinarySearchFunc(s.rec.records, a.lo, func(p span, lo uint64) int { return cmp.Compare(p.lo, lo) })
		for _, p := range s.rec.records[from:] {
			if p.lo >= a.hi || len(s.steps[thread]) >= maxSteps+maxOwnRecords {
				break
			}
			if p.hi <= a.hi && !slices.Contains(s.steps[thread], p) {
				s.steps[thread] = append(s.steps[thread], p)
			}
		}
	}
	return len(s.steps[thread]) > before
}

func (s *scrubber) tellLoosened(res *Result) {
	for i, l := range s.levels {
		if l > Pointers {
			res.Loosened = append(res.Loosened, Loosened{s.inc.Threads[i].ID, l})
		}
	}
}

// loose reports whether some thread needed more than the least.
func (s *scrubber) loose() bool { return slices.Max(append(s.levels, Pointers)) > Pointers }

// write makes the file.
func (s *scrubber) write(blocks []block) []byte {
	w := newWriter()
	w.system(s.in.System())
	w.process(s.in.Process())
	threads := s.in.Threads()
	w.threads(threads)
	w.threadInfo(threads)
	if s.opt.KeepNames {
		w.names(threads)
	}
	w.modules(s.in.Modules())
	w.unloaded(s.in.UnloadedModules())
	w.exception(s.in.Exception())
	w.regions(s.regions())
	w.functionTables(s.tables())
	if s.opt.Comment != "" {
		w.stream(minidump.StreamCommentA, append([]byte(s.opt.Comment), 0))
	}
	w.memory(blocks)
	return w.finish(s.in.Captured())
}

// verify walks the new dump, adds to the result what is different and returns where
// the threads begin to be.
func (s *scrubber) verify(res *Result) ([]mismatch, error) {
	f, err := input.New(bytes.NewReader(res.Bytes), int64(len(res.Bytes)), s.in.Path, input.Options{})
	if err != nil {
		return nil, err
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", s.opt.Triage)
	if err != nil {
		return nil, err
	}
	defer inc.Close()
	return s.compare(inc, res), nil
}
