package symbols

import (
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/symbols/pdb"
	"dumptriage/symbols/sym"
)

// Debug is the debug information of one module, of whatever format: PDB or Sym.
type Debug interface {
	// Name names an address. Both are RVAs as for NameOf. False means that
	// there is no name for it.
	Name(lookup, ip uint32) (Name, bool)
	// Damage is what could not be read so far.
	Damage() []*dump.Error
}

// DebugState says what became of the search for a module's debug information.
type DebugState uint8

// States of debug information.
const (
	DebugNotNeeded DebugState = iota // no frame asked for it, or the module names none
	DebugLoaded
	DebugMissing
	DebugMismatch // only files of other builds were found; one is used when that is allowed
)

// debugFormat is a kind of file that debug information is found in.
type debugFormat struct {
	name func(cv *dump.CodeView) string // of the file
	key  func(cv *dump.CodeView) string // of its folder in a symbol store
	open func(r io.ReaderAt, size int64, file string) (matcher, error)
	// plain: servers have neither compressed files of the format nor pointers.
	plain bool
}

// matcher is opened debug information that can prove whose it is.
type matcher interface {
	Debug
	Matches(cv dump.CodeView) error
}

// debugFormats are tried in this order.
var debugFormats = []debugFormat{
	{
		name: func(cv *dump.CodeView) string { return dump.BaseName(cv.PDB) },
		key:  func(cv *dump.CodeView) string { return PDBKey(*cv) },
		open: openPDB,
	},
	{
		name: func(cv *dump.CodeView) string { return symName(dump.BaseName(cv.PDB)) },
		key:  (*dump.CodeView).DebugID,
		open: openSym, plain: true,
	},
}

// FindDebug returns the debug information that a module's debug identity names,
// and the path of its file: the PDB of that GUID and age, else the Breakpad file
// of that id. The folder of the module's image file comes first, when that is not
// "". Of the path the dump records for the PDB only the base name counts. Files are
// found by their key in the path's stores and servers, and by name in its plain
// directories, flat or below a folder named by the key.
func (s *Store) FindDebug(cv dump.CodeView, image string) (Debug, string, DebugState) {
	f := s.findDebug(cv, image)
	return f.debug, f.file, f.state
}

// found is the outcome of a search for debug information.
type found struct {
	opened
	file    string
	state   DebugState
	queries []*query
}

