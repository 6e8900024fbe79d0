package symbols

import (
	"path"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/symbols/pdb"
)

// PDBState says what became of the search for a module's PDB.
type PDBState uint8

// PDB states.
const (
	PDBNotNeeded PDBState = iota // no frame asked for it, or the module names none
	PDBLoaded
	PDBMissing
	PDBMismatch // only PDBs of other builds were found
)

// FindPDB returns the PDB that a module's debug identity names, verified by
// GUID and age, and its path.
func (s *Store) FindPDB(cv dump.CodeView) (*pdb.File, string, PDBState) {
	if cv.Signature != "RSDS" || cv.PDB == "" {
		return nil, "", PDBNotNeeded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index()
	state := PDBMissing
	for _, file := range keyFirst(s.byName[strings.ToLower(dump.BaseName(cv.PDB))], PDBKey(cv)) {
		p, err := s.tryPDB(file, cv)
		if err == nil {
			return p, file, PDBLoaded
		}
		if e, ok := err.(*dump.Error); ok && e.Code == dump.Mismatch {
			state = PDBMismatch
		}
	}
	return nil, "", state
}

// PDBKey is the symbol-store key of a PDB: GUID without punctuation, then age.
func PDBKey(cv dump.CodeView) string {
	return strings.ReplaceAll(pdb.GUIDString(cv.GUID), "-", "") + strings.ToUpper(strconv.FormatUint(uint64(cv.Age), 16))
}

func (s *Store) tryPDB(file string, cv dump.CodeView) (*pdb.File, error) {
	base := path.Base(dump.BaseName(cv.PDB))
	f, err := input.Open(file, input.Options{Want: func(name string) bool { return strings.EqualFold(path.Base(name), base) }})
	if err != nil {
		return nil, err
	}
	p, err := pdb.Open(f, f.Size(), file)
	if err == nil {
		err = p.Matches(cv)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.open = append(s.open, f)
	return p, nil
}

// NameByPDB names an address by a PDB: both are RVAs as for NameOf. False means
// that the PDB does not name it.
func NameByPDB(p *pdb.File, lookup, ip uint32) (Name, bool) {
	loc, ok := p.Lookup(lookup)
	if !ok || loc.Function == "" || loc.FunctionRVA > ip {
		return Name{}, false
	}
	n := Name{Function: loc.Function, Offset: uint64(ip - loc.FunctionRVA), Source: SourcePDB, File: loc.File, Line: loc.Line}
	for _, in := range loc.Inlines {
		n.Inlines = append(n.Inlines, Inline{Function: in.Function, File: in.File, Line: in.Line})
	}
	return n, true
}
