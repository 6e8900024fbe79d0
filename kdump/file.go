package kdump

import (
	"errors"
	"io"
	"sync"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// File is an opened kernel dump. It implements dump.Source. Its methods may be
// called from several goroutines.
type File struct {
	r    io.ReaderAt
	size int64
	name string
	hdr  *header

	// Of triage dumps only; nil or empty when missing. The structures that the
	// header of those has copies of, prcb apart, are read from memory in full dumps.
	tri     *triage
	kd      *kdbg
	blocks  []dump.Range // in file order, cut to the file's end
	live    bool
	prcb    *record // the header's copies
	thread  *record
	process *record
	mem     dump.Memory

	watched *watchedFile // nil when nobody watches what is used of the file

	full    *full // of dumps with physical memory
	kdbgHow string
	sym     *kernelSymbols // what the kernel's debug information says, nil when there is none
	rows    *typeRows      // with symbols, the rows of the tables

	mu      sync.Mutex
	damages []*dump.Error

	modulesOnce  sync.Once
	modules      []dump.Module
	byBase       []*dump.Module
	unloadedOnce sync.Once
	unloaded     []dump.Module
	blobsOnce    sync.Once
	blobs        []Blob
	blobStart    int64 // file offset of their head, 0 none
	prcbsOnce    sync.Once
	prcbs        []processor
	threadsOnce  sync.Once
	threads      []dump.Thread
	processOnce  sync.Once
	proc         dump.Process
	idsOnce      sync.Once
	ids          identity
	faultOnce    sync.Once
	fault        fault
	contextsOnce sync.Once
	contexts     []dump.Range // the blocks of a CONTEXT's size, by address
	statusOnce   sync.Once
	status       []uint32
	systemOnce   sync.Once
	system       dump.System
}

var _ dump.Source = (*File)(nil)

// Open reads the header of a kernel dump of size bytes. Name is for messages.
// The file must stay readable for as long as the result is used. An error, always
// a *dump.Error, means that nothing could be read; whatever else is wrong is
// left to Damage.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	return OpenWith(r, size, name, Options{})
}

// OpenWith is Open with options.
func OpenWith(r io.ReaderAt, size int64, name string, opt Options) (*File, error) {
	c := cursor.At(r, size, 0, int64(header64.size), headerStream)
	if c.Err() != nil {
		return nil, named(c.Err(), name)
	}
	h, err := parseHeader(c)
	if err != nil {
		err.File = name
		return nil, err
	}
	f := &File{r: r, size: size, name: name, hdr: h, mem: dump.NewFileMemory(r, nil)}
	switch h.dumpType {
	case typeTriage:
		f.watch(&opt)
		f.openTriage()
	case typeHeader:
		e := dump.Errorf(dump.OutOfRange, "memory", "the dump is its header alone: it holds no memory, so that there are no processes, drivers, threads or stacks in it")
		e.Warning = true
		f.damage(e)
	case typeFull, typeSummary, typeBitmap, typeKernel, typeAutomatic, typeRangeK, typeRangeKA, typeRangeF:
		f.openFull(opt)
	default:
		f.damage(dump.Errorf(dump.UnsupportedFormat, headerStream,
			"reading this kind (%s) is not supported: only its header is shown", kindName(h.dumpType)))
	}
	return f, nil
}

func named(err error, name string) error {
	var e *dump.Error
	if errors.As(err, &e) {
		e.File = name
		return e
	}
	return err
}

// maxDamage bounds the list of complaints that a hostile file can cause.
const maxDamage = 200

func (f *File) damage(e *dump.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.damages) < maxDamage {
		e.File = f.name
		f.damages = append(f.damages, e)
	}
}

// damageErr notes err when it is one of ours; nil is ignored.
func (f *File) damageErr(err error) {
	var e *dump.Error
	if errors.As(err, &e) {
		f.damage(e)
	}
}

// Format implements dump.Source.
func (f *File) Format() dump.Format {
	if f.hdr.ptr == 4 {
		return dump.FormatKernel32
	}
	return dump.FormatKernel64
}

// Kind implements dump.Source.
func (f *File) Kind() string {
	if f.live {
		return "triage (live, procdump -mk)"
	}
	return kindName(f.hdr.dumpType)
}

// DumpType returns DUMP_HEADER.DumpType as it stands.
func (f *File) DumpType() uint32 { return f.hdr.dumpType }

// Live reports whether the dump was written by the kernel's live triage writer
// (NtSystemDebugControl's triage dump, which procdump -mk asks for): the system
// went on running.
func (f *File) Live() bool { return f.live }

// Flags implements dump.Source: the bits of Attributes, then those of
// MiniDumpFields of a triage dump.
func (f *File) Flags() []string {
	var flags []string
	if a := f.hdr.attributes; a.ok {
		flags = bitNames(flags, a.v, attributeNames, "Attributes")
	}
	if m := f.hdr.fields; m.ok && f.hdr.dumpType == typeTriage {
		flags = bitNames(flags, m.v, fieldNames, "MiniDumpFields")
	}
	return flags
}

// Comment returns the header's comment, "" when none was written.
func (f *File) Comment() string { return f.hdr.comment }

// Captured implements dump.Source.
func (f *File) Captured() time.Time {
	if !f.hdr.systemTime.ok {
		return time.Time{}
	}
	return filetime(f.hdr.systemTime.v)
}

// BugCheck implements dump.Source. A live dump carries the code and parameters
// that its requester passed.
func (f *File) BugCheck() *dump.BugCheck {
	if !f.hdr.code.ok {
		return nil
	}
	return &dump.BugCheck{Code: f.bugCheckCode(), Raw: f.hdr.code.v, Parameters: f.hdr.params}
}

// minidumpBit is what the writer of small dumps adds to some bugcheck codes.
const minidumpBit = 0x10000000

// bugCheckCode returns the code without the minidump bit. Codes that are
// NTSTATUS values (0xC000021A, 0xDEADDEAD) keep theirs.
func (f *File) bugCheckCode() uint32 {
	code := f.hdr.code.v
	if code>>28 == 1 {
		code &^= minidumpBit
	}
	return code
}

// Memory implements dump.Source.
func (f *File) Memory() dump.Memory { return f.shown(f.mem) }

// Handles implements dump.Source; kernel dumps have no handle list.
func (f *File) Handles() []dump.Handle { return nil }

// Regions implements dump.Source; kernel dumps do not say.
func (f *File) Regions() []dump.Region { return nil }

// Damage implements dump.Source. The secondary data, which nothing else may have
// asked for, are the end of the file: they tell whether it was cut short.
func (f *File) Damage() []*dump.Error {
	f.Blobs()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damages[:len(f.damages):len(f.damages)]
}
