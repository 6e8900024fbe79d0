package pdb

import (
	"errors"
	"io"
	"sync"

	"dumptriage/dump"
)

// File is an open PDB. Its methods may be called from several goroutines.
type File struct {
	name  string
	msf   *MSF
	info  Info
	named map[string]int
	dbi   dbiHeader

	sections []Section // of the image as linked; equal to final when it was not rearranged
	final    []Section // of the image as loaded

	contribs func() *contributions
	modules  func() *moduleTable
	byName   func() map[string]int
	names    func() *stringTable
	publics  func() *publicTable
	omap     func() *omapTables
	frames   func() *frameTable
	types    func() *typeStream
	ids      func() *typeStream
	structs  func() *structIndex
	inlinees knownNames // of inlined functions, by id
	cache    moduleCache
	damage   damageList
}

// Open reads the identity and the headers of a PDB of size bytes. Name is for
// error messages. Other formats are refused with an error that names them;
// every error is a *dump.Error. R must stay usable as long as the file is used.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{name: name}
	if err := f.open(r, size); err != nil {
		return nil, f.withName(err)
	}
	return f, nil
}

func (f *File) open(r io.ReaderAt, size int64) error {
	msf, err := OpenMSF(r, size)
	if err != nil {
		return err
	}
	f.msf = msf
	if msf.truncated != nil {
		f.note(msf.truncated)
	}
	if err := f.readInfo(); err != nil {
		return err
	}
	f.names = sync.OnceValue(f.openNames)
	f.contribs = sync.OnceValue(f.readContributions)
	f.modules = sync.OnceValue(f.readModules)
	f.byName = sync.OnceValue(f.indexModules)
	f.publics = sync.OnceValue(f.openPublics)
	f.omap = sync.OnceValue(f.readOMAP)
	f.frames = sync.OnceValue(f.readFrames)
	f.types = sync.OnceValue(func() *typeStream { return f.openTypes(streamTPI, "TPI") })
	f.ids = sync.OnceValue(func() *typeStream { return f.openTypes(streamIPI, "IPI") })
	f.structs = sync.OnceValue(f.indexStructs)
	return f.readDBI()
}

// Info returns the file's identity.
func (f *File) Info() Info { return f.info }

// MSF returns the container, for streams that this package does not interpret.
func (f *File) MSF() *MSF { return f.msf }

func (f *File) openNames() *stringTable {
	s, err := f.NamedStream("/names")
	if err != nil {
		f.note(err)
		return nil
	}
	t, err := openStringTable(s)
	f.note(err)
	return t
}

// damageList collects what could not be read, with a cap, each thing once.
type damageList struct {
	mu   sync.Mutex
	list []*dump.Error
	seen map[string]bool
}

const maxDamage = 64

// note records an error as damage of the file.
func (f *File) note(err error) {
	if err == nil {
		return
	}
	var e *dump.Error
	if !errors.As(f.withName(err), &e) {
		return
	}
	d := &f.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := e.Error(); len(d.list) < maxDamage && !d.seen[text] {
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[text] = true
		d.list = append(d.list, e)
	}
}

// withName puts the file's name into an error that is this package's own.
func (f *File) withName(err error) error {
	var e *dump.Error
	if !errors.As(err, &e) {
		return &dump.Error{Code: dump.Internal, File: f.name, Offset: -1, Size: -1, Msg: err.Error(), Err: err}
	}
	c := *e
	c.File = f.name
	return &c
}

// Damage returns what could not be read so far, at most 64 entries. It grows as
// more of the file is asked for.
func (f *File) Damage() []*dump.Error {
	f.damage.mu.Lock()
	defer f.damage.mu.Unlock()
	return append([]*dump.Error(nil), f.damage.list...)
}
