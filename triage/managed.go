package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/managed"
	"dumptriage/pdata"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// ManagedRuntime is the .NET runtime of the dumped process.
type ManagedRuntime struct {
	Host   string         // module that it is in, "" when only its code heaps are known
	Source managed.Source // what its structures are read by
	Note   string         // what could not be read
	// Damage is what of that is damaged or has a form that is not known; an Incident has it
	// among its errors. What the dump does not hold is none.
	Damage []*dump.Error

	Monitors  []managed.Monitor // the locks of objects that are contended or deep, as far as they are known
	Finalizer uint32            // id of the thread that runs finalizers, 0 not known
	Suspender uint32            // id of the thread that has stopped the others, 0 none
}

// managedSpace is the .NET runtime of one address space. It is opened by the first
// question.
type managedSpace struct {
	asked, all bool // all: files were looked for too
	runtime    *managed.Runtime
	failed     error                    // the last of what could not be read
	methods    map[uint64]*dynamicTable // unwind tables by the method's start; nil values: no code
	ahead      map[*Module]*managed.Ahead
	budget     managed.AheadBudget // of ahead
}

// maxMethodTables is how many methods' tables are remembered.
const maxMethodTables = 1 << 14

// runtime returns the process's .NET runtime, nil when it has none. Without need its
// image is not looked for among files.
func (s *space) runtime(need bool) *managed.Runtime {
	m := &s.clr
	if m.all || m.runtime != nil && m.runtime.Contracts || m.asked && !need {
		return m.runtime
	}
	m.asked, m.all = true, need
	var heaps []managed.Heap
	if need || s.dynamic.opened { // the list is long to find, and of no other use here
		heaps = s.dynamic.runtimeHeaps()
	}
	host := s.runtimeHost(need)
	if host == nil {
		if len(heaps) == 0 {
			return nil
		}
		host = &managed.Image{}
	}
	opt := managed.Options{Memory: s.mem, Arch: s.arch, Host: *host, Heaps: heaps, Images: s.managedImage}
	var err error
	if m.runtime, err = managed.Open(opt); err != nil {
		m.failed = err
	}
	return m.runtime
}

// runtimeHost finds the module that the runtime is in: coreclr.dll or its like, else a
// program that exports a contract descriptor.
func (s *space) runtimeHost(need bool) *managed.Image {
	for _, m := range s.mods {
		if managed.IsHost(m.Name()) {
			im := s.hostImage(m, need)
			return &im
		}
	}
	for _, m := range s.mods {
		if strings.HasSuffix(strings.ToLower(m.Name()), ".exe") {
			if s.hasDescriptor(m) {
				im := s.hostImage(m, false)
				return &im
			}
		}
	}
	return nil
}

// hasDescriptor reports whether a program has a .NET runtime in it. Most have none:
// a watcher of the memory is not told of the look at their exports.
func (s *space) hasDescriptor(m *Module) bool {
	mem := s.mem
	if w := s.Watcher(); w != nil {
		mem = ahead{w}
	}
	im, err := pdata.OpenMapped(mem, m.Base, m.Name())
	return err == nil && managed.HasDescriptor(&managed.Image{PE: im})
}

// ahead reads memory ahead of use.
type ahead struct{ dump.Watcher }

func (a ahead) ReadAt(p []byte, va uint64) (int, error) { return a.ReadAhead(p, va) }

func (s *space) hostImage(m *Module, need bool) managed.Image {
	im := managed.Image{Name: m.Name(), Base: m.Base}
	if need || m.UsedInStack {
		im.PE, im.File = s.imageOf(m), m.Image == symbols.ImageFromFile
		return im
	}
	if pe, err := pdata.OpenMapped(s.mem, m.Base, m.Name()); err == nil {
		im.PE = pe
	}
	return im
}

// managedImage returns the image of the module at a base.
func (s *space) managedImage(base uint64) *managed.Image {
	m := s.find(base)
	if m == nil || m.Base != base {
		return nil
	}
	im := s.hostImage(m, true)
	return &im
}

// codeHeap returns the unwind table of the method at an address outside modules, nil
// when it is none's.
func (s *space) codeHeap(va uint64) (t unwind.Table, base uint64, method unwind.Method) {
	if s.arch != dump.AMD64 {
		return nil, 0, unwind.MethodNone
	}
	r := s.runtime(true)
	if r == nil {
		return nil, 0, unwind.MethodNone
	}
	c, ok, _ := r.Code(va)
	switch {
	case !ok || c.Kind == managed.KindStub:
		return nil, 0, unwind.MethodNone
	case c.Kind == managed.KindR2R:
		if im, base := r.ImageOf(c); im != nil {
			return im, base, unwind.MethodPdata
		}
		return nil, 0, unwind.MethodNone
	case c.Count == 0:
		return nil, 0, unwind.MethodNone
	}
	m := &s.clr
	table := m.methods[c.Start]
	if table == nil {
		if m.methods == nil || len(m.methods) >= maxMethodTables {
			m.methods = map[uint64]*dynamicTable{}
		}
		table = &dynamicTable{
			owner: s.dynamic, min: c.Start, max: va + 1, base: c.Base, count: c.Count, method: unwind.MethodCodeHeap,
			entries: memoryEntries{s.mem, c.Functions},
		}
		if last, ok := table.entries.entry(c.Count - 1); ok {
			table.max = max(table.max, c.Base+uint64(last.End))
		}
		m.methods[c.Start] = table
	}
	return table, table.base, table.method
}