func (s *Store) findDebug(cv dump.CodeView, image string) found {
	if cv.PDB == "" || cv.DebugID() == "" {
		return found{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rememberDebug(cv, image, func() found { return s.lookDebug(cv, image) })
}

// lookDebug does the search.
func (s *Store) lookDebug(cv dump.CodeView, image string) found {
	d := &debugSearch{store: s, cv: cv, beside: besideImage(image)}
	var queries []*query
	for i := range debugFormats {
		queries = append(queries, d.query(&debugFormats[i]))
	}
	file := s.search(queries...)
	switch {
	case file != "":
		return found{d.opened, file, DebugLoaded, queries}
	case d.other == "":
		return found{state: DebugMissing, queries: queries}
	case s.allowMismatch:
		if o, err := s.openDebug(d.otherFormat, d.other, cv, false); err == nil {
			return found{o, d.other, DebugMismatch, queries}
		}
	}
	return found{state: DebugMismatch, queries: queries}
}

// debugSearch is the search for one module's debug information.
type debugSearch struct {
	store       *Store
	cv          dump.CodeView
	beside      string
	opened      opened
	other       string // the first file of another build
	otherFormat *debugFormat
}

func (d *debugSearch) query(format *debugFormat) *query {
	key := format.fileKey(&d.cv)
	return &query{
		keys: []FileKey{key}, names: []string{strings.ToLower(key.Name)}, beside: d.beside, id: key.ID, maxSize: maxDebugSize, plain: format.plain,
		use: func(file string) (err error) {
			d.opened, err = d.store.openDebug(format, file, d.cv, true)
			if e, ok := errors.AsType[*dump.Error](err); ok && e.Code == dump.Mismatch && d.other == "" {
				d.other, d.otherFormat = file, format
			}
			return err
		},
		verify: func(r io.ReaderAt, size int64, file string) error {
			m, err := format.open(r, size, file)
			if err != nil {
				return err
			}
			for _, e := range m.Damage() {
				if e.Code == dump.Truncated {
					return e
				}
			}
			return m.Matches(d.cv)
		},
	}
}

// fileKey is where a store files a module's debug information of the format.
func (f *debugFormat) fileKey(cv *dump.CodeView) FileKey {
	return FileKey{Dir: dump.BaseName(cv.PDB), ID: f.key(cv), Name: f.name(cv)}
}

// openDebug opens a file, and unless another build is wanted refuses that.
func (s *Store) openDebug(format *debugFormat, file string, cv dump.CodeView, same bool) (opened, error) {
	if err := s.failed[file]; err != nil {
		return opened{}, err
	}
	name := format.name(&cv)
	if o, ok := s.keptDebug(file, name); ok {
		if m, ok := o.debug.(matcher); ok && same {
			if err := m.Matches(cv); err != nil {
				return opened{}, err
			}
		}
		return o, nil
	}
	f, err := input.Open(file, input.Options{MaxSize: maxDebugSize, Want: func(member string) bool { return sameName(member, name) }})
	if err != nil {
		return opened{}, err
	}
	d, err := format.open(f, f.Size(), file)
	if err == nil && same {
		err = d.Matches(cv)
	}
	if err != nil {
		s.failed.keep(file, err)
		f.Close()
		return opened{}, err
	}
	s.keepOpen(file, f)
	return s.keepDebug(file, name, opened{d, func() (Debug, error) { return format.open(f, f.Size(), file) }}), nil
}

// PDBKey is the symbol-store key of a PDB: GUID without punctuation, then age; of
// a PDB 2.0 its signature, then age.
func PDBKey(cv dump.CodeView) string {
	age := strings.ToUpper(strconv.FormatUint(uint64(cv.Age), 16))
	if cv.Signature == "NB10" {
		return strings.ToUpper(cv.DebugID())
	}
	return strings.ReplaceAll(pdb.GUIDString(cv.GUID), "-", "") + age
}

// symName is the name of the Breakpad file for a PDB: app.pdb's is app.sym.
func symName(pdbName string) string {
	if ext := path.Ext(pdbName); strings.EqualFold(ext, ".pdb") {
		pdbName = strings.TrimSuffix(pdbName, ext)
	}
	return pdbName + ".sym"
}

// PDB is the debug information of a PDB.
type PDB struct{ *pdb.File }

func openPDB(r io.ReaderAt, size int64, file string) (matcher, error) {
	f, err := pdb.Open(r, size, file)
	if err != nil {
		return nil, err
	}
	return PDB{f}, nil
}

// Name implements Debug. A public symbol of which nothing tells how far it reaches
// counts only as far as an export would.
func (p PDB) Name(lookup, ip uint32) (Name, bool) {
	loc, ok := p.Lookup(lookup)
	if !ok || loc.Function == "" || loc.FunctionRVA > ip {
		return Name{}, false
	}
	if loc.Source == pdb.SourcePublic && !loc.SamePiece && lookup-loc.FunctionRVA >= exportReach {
		return Name{}, false
	}
	n := Name{Offset: uint64(ip - loc.FunctionRVA), Source: SourcePDB, File: loc.File, Line: loc.Line}
	if loc.Source == pdb.SourcePublic { // as the linker saw it
		n.Public = true
		n.Function, n.Full = linkerName(loc.Function, dump.ArchOfMachine(p.Info().Machine) == dump.X86)
	} else {
		n.Function = loc.Function
	}
	for _, in := range loc.Inlines {
		n.Inlines = append(n.Inlines, Inline{Function: in.Function, File: in.File, Line: in.Line})
	}
	return n, true
}

// Sym is the debug information of a Breakpad file.
type Sym struct{ *sym.File }

func openSym(r io.ReaderAt, size int64, file string) (matcher, error) {
	f, err := sym.Open(r, size, file)
	if err != nil {
		return nil, err
	}
	return Sym{f}, nil
}

// Name implements Debug. A public symbol counts only as far as an export would.
func (s Sym) Name(lookup, ip uint32) (Name, bool) {
	loc, ok := s.Lookup(lookup)
	if !ok || loc.Function == "" || loc.RVA > ip || loc.Public && lookup-loc.RVA >= exportReach {
		return Name{}, false
	}
	n := Name{Offset: uint64(ip - loc.RVA), Source: SourceSym, Public: loc.Public, File: loc.File, Line: loc.Line}
	n.Function, n.Full = sourceName(loc.Function)
	for _, in := range loc.Inlines {
		short, _ := sourceName(in.Function)
		n.Inlines = append(n.Inlines, Inline{Function: short, File: in.File, Line: in.Line})
	}
	return n, true
}
