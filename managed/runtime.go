package managed

import (
	"strings"

	"dumptriage/dump"
)

// Runtime is a .NET runtime in a dumped process. It is used by one goroutine.
type Runtime struct {
	// Host is the image that the runtime is in: coreclr.dll, clr.dll, or a program of
	// one file.
	Host string
	// Contracts is set when the runtime tells its own layout.
	Contracts bool

	mem     dump.Memory
	silent  bool
	l       *layout
	codeMap uint64
	heaps   []Heap
	modules map[uint64]*Module
	images  func(base uint64) *Image
	types   map[uint64]typeName
	methods map[uint64]*Method
	ahead   AheadBudget
	left    int // reads of its structures that are allowed still
	toTell  exceptionBudget
	opened  int64 // bytes of metadata of all modules
	crowded error // modules that were not looked into
}

// maxReads bounds what is read of the runtime's structures in all: a name takes some
// dozens, and one forged list or map could take thousands for each frame.
const maxReads = 1 << 24

func exhausted() *dump.Error {
	return dump.Errorf(dump.Limit, "runtime", "its structures were read %d times, more than a sound process needs: the rest is unknown", maxReads)
}

// Exhausted returns an error when so much was read of the runtime's structures that
// what is asked from then on is unknown.
func (r *Runtime) Exhausted() error {
	switch {
	case r == nil:
		return nil
	case r.left <= 0:
		return exhausted()
	case r.crowded != nil:
		return r.crowded
	}
	return r.toTell.spent()
}

// Heap is a range of code that the process registered with the system as the
// runtime's: by a function table that a callback fills.
type Heap struct {
	Min, Max uint64
	Manager  uint64 // EEJitManager
}

// Options are what a Runtime is opened with.
type Options struct {
	Memory dump.Memory
	Arch   dump.Arch
	Host   Image // the image that has the runtime
	// Heaps are the code heaps that the system knows of.
	Heaps []Heap
	// Images returns the module of the process that is loaded at a base, nil when there
	// is none.
	Images func(base uint64) *Image
}

// Open opens the runtime of a process. One that has no descriptor is opened by what
// is the same in all versions; Contracts is false then. The error says why a
// descriptor, or a part of it, could not be used; the Runtime is usable all the same.
func Open(opt Options) (*Runtime, error) {
	r := &Runtime{
		Host: opt.Host.Name, mem: opt.Memory, heaps: opt.Heaps, images: opt.Images,
		modules: map[uint64]*Module{}, types: map[uint64]typeName{}, methods: map[uint64]*Method{}, left: maxReads,
		toTell: exceptionBudget{maxExceptions, maxStackFrames, maxExceptionText},
	}
	err := r.readContracts(&opt)
	if r.l == nil {
		r.l = oldLayout(opt.Arch)
	}
	r.complete(opt.Arch)
	return r, err
}

// HasHeaps reports whether the system knows of code heaps of the runtime.
func (r *Runtime) HasHeaps() bool { return len(r.heaps) > 0 }

// HasCode reports whether something tells where the runtime's code is.
func (r *Runtime) HasCode() bool { return r != nil && (r.codeMap != 0 || r.HasHeaps()) }

// IsHost reports whether a module by its name is a .NET runtime.
func IsHost(name string) bool {
	switch strings.ToLower(name) {
	case "coreclr.dll", "clr.dll", "mscorwks.dll":
		return true
	}
	return false
}

// HasDescriptor reports whether an image exports a contract descriptor.
func HasDescriptor(im *Image) bool {
	_, ok := descriptorRVA(im)
	return ok
}

func descriptorRVA(im *Image) (uint32, bool) {
	if im.PE == nil {
		return 0, false
	}
	for e, err := range im.PE.Exports() {
		if err != nil {
			return 0, false
		}
		if e.Name == DescriptorExport {
			return e.RVA, e.Forwarder == ""
		}
	}
	return 0, false
}

func (r *Runtime) readContracts(opt *Options) error {
	rva, ok := descriptorRVA(&opt.Host)
	if !ok {
		return nil
	}
	l, err := readDescriptor(&hostMemory{opt.Memory, opt.Host}, opt.Host.Base+uint64(rva))
	if l == nil {
		return err
	}
	r.l, r.Contracts = l, true
	r.codeMap = l.number("ExecutionManagerCodeRangeMapAddress", 0)
	return err
}

// oldLayout is what is the same in all 64-bit versions before .NET 9.
func oldLayout(arch dump.Arch) *layout {
	return &layout{
		pointer: arch.PointerSize(), contracts: map[string]string{"ExecutionManager": "1"},
		types: map[string]typeLayout{}, globals: map[string]global{"MethodDescTokenRemainderBitCount": {value: 14}},
	}
}

// codeHeapTypes are the code heap's structures of 64-bit runtimes, measured on .NET
// Core 2.2 and .NET 10. Debuggers' out-of-process callback depends on them.
var codeHeapTypes = map[string]typeLayout{
	"CodeHeapListNode": {fields: map[string]uint64{"Next": 0, "StartAddress": 0x10, "EndAddress": 0x18, "MapBase": 0x20, "HeaderMap": 0x28}},
	"RealCodeHeader":   {fields: map[string]uint64{"MethodDesc": 0x18, "NumUnwindInfos": 0x20, "UnwindInfos": 0x24}},
}

// complete adds what a descriptor lacks, as that of .NET 9 does, and all versions have
// in the same place.
func (r *Runtime) complete(arch dump.Arch) {
	if arch.PointerSize() != 8 {
		return
	}
	for name, t := range codeHeapTypes {
		if _, ok := r.l.types[name]; !ok {
			r.l.types[name] = t
		}
	}
	if _, ok := r.l.contracts["ExecutionManager"]; !ok {
		r.l.contracts["ExecutionManager"] = "1" // .NET 9: with the linear map
	}
}

func (r *Runtime) access() *access { return &access{mem: r.memory(), l: r.l, left: &r.left} }

// memory is the process's memory. What threads and exceptions say is nothing that a
// stack needs: a watcher of the memory is not told of it.
func (r *Runtime) memory() dump.Memory {
	if w := dump.WatcherOf(r.mem); w != nil && r.silent {
		return unwatched{w}
	}
	return r.mem
}

// quietly keeps reads from a watcher until what it returns is called.
func (r *Runtime) quietly() func() {
	was := r.silent
	r.silent = true
	return func() { r.silent = was }
}

type unwatched struct{ dump.Watcher }

func (u unwatched) ReadAt(p []byte, va uint64) (int, error) { return u.ReadAhead(p, va) }