// managedName names a frame in managed code.
func (s *space) managedName(f *Frame) {
	var m *managed.Method
	if f.Module != nil {
		m = s.aheadOfTime(f.Module, f.Lookup)
	} else if r := s.runtime(true); r != nil {
		m, _ = r.Method(f.Lookup) // the method says what is missing of it
	}
	if m == nil {
		return
	}
	f.Managed = m
	if name := m.FullName(); name != "" {
		f.Name = symbols.Name{Function: name, Full: m.Declaration(), Source: symbols.SourceCLR, Offset: f.IP - m.Start}
	}
}

// aheadOfTime names code of an image that was compiled ahead of time.
func (s *space) aheadOfTime(m *Module, va uint64) *managed.Method {
	tables, done := s.clr.ahead[m]
	if !done {
		if im := s.imageOf(m); im != nil {
			var err error // mostly that it is no .NET image, or one without such code
			if tables, err = s.clr.budget.Open(im, m.Base, m.Name()); err != nil && dump.AsError(err).Code == dump.Limit {
				s.clr.failed = err
			}
		}
		if s.clr.ahead == nil {
			s.clr.ahead = map[*Module]*managed.Ahead{}
		}
		s.clr.ahead[m] = tables
	}
	return tables.Method(va)
}

// runtimeHeaps lists the code ranges of a .NET runtime among the process's dynamic
// function tables: those that the runtime's own debugger library answers for.
func (d *dynamicTables) runtimeHeaps() []managed.Heap {
	d.open()
	var out []managed.Heap
	for _, t := range d.tables {
		if t.kind == tableCallback && strings.HasPrefix(strings.ToLower(t.provider), "mscordac") && t.context&^3 != 0 && t.context&3 == 0 {
			out = append(out, managed.Heap{Min: t.min, Max: t.max, Manager: t.context})
		}
	}
	return out
}

// managedFacts adds the managed threads to those of the incident.
func (a *analysis) managedFacts() {
	if a.uw != nil {
		a.inc.Runtime = a.uw.space.managedThreads(pointers(a.inc.Threads))
		return
	}
	for owner, threads := range byProcess(a.inc.Threads) {
		w := a.views[owner]
		if w == nil {
			continue
		}
		if r := w.space.managedThreads(threads); r != nil && owner == a.inc.Process.EPROCESS {
			a.inc.Runtime = r
		}
	}
}

func pointers(threads []Thread) []*Thread {
	out := make([]*Thread, len(threads))
	for i := range threads {
		out[i] = &threads[i]
	}
	return out
}

// byProcess sorts threads of a kernel dump by the EPROCESS of their owner.
func byProcess(threads []Thread) map[uint64][]*Thread {
	out := map[uint64][]*Thread{}
	for i := range threads {
		if k := threads[i].KernelInfo; k != nil {
			out[k.EPROCESS] = append(out[k.EPROCESS], &threads[i])
		}
	}
	return out
}

// AddManaged adds to the threads of a user dump what its .NET runtime says of them,
// without walking any; nil when no runtime is found. Of a dump of a whole system it
// does so for one process, whose threads alone are given. No files are looked for.
func AddManaged(d *Dump, p *dump.Process, threads []Thread) *ManagedRuntime {
	src := d.Source
	if _, kernel := src.(*kdump.File); kernel {
		if p == nil || d.wholeSystem() == nil {
			return nil
		}
		src = d.ProcessView(p)
	}
	store := symbols.NewPathStore(nil, symbols.StoreOptions{})
	defer store.Close()
	return newSpace(src, store).managedThreads(pointers(threads))
}

// managedThreads adds what the .NET runtime says of threads, and names to those that
// have none; nil when the process has no runtime.
func (s *space) managedThreads(threads []*Thread) *ManagedRuntime {
	r := s.runtime(false)
	if r == nil {
		return nil
	}
	out := &ManagedRuntime{Host: r.Host}
	switch {
	case r.Contracts:
		out.Source = managed.SourceContracts
	case r.HasHeaps():
		out.Source = managed.SourceLayout
	}
	all, err := r.Threads()
	out.Monitors = r.Monitors(all)
	out.Finalizer, out.Suspender = r.SystemThreads()
	for _, err := range []error{s.clr.failed, err, r.Exhausted()} {
		if err != nil {
			out.Note = dump.AsError(err).Detail()
		}
	}
	out.Damage = s.managedDamage()
	byID := map[uint32]*managed.Thread{}
	for i := range all {
		if t := &all[i]; t.OSID != 0 && byID[t.OSID] == nil {
			byID[t.OSID] = t
		}
	}
	for _, t := range threads {
		if t.Managed = byID[t.ID]; t.Managed != nil && t.Name == "" {
			t.Name = t.Managed.Name
		}
	}
	return out
}

// managedDamage lists what of the .NET runtime was damaged, of a form that is not known,
// or too much to look at.
func (s *space) managedDamage() (out []*dump.Error) {
	for _, err := range []error{s.clr.failed, s.clr.runtime.Exhausted()} {
		if err == nil {
			continue
		}
		e := *dump.AsError(err)
		switch e.Code {
		case dump.BadRecord, dump.BadCount, dump.Limit:
			out = append(out, &e)
		}
	}
	return out
}

// mayBeManaged reports whether a module has a CLR header, as far as its image is
// known.
func (s *space) mayBeManaged(m *Module) bool {
	im := s.images[m]
	if im == nil {
		return false
	}
	rva, _ := im.Directory(directoryCLR)
	return rva != 0
}

const directoryCLR = 14 // IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR

// ModuleName is the file name of the module that a frame's function belongs to: of
// .NET code that of the method's module, whatever memory its code is in; "" unknown.
func (f *Frame) ModuleName() string {
	switch {
	case f.Managed != nil && f.Managed.Module != "":
		return f.Managed.Module
	case f.Module != nil && f.Module.Module != nil:
		return f.Module.Name()
	}
	return ""
}
