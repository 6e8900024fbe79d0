package triage

import (
	"fmt"
	"slices"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// DefaultFrames is how many frames of a half are walked at most where Options do
// not say.
const DefaultFrames = unwind.DefaultMaxFrames

// Options steer an analysis. The zero value is usable.
type Options struct {
	Images []string // directories to look for images in, in order
	// NotBeside keeps the folders that the dumps lie in from being looked into first.
	NotBeside bool
	// Symbols says where images and symbols are looked for behind Images.
	Symbols symbols.Path
	// Store says how: what reaches servers, and whether symbols of another build
	// will do.
	Store symbols.StoreOptions
	// Cache, when set, keeps images and symbols open from one analysis to the next.
	Cache  *Cache
	Frames int     // cap per half, 0 for the default
	Thread *uint32 // walk only the thread with this id
	// Process names the processes of a full kernel dump whose threads are walked: a
	// name, an id or the address of an EPROCESS; "" is the process whose thread
	// stopped the system. AllProcesses walks every thread.
	Process      string
	AllProcesses bool
	// EPROCESS, when set, says which processes by their addresses alone, whatever Process
	// says: for a copy of a dump that has no names.
	EPROCESS []uint64
	// Callbacks walks the kernel stacks too that a thread left to be called back
	// into user mode.
	Callbacks bool
	// Running walks only the threads that ran on a processor of a kernel dump, of
	// whatever process.
	Running   bool
	HashLimit int64 // inputs up to this size are hashed, 0 for DefaultHashLimit
	// Explain, with Thread, asks how one frame was found.
	Explain *ExplainFrame
	// Progress, when set, is told how many of the threads are walked.
	Progress func(done, total int)
}

// path is where images and symbols are looked for.
func (o *Options) path(dumps ...*Dump) symbols.Path {
	var p symbols.Path
	if !o.NotBeside {
		p = Beside(dumps...)
	}
	return slices.Concat(p, symbols.DirPath(o.Images...), o.Symbols)
}

// Beside is the path of the folders that dumps lie in: those of Open, since the name
// of other input may be any. Nil dumps lie in none.
func Beside(dumps ...*Dump) symbols.Path {
	var files []string
	for _, d := range dumps {
		if d != nil && d.onDisk {
			files = append(files, d.Path)
		}
	}
	return symbols.BesidePath(files...)
}

// analysis is the state of one Analyze call.
type analysis struct {
	opt          Options
	inc          *Incident
	user, kernel *Dump
	store        *symbols.Store
	uw, kw       *walker
	budget       *frameBudget
	numberHint   string // what a thread id that no thread has may have meant

	// Of a full kernel dump.
	trap      *foundTrap         // of the fault, nil when a walk came through it or none was found
	chosen    []*dump.Process    // whose threads are walked, nil for all
	views     map[uint64]*walker // of the user halves, by EPROCESS
	viewOrder []*walker
}

// Analyze makes an incident of a user dump, a kernel dump, or both; either may
// be nil. How says how the two were brought together. The incident keeps
// references into the dumps and open files of its own: close first it, then
// them, when done with it. An error means that there is no answer at all: no
// dump, or two of different processes; what was merely damaged is in
// Incident.Errors.
func Analyze(user, kernel *Dump, how string, opt Options) (*Incident, error) {
	if user == nil && kernel == nil {
		return nil, dump.Errorf(dump.UnsupportedFormat, "", "no dump was given")
	}
	if opt.HashLimit == 0 {
		opt.HashLimit = DefaultHashLimit
	}
	a := &analysis{opt: opt, inc: &Incident{Crashing: -1}, user: user, kernel: kernel}
	path := opt.path(user, kernel)
	if opt.Cache != nil {
		a.store = opt.Cache.store(path, opt.Store)
	} else {
		a.store = symbols.NewPathStore(path, opt.Store)
		a.inc.store = a.store // the incident's to close
	}
	if kernel != nil {
		kernel.useKernelSymbols(a.store)
	}
	if user != nil && kernel != nil {
		p, err := pair(user, kernel, how)
		if err != nil {
			return nil, err
		}
		a.inc.Pairing = p
	}
	a.describe()
	a.chooseProcess()
	a.prepareThreads()
	a.selectThread()
	a.sayNoThreads()
	a.nameProcesses()
	a.walkThreads()
	a.walkCPUs()
	a.managedFacts()
	a.explainCrash()
	a.explainBugCheck()
	a.explain()
	a.collect()
	a.inc.UserSpace, a.inc.KernelSpace = viewOf(a.uw), viewOf(a.kw)
	return a.inc, nil
}

// main is the dump that describes the process.
func (a *analysis) main() *Dump {
	if a.user != nil {
		return a.user
	}
	return a.kernel
}

func (a *analysis) describe() {
	inc, size := a.inc, int64(0)
	for _, d := range []*Dump{a.user, a.kernel} {
		if d != nil {
			inc.Inputs = append(inc.Inputs, d.Describe(a.opt.HashLimit))
			size += d.File.Size()
		}
	}
	a.budget = newFrameBudget(size)
	inc.Captured = a.main().Captured()
	inc.System = *a.main().System()
	inc.Process = *a.main().Process()
	if a.user != nil {
		sp := newSpace(a.user, a.store)
		a.uw = newWalker(sp, a.user.UnloadedModules(), a.opt.Frames, a.budget)
		inc.Emulation = emulation(sp.mods)
		inc.Unloaded = append(inc.Unloaded, a.user.UnloadedModules()...)
		inc.Handles = a.user.Handles()
	}
	if a.kernel != nil {
		sp := newSpace(a.kernel, a.store)
		a.kw = newWalker(sp, a.kernel.UnloadedModules(), a.opt.Frames, a.budget)
		inc.Unloaded = append(inc.Unloaded, a.kernel.UnloadedModules()...)
	}
	if a.user != nil && a.kernel != nil {
		a.mergeKernelFacts()
	}
}

// mergeKernelFacts adds what only the kernel dump of a pair knows.
func (a *analysis) mergeKernelFacts() {
	inc, ks, kp := a.inc, a.kernel.System(), processOf(a.kernel, a.user)
	if inc.System.NTVersion == "" {
		inc.System.NTVersion = ks.NTVersion
	}
	if inc.System.CPUCount == 0 {
		inc.System.CPUCount = ks.CPUCount
	}
	p := &inc.Process
	if p.HasPID && kp.HasPID && p.PID != kp.PID {
		return // the kernel dump's current process is another: it only shares threads with this one
	}
	if !p.HasPID {
		p.PID, p.HasPID = kp.PID, kp.HasPID
	}
	p.EPROCESS, p.DirBase = kp.EPROCESS, kp.DirBase
	if p.ParentPID == 0 {
		p.ParentPID = kp.ParentPID
	}
	if p.Name == "" {
		p.Name = kp.Name
	}
	if p.PEB == 0 {
		p.PEB = kp.PEB
	}
}

// prepareThreads lists the threads: the user dump's, each with its kernel
// state, then those that only the kernel dump knows.
func (a *analysis) prepareThreads() {
	var users, kernels []dump.Thread
	if a.user != nil {
		users = a.user.Threads()
	}
	if a.kernel != nil {
		kernels = a.chosenThreads(a.kernel.Threads())
	}
	statuses := a.threadStatuses(users, kernels)
	match, rest := matchThreads(users, kernels, a.inc.Process.PID)
	a.inc.Threads = make([]Thread, 0, len(users)+len(rest))
	for i, u := range users {
		t := Thread{Thread: u}
		if k := match[i]; k >= 0 {
			t.KernelInfo = kernels[k].Kernel
			t.kernelThread = &kernels[k]
		} else if a.kernel != nil {
			t.KernelNote = a.whyNoKernel(statuses, i)
		}
		a.inc.Threads = append(a.inc.Threads, t)
	}
	for _, k := range rest {
		a.inc.Threads = append(a.inc.Threads, Thread{Thread: kernels[k], KernelInfo: kernels[k].Kernel, kernelThread: &kernels[k]})
	}
}

// threadStatuses returns the status that the live writer recorded for each thread
// of the user dump, nil when it does not say whose they are. It records them in
// the order in which the threads were asked for. That this was the order of the
// user dump is proved when the threads that were captured, in their order, are
// just those whose status is a success.
func (a *analysis) threadStatuses(users, kernels []dump.Thread) []uint32 {
	if a.kernel == nil {
		return nil
	}
	k, ok := a.kernel.Source.(*kdump.File)
	if !ok || !k.Live() {
		return nil
	}
	all := k.ThreadStatus()
	if len(all) != len(users) || len(kernels) == 0 {
		return nil
	}
	next := 0
	for i, status := range all {
		if status>>30 == 3 { // NT_ERROR
			continue
		}
		if next >= len(kernels) || kernels[next].ID != users[i].ID {
			return nil
		}
		next++
	}
	if next != len(kernels) {
		return nil
	}
	return all
}

// whyNoKernel says why a thread of the user dump has no kernel half, as far as
// the kernel dump tells.
func (a *analysis) whyNoKernel(statuses []uint32, thread int) string {
	k, ok := a.kernel.Source.(*kdump.File)
	if !ok || !k.Live() {
		return "the kernel dump holds no state of this thread"
	}
	if statuses != nil {
		return fmt.Sprintf("not captured by the kernel dump's writer: status %#08x", statuses[thread])
	}
	all := k.ThreadStatus()
	for _, status := range all {
		if status>>30 == 3 { // NT_ERROR
			return fmt.Sprintf("not captured by the kernel dump's writer (of %d requested threads some failed with status %#08x)", len(all), status)
		}
	}
	return "not captured by the kernel dump's writer"
}

func (a *analysis) selectThread() {
	if a.opt.Running {
		a.inc.Threads = slices.DeleteFunc(a.inc.Threads, func(t Thread) bool { return t.KernelInfo == nil || t.KernelInfo.CPU < 0 })
	}
	if a.opt.Thread == nil {
		return
	}
	all := len(a.inc.Threads)
	var numbered uint32 // the id of the thread that is shown with this number
	if n := int64(*a.opt.Thread); a.user != nil && n < int64(all) {
		numbered = a.inc.Threads[n].ID
	}
	a.inc.Threads = slices.DeleteFunc(a.inc.Threads, func(t Thread) bool { return t.ID != *a.opt.Thread })
	a.numberHint = " (see: dumptriage threads)"
	if numbered != 0 {
		a.numberHint = fmt.Sprintf("; thread number %d has the id %d (%#x)", *a.opt.Thread, numbered, numbered)
	}
}

func (a *analysis) walkThreads() {
	var exc *dump.Exception
	if a.user != nil {
		exc = a.user.Exception()
	}
	for i := range a.inc.Threads {
		t := &a.inc.Threads[i]
		if a.opt.Progress != nil {
			a.opt.Progress(i, len(a.inc.Threads))
		}
		if a.uw != nil && t.fromUserDump() {
			a.uw.walkUser(t, exc)
		}
		if a.kw != nil && t.KernelInfo != nil {
			a.walkKernelHalf(t)
			if a.opt.Callbacks {
				a.kw.walkCallbacks(t)
			}
		}
		if exc != nil && t.ID == exc.ThreadID && t.fromUserDump() && a.inc.Crashing < 0 {
			a.inc.Crashing = i
		}
	}
}

// hasUser reports whether the user half has frames: registers without a program
// counter or stack pointer give none.
func (t *Thread) hasUser() bool { return t.User != nil && len(t.User.Frames) > 0 }

// fromUserDump reports whether the thread's own registers are user-mode ones.
func (t *Thread) fromUserDump() bool { return t.Thread.Kernel == nil }

func (a *analysis) walkKernelHalf(t *Thread) {
	kt := t.kernelThread
	if a.user == nil && a.inUserMode(kt) {
		a.walkInUserMode(t)
		return
	}
	var st unwind.Stack
	reached := false
	if !kt.Context.Empty() {
		st, reached = a.walkFault(t)
	}
	regs, seam := userEntry(t, st, reached)
	switch {
	case seam == nil:
	case t.hasUser():
		stitch(t, seam)
	case a.uw != nil && t.fromUserDump():
		a.uw.walkUserFromSeam(t, regs, seam)
	case a.user == nil:
		a.userWalker(t).walkUserFromSeam(t, regs, seam)
	default:
		t.Seam = seam
	}
}

// entryProved reports whether a kernel thread stands at the entry of
// KeBugCheckEx: then the word at its stack pointer is a return address, though
// no image says so.
func (a *analysis) entryProved(kt *dump.Thread) bool {
	k, ok := a.kernel.Source.(*kdump.File)
	return ok && kt.ContextSource == dump.ContextHeader && k.BugCheckEntry()
}

// collect gathers what the walks found out: modules with their images, missing
// images, damage.
func (a *analysis) collect() {
	seen := map[string]bool{}
	for _, w := range slices.Concat([]*walker{a.uw}, a.viewOrder, []*walker{a.kw}) {
		if w != nil {
			a.addMissing(w.space.missingImages(), seen)
			a.inc.Errors = append(a.inc.Errors, w.space.debugDamage()...)
			a.inc.Errors = append(a.inc.Errors, w.space.imageDamage()...)
			for _, e := range w.space.managedDamage() {
				e.File = a.main().Path
				a.inc.Errors = append(a.inc.Errors, e)
			}
		}
	}
	if a.uw != nil {
		a.inc.Modules = append(a.inc.Modules, a.uw.space.mods...)
	}
	a.inc.Modules = append(a.inc.Modules, a.viewModules()...)
	if a.kw != nil {
		a.inc.Modules = append(a.inc.Modules, a.kw.space.mods...)
	}
	for _, d := range []*Dump{a.user, a.kernel} {
		if d != nil {
			a.inc.Errors = append(a.inc.Errors, d.Errors()...)
		}
	}
	if e := a.budget.damage(); e != nil {
		e.File = a.main().Path
		a.inc.Errors = append(a.inc.Errors, e)
	}
	if a.opt.Thread != nil && len(a.inc.Threads) == 0 {
		a.inc.Errors = append(a.inc.Errors, dump.Errorf(dump.OutOfRange, "threads", "no thread has the id %d (%#x)%s", *a.opt.Thread, *a.opt.Thread, a.numberHint))
	}
}
