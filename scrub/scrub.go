// Package scrub makes of a user dump, a kernel dump or a pair small ones in which every
// thread unwinds the same and which hold nothing that was not needed for that.
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
// Of a kernel dump the bytes of the file are noted that its reader uses, field by field:
// of a thread where its stack is, and not when it began. A triage dump is written with
// the same parts, closer together, a dump of a whole system with a bitmap of the pages
// that something was used of. Texts that tell people something, such as names of
// processes, do not count as used.
//
// Sources: Microsoft's documentation of minidumpapiset.h for the layout. The dump
// that is read is not trusted: its readers bound what it can claim.
package scrub

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/kdump"
	"dumptriage/minidump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// Options steer what is kept.
type Options struct {
	// Triage says where images and symbols are; the scrubbed dump is walked with the
	// same.
	Triage triage.Options
	// KeepNames keeps the names of threads, and of processes of a kernel dump.
	KeepNames bool
	// Comment is put into the new dump, for whoever wonders what it is.
	Comment string
	// Judge, when set, gives of an incident with a kernel dump what has to come out the
	// same besides frames, such as what the verdict is known by. What it reads of the
	// kernel's memory is kept.
	Judge func(*triage.Incident) string
}

// Result is a scrubbed dump.
type Result struct {
	Bytes   []byte // the user dump, nil when there was none
	Kernel  []byte // the kernel dump
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
	Thread    uint32
	PID       uint32  // of its process where a kernel dump tells, else 0
	Processor *uint32 // the processor whose stack it was, nil for a thread's
	Level     Level
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

// scrubber is the state of one call of Dumps.
type scrubber struct {
	in     *triage.Dump // nil when there is no user dump
	kernel *kernelFile  // nil when there is no kernel dump
	how    string       // the two were brought together
	opt    Options
	inc    *triage.Incident // of the dumps as they are
	judged string
	rec    *recorder
	walks  []walked        // of inc: its threads, then what else its processors ran
	levels []Level         // by index in walks
	steps  [][]span        // by index in walks: parts of stacks that are kept as they were looked at
	places []area          // ascending
	stacks [][]area        // the same by thread
	frames map[uint64]bool // addresses of frames, and where they are looked up
	sorted []uint64        // the same, ascending
}

// Dump scrubs one dump. The error is a *dump.Error; differences that remain are in the
// result, and whether they matter is the caller's to say.
func Dump(in *triage.Dump, opt Options) (*Result, error) {
	if in.Kernel() {
		return Dumps(nil, in, "", opt)
	}
	return Dumps(in, nil, "", opt)
}

// Dumps scrubs a user dump, a kernel dump, or both of one process; either may be nil. How
// says how the two were brought together.
func Dumps(user, kernel *triage.Dump, how string, opt Options) (*Result, error) {
	for _, d := range []*triage.Dump{user, kernel} {
		if d != nil && layouts[d.System().Arch] == nil {
			return nil, &dump.Error{Code: dump.UnsupportedFormat, File: d.Path, Offset: -1, Size: -1,
				Msg: "dumps of " + d.System().Arch.String() + " cannot be scrubbed: their stacks are not walked"}
		}
	}
	s := &scrubber{in: user, how: how, opt: opt}
	s.pinPlaces(user, kernel)
	var recorded *triage.Dump
	if user != nil {
		d := *user
		d.Source, s.rec = watched(user.Source)
		recorded = &d
	}
	watchedKernel := kernel
	var err error
	if kernel != nil {
		if s.kernel, watchedKernel, err = watchKernel(kernel, opt.KeepNames); err != nil {
			return nil, err
		}
	}
	if s.inc, err = triage.Analyze(recorded, watchedKernel, how, s.opt.Triage); err != nil {
		return nil, err
	}
	defer s.inc.Close()
	s.pinProcesses()
	s.judge(watchedKernel)
	s.walks = walksOf(s.inc)
	s.levels, s.steps = make([]Level, len(s.walks)), make([][]span, len(s.walks))
	s.findAreas()
	if s.rec != nil {
		s.keepThreadBlocks()
		s.rec.freeze() // what is asked from now on nobody needs for a stack
	}
	if s.kernel != nil {
		s.kernel.freeze()
	}
	return s.settle()
}

// judge notes what has to come out the same besides frames. What that reads of user
// memory, such as texts of exceptions, does not count.
func (s *scrubber) judge(kernel *triage.Dump) {
	if s.kernel == nil {
		return
	}
	s.kernel.src, _ = kernel.Source.(*kdump.File) // opened anew, perhaps, with the kernel's symbols
	if s.opt.Judge == nil {
		return
	}
	if s.rec != nil {
		s.rec.paused = true
		defer func() { s.rec.paused = false }()
	}
	s.kernel.systemMem = true
	s.judged = s.opt.Judge(s.inc)
}

// pinPlaces makes the folders of the dumps some that are looked into for the new ones
// too, wherever those lie.
func (s *scrubber) pinPlaces(user, kernel *triage.Dump) {
	t := &s.opt.Triage
	var beside symbols.Path
	if !t.NotBeside {
		beside = triage.Beside(user, kernel)
	}
	t.Symbols = slices.Concat(beside, symbols.DirPath(t.Images...), t.Symbols)
	t.Images, t.NotBeside = nil, true
}

// pinProcesses makes a choice of processes by name hold for the new dump, which has no
// names.
func (s *scrubber) pinProcesses() {
	t := &s.opt.Triage
	if t.Process == "" {
		return
	}
	for i := range s.inc.Threads {
		if k := s.inc.Threads[i].KernelInfo; k != nil && !slices.Contains(t.EPROCESS, k.EPROCESS) {
			t.EPROCESS = append(t.EPROCESS, k.EPROCESS)
		}
	}
}

// settle writes dumps that keep more and more until the threads come out the same.
func (s *scrubber) settle() (*Result, error) {
	for {
		res := &Result{Threads: len(s.inc.Threads)}
		if err := s.make(res); err != nil {
			return nil, err
		}
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

// make makes the files.
func (s *scrubber) make(res *Result) error {
	if s.in != nil {
		blocks, err := s.memory()
		if err != nil {
			return err
		}
		for _, b := range blocks {
			res.Memory += int64(len(b.data))
		}
		res.Bytes = s.write(blocks)
	}
	if s.kernel == nil {
		return nil
	}
	if err := s.reduceStacks(); err != nil {
		return err
	}
	var err error
	res.Kernel, err = s.kernel.write(s.opt.Comment)
	res.Memory += s.kernel.keptMemory()
	return err
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
		case s.rec != nil && s.addRecords(m.thread):
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
			res.Loosened = append(res.Loosened, Loosened{s.walks[i].id, s.walks[i].pid, s.walks[i].cpu, l})
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
	w.threads(threads, s.contextOf)
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

// verify walks the new dumps, adds to the result what is different and returns where
// the threads begin to be.
func (s *scrubber) verify(res *Result) ([]mismatch, error) {
	var user, kernel *triage.Dump
	var err error
	if s.in != nil {
		if user, err = reopen(res.Bytes, s.in.Path); err != nil {
			return nil, err
		}
		defer user.Close()
	}
	if s.kernel != nil {
		if kernel, err = reopen(res.Kernel, s.kernel.in.Path); err != nil {
			return nil, err
		}
		defer kernel.Close()
	}
	inc, err := triage.Analyze(user, kernel, s.how, s.opt.Triage)
	if err != nil {
		return nil, err
	}
	defer inc.Close()
	differs := s.compare(inc, res)
	if s.judged != "" {
		if now := s.opt.Judge(inc); now != s.judged {
			res.Differences = append(res.Differences, Difference{Frame: -1, What: fmt.Sprintf("the verdict was %q and is %q", s.judged, now)})
			if i := s.inc.Crashing; i >= 0 { // what it is about is on that thread's stack
				differs = append(differs, mismatch{thread: i, half: s.inc.Threads[i].Kernel, frame: -1})
			}
		}
	}
	return differs, nil
}

func reopen(b []byte, name string) (*triage.Dump, error) {
	f, err := input.New(bytes.NewReader(b), int64(len(b)), name, input.Options{})
	if err != nil {
		return nil, err
	}
	d, err := triage.OpenInput(f)
	if err != nil {
		f.Close()
	}
	return d, err
}
