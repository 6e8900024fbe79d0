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
}

// DebugState says what became of the search for a module's debug information.
type DebugState uint8

// States of debug information.
const (
	DebugNotNeeded DebugState = iota // no frame asked for it, or the module names none
	DebugLoaded
	DebugMissing
	DebugMismatch // only files of other builds were found
)

// debugFormat is a kind of file that debug information is found in.
type debugFormat struct {
	name func(cv *dump.CodeView) string // of the file
	key  func(cv *dump.CodeView) string // of its folder in a symbol store
	open func(r io.ReaderAt, size int64, file string) (matcher, error)
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
		open: openSym,
	},
}

// FindDebug returns the debug information that a module's debug identity names,
// and the path of its file: the PDB of that GUID and age, else the Breakpad file
// of that id. Files are found by name in the store's directories, flat or below a
// folder named by the key.
func (s *Store) FindDebug(cv dump.CodeView) (Debug, string, DebugState) {
	if cv.PDB == "" || cv.DebugID() == "" {
		return nil, "", DebugNotNeeded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index()
	state := DebugMissing
	for i := range debugFormats {
		format := &debugFormats[i]
		name := format.name(&cv)
		for _, file := range keyFirst(s.byName[strings.ToLower(name)], format.key(&cv)) {
			d, err := s.tryDebug(format, file, name, cv)
			if err == nil {
				return d, file, DebugLoaded
			}
			if e, ok := errors.AsType[*dump.Error](err); ok && e.Code == dump.Mismatch {
				state = DebugMismatch
			}
		}
	}
	return nil, "", state
}

func (s *Store) tryDebug(format *debugFormat, file, name string, cv dump.CodeView) (Debug, error) {
	f, err := input.Open(file, input.Options{Want: func(member string) bool { return strings.EqualFold(path.Base(member), name) }})
	if err != nil {
		return nil, err
	}
	d, err := format.open(f, f.Size(), file)
	if err == nil {
		err = d.Matches(cv)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.open = append(s.open, f)
	return d, nil
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

// Name implements Debug.
func (p PDB) Name(lookup, ip uint32) (Name, bool) {
	loc, ok := p.Lookup(lookup)
	if !ok || loc.Function == "" || loc.FunctionRVA > ip {
		return Name{}, false
	}
	n := Name{Offset: uint64(ip - loc.FunctionRVA), Source: SourcePDB, File: loc.File, Line: loc.Line}
	if loc.Source == pdb.SourcePublic { // as the linker saw it
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
	n := Name{Offset: uint64(ip - loc.RVA), Source: SourceSym, File: loc.File, Line: loc.Line}
	n.Function, n.Full = sourceName(loc.Function)
	for _, in := range loc.Inlines {
		short, _ := sourceName(in.Function)
		n.Inlines = append(n.Inlines, Inline{Function: short, File: in.File, Line: in.Line})
	}
	return n, true
}
