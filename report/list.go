package report

import (
	"cmp"
	"io"
	"slices"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

// ListKind says which list a List is.
type ListKind string

// The lists; the text is the verb that prints it.
const (
	ListInfo    ListKind = "info"
	ListModules ListKind = "modules"
	ListDrivers ListKind = "drivers"
	ListThreads ListKind = "threads"
	ListHandles ListKind = "handles"
	ListMemory  ListKind = "memory"

	ListProcesses ListKind = "processes"
	ListStreams   ListKind = "streams"
	ListSymbols   ListKind = "symbols"
	ListTypes     ListKind = "types"
)

// List is what the verbs other than stacks print: the facts of one dump, as far
// as the kind of list needs them.
type List struct {
	Kind     ListKind
	Inputs   []triage.Input
	Errors   []*dump.Error
	System   *dump.System
	Process  *dump.Process
	Captured time.Time

	Modules  []*triage.Module // modules, and drivers: those with Kernel set
	Unloaded []dump.Module
	Threads  []triage.Thread        // printed without frames
	Runtime  *triage.ManagedRuntime // of Threads
	Handles  []dump.Handle          // nil when the dump does not say
	Regions  []dump.Region
	Ranges   []dump.Range
	// Processes of ListProcesses; Bytes of ListMemory, instead of regions.
	Processes []ProcessEntry
	Tree      bool // Processes is a ProcessTree
	Bytes     *HexDump
	Physical  bool // Ranges are of physical memory
	OfProcess bool // Regions are those of Process in a dump of a whole system, and all that was asked for
	Streams   []Stream
	Symbols   []symbols.Need
	Fetch     bool        // Symbols were to be fetched: it is done in part when some are missing
	Struct    *pdb.Struct // of ListTypes
	// Crash and BugCheck are printed by info.
	Crash    *dump.Exception
	BugCheck *dump.BugCheck
	Blobs    []Blob // secondary data
	// System of a dump of a whole system, printed by info.
	Whole *WholeSystem
	// Counts of info; -1 means not known.
	ThreadCount, ModuleCount int
}

// Stream is one part of a dump file, as its directory or header lists it.
type Stream struct {
	Type    uint32
	HasType bool   // Type is a number of the format
	Name    string // "" when the type has no known name
	Offset  int64  // in the file; negative when not known
	Size    int64  // in bytes; negative when not known
	Note    string // what is wrong with it, or what it holds
}

// incident gives a list the form that Status and the crash conversions take.
func (l *List) incident() *triage.Incident {
	inc := &triage.Incident{Errors: l.Errors, Modules: l.Modules, Threads: l.Threads, Crashing: -1}
	if l.System != nil {
		inc.System = *l.System
	}
	if l.Process != nil {
		inc.Process = *l.Process
	}
	if l.Crash != nil {
		inc.Crash = &triage.Crash{Exception: *l.Crash}
	}
	if l.BugCheck != nil {
		inc.BugCheck = &triage.BugCheck{BugCheck: *l.BugCheck}
		inc.BugCheck.Live = isLive(l.BugCheck.Code)
	}
	return inc
}

// headerVerdict is what the header tells of the bugcheck, with the secondary data.
func (l *List) headerVerdict(inc *triage.Incident) *bugcheck.Verdict {
	v := bugcheck.OfHeader(inc.BugCheck, inc.System.Arch)
	if v != nil {
		for _, b := range l.Blobs {
			v.Blobs = append(v.Blobs, bugcheck.NameBlob(b.GUID, b.Size))
		}
	}
	return v
}

// ListStatus is Status for a list.
func ListStatus(l *List) (string, int) {
	status, exit := Status(l.incident())
	if status == StatusOK && l.Fetch && slices.ContainsFunc(l.Symbols, func(n symbols.Need) bool { return n.Missing() }) {
		return StatusPartial, 3 // what was asked for could be got in part only
	}
	return status, exit
}

// ListJSON writes a list as one JSON object on one line.
func ListJSON(w io.Writer, l *List, opt Options) error {
	opt.hide(l)
	inc := l.incident()
	h := hexFor(inc.System.Arch)
	d := header(opt.Tool, l.Inputs, l.Errors)
	d.Status, _ = ListStatus(l)
	d.PID, d.Process, d.SystemInfo = pid(inc), processJSON(inc), systemJSON(&inc.System)
	special := map[string]func(*stream){}
	switch l.Kind {
	case ListInfo:
		d.Captured = timeText(l.Captured)
		d.CrashInfo, d.Analysis = crashJSON(inc, h), analysisJSON(inc, nil)
		d.BugCheck = bugCheckJSON(inc.BugCheck, l.headerVerdict(inc), h, inc.System.Arch)
		d.ThreadCount, d.ModuleCount = count(l.ThreadCount), count(l.ModuleCount)
		d.WholeSystem = wholeSystemJSON(l.Whole)
	case ListModules:
		d.Modules, d.UnloadedModules = modulesJSON(l.Modules, h), unloadedJSON(l.Unloaded, h)
	case ListDrivers:
		kernel := drivers(l.Modules)
		d.Modules, d.UnloadedModules = modulesJSON(kernel, h), unloadedJSON(l.Unloaded, h)
		kinds := stampKinds(kernel, l.Captured)
		for i, m := range kernel {
			d.Modules[i].Version = kernelVersion(m, l.System)
			d.Modules[i].TimestampKind = string(kinds[i])
		}
	case ListThreads:
		d.ThreadCount, d.ManagedRuntime = ptr(len(l.Threads)), runtimeJSON(l.Runtime)
		special["threads"] = func(s *stream) { s.threadHeads(l.Threads, h) }
	case ListHandles:
		if l.Handles != nil { // none is a fact, no handle data is not
			d.Handles = append([]HandleJSON{}, handlesJSON(l.Handles, h)...)
		}
	case ListProcesses:
		special["processes"] = func(s *stream) { s.processes(l.Processes, l.Tree, l.Process, h) }
	case ListMemory:
		if d.Bytes = bytesJSON(l.Bytes, h); d.Bytes != nil {
			break
		}
		special["regions"] = func(s *stream) { s.regions(l.Regions, h) }
		if !l.OfProcess {
			special["ranges"] = func(s *stream) { s.ranges(l.Ranges, h) }
		}
	case ListStreams:
		d.Streams = streamsJSON(l.Streams)
	case ListSymbols:
		d.Symbols, d.NextSteps = symbolsJSON(l.Symbols), howToFetch(l)
	case ListTypes:
		d.Structure = structureJSON(l.Struct)
	}
	return newStream(w, opt).document(&d, special)
}

func count(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func drivers(in []*triage.Module) []*triage.Module {
	var out []*triage.Module
	for _, m := range in {
		if m != nil && m.Module != nil && m.Kernel {
			out = append(out, m)
		}
	}
	return out
}

func (s *stream) threadHeads(threads []triage.Thread, h hexer) {
	list(s, "threads", func(yield func(*ThreadJSON) bool) {
		for i := range threads {
			j := threadHead(&threads[i], h)
			j.Frames = []FrameJSON{}
			if !yield(&j) {
				return
			}
		}
	})
}

func (s *stream) regions(regions []dump.Region, h hexer) {
	list(s, "regions", func(yield func(RegionJSON) bool) {
		for i := range regions {
			r := &regions[i]
			j := RegionJSON{Base: h.addr(r.Base), Size: r.Size, State: memoryState(r.State), Type: memoryType(r.Type), AllocationBase: h.known(r.AllocationBase)}
			if r.Protect != 0 {
				j.Protect = protection(r.Protect)
			}
			if v := r.VAD; v != nil {
				j.File, j.VAD, j.Kind = cmp.Or(r.Image, r.File), h.addr(v.Address), v.Kind
				if v.HasCommit {
					j.CommitPages = &v.Commit
				}
			}
			if !yield(j) {
				return
			}
		}
	})
}

func (s *stream) ranges(ranges []dump.Range, h hexer) {
	list(s, "ranges", func(yield func(RangeJSON) bool) {
		for _, r := range ranges {
			if !yield(RangeJSON{h.addr(r.VA), r.Size, r.Off}) {
				return
			}
		}
	})
}

func streamsJSON(in []Stream) []StreamJSON {
	out := make([]StreamJSON, 0, len(in))
	for i := range in {
		j := StreamJSON{Name: in[i].Name, Note: in[i].Note}
		if in[i].HasType {
			j.Type = &in[i].Type
		}
		if in[i].Offset >= 0 {
			j.Offset = &in[i].Offset
		}
		if in[i].Size >= 0 {
			j.Size = &in[i].Size
		}
		out = append(out, j)
	}
	return out
}
