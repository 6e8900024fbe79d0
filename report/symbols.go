package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/triage"
)

// SymbolFileJSON is a file that a module calls for.
type SymbolFileJSON struct {
	Module  string   `json:"module"`
	Kind    string   `json:"kind" jsonschema:"enum=image,enum=symbols"`
	Name    string   `json:"name"`
	Key     string   `json:"key,omitempty" jsonschema_description:"folder of a symbol store"`
	URLPath string   `json:"url_path,omitempty" jsonschema_description:"below a symbol server's address; absent when the name is not one that may be asked for"`
	State   string   `json:"state" jsonschema:"enum=found,enum=in_dump,enum=in_image,enum=missing,enum=mismatch"`
	Path    string   `json:"path,omitempty" jsonschema_description:"where it was found"`
	Tried   []string `json:"tried,omitempty" jsonschema_description:"places, in the order they were tried, with what came of it"`
	Reason  string   `json:"reason,omitempty" jsonschema_description:"why a file was refused"`
}

// StructureJSON is the layout of a structure of a PDB.
type StructureJSON struct {
	Name   string      `json:"name"`
	Kind   string      `json:"kind"`
	Size   uint64      `json:"size"`
	Fields []FieldJSON `json:"fields"`
}

// FieldJSON is a member of a structure.
type FieldJSON struct {
	Name     string `json:"name,omitempty"`
	Offset   uint64 `json:"offset"`
	Type     string `json:"type"`
	Base     bool   `json:"base,omitempty" jsonschema_description:"a base class"`
	Bits     *uint8 `json:"bits,omitempty" jsonschema_description:"width of a bit field"`
	BitStart *uint8 `json:"bit_start,omitempty"`
}

func needState(n *symbols.Need) string {
	switch {
	case n.InDump:
		return "in_dump"
	case n.Mismatch:
		return "mismatch"
	case n.InImage:
		return "in_image"
	case n.File != "":
		return "found"
	}
	return "missing"
}

func symbolsJSON(needs []symbols.Need) []SymbolFileJSON {
	out := make([]SymbolFileJSON, 0, len(needs))
	for i := range needs {
		n := &needs[i]
		j := SymbolFileJSON{Module: n.Module.Name(), Kind: string(n.Kind), Name: n.Key.Name, Key: n.Key.ID, State: needState(n), Path: n.File, Reason: n.Reason}
		if n.Key.Check() == nil {
			j.URLPath = n.Key.URLPath()
		}
		for _, a := range n.Attempts {
			if a.Path != "" {
				a.Place = a.Path
			}
			if text := a.String(); !slices.Contains(j.Tried, text) {
				j.Tried = append(j.Tried, text)
			}
		}
		out = append(out, j)
	}
	return out
}

func structureJSON(s *pdb.Struct) *StructureJSON {
	if s == nil {
		return nil
	}
	j := &StructureJSON{Name: s.Name, Kind: s.Kind, Size: s.Size, Fields: []FieldJSON{}}
	for i := range s.Fields {
		f := &s.Fields[i]
		field := FieldJSON{Name: f.Name, Offset: f.Offset, Type: f.Type, Base: f.Base}
		if f.Bits != 0 {
			field.Bits, field.BitStart = &f.Bits, &f.BitStart
		}
		j.Fields = append(j.Fields, field)
	}
	return j
}

// symbolTable prints one row for each file, and then what was refused.
func (t *text) symbolTable(needs []symbols.Need) {
	found := 0
	t.table([]string{"module", "kind", "state", "url path", "found at"}, func(add func(...string)) {
		for i := range needs {
			n := &needs[i]
			if !n.Missing() {
				found++
			}
			path := clean(n.Key.Name)
			if n.Key.Check() == nil {
				path = clean(n.Key.URLPath())
			}
			add(clean(moduleAlias(n.Module)), string(n.Kind), needState(n), path, foundAt(n))
		}
	})
	t.line("", "%s needed, %d found, %d missing", plural(len(needs), "file"), found, len(needs)-found)
	for i := range needs {
		if n := &needs[i]; n.Reason != "" {
			t.line("", "  %s: %s", clean(n.Key.Name), clean(n.Reason))
		}
	}
	t.places(needs)
}

// howToFetch says how to get what is missing, and what to do with what was fetched.
func howToFetch(l *List) []string {
	if !slices.ContainsFunc(l.Symbols, func(n symbols.Need) bool { return n.Missing() }) || l.Fetch {
		return nil
	}
	const step = "get what is missing: dumptriage symbols fetch %s --server URL --to DIR, and give --symbols DIR then"
	return []string{stepText(&triage.Incident{Inputs: l.Inputs}, step, nil)}
}

// foundAt is where a need was met.
func foundAt(n *symbols.Need) string {
	if n.InImage {
		return "inside the image"
	}
	return clean(n.File)
}

// places names, once each, where files were looked for in vain.
func (t *text) places(needs []symbols.Need) {
	var all []string
	for i := range needs {
		for _, a := range needs[i].Attempts {
			a.Result = strings.TrimPrefix(a.Result, "not asked again: ") // it was for another file
			if text := a.String(); needs[i].Missing() && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	for _, place := range all {
		t.line("", "Tried: %s", clean(place))
	}
}

// structure prints a layout as WinDbg's dt does.
func (t *text) structure(s *pdb.Struct) {
	t.line("", "%s %s, %#x bytes", s.Kind, clean(s.Name), s.Size)
	for i := range s.Fields {
		f := &s.Fields[i]
		name, typ := f.Name, f.Type
		if f.Base {
			name = "(base)"
		}
		if f.Bits != 0 {
			typ += fmt.Sprintf(" : Pos %d, %s", f.BitStart, plural(int(f.Bits), "Bit"))
		}
		t.line("", "   +0x%03x %-20s : %s", f.Offset, clean(name), clean(typ))
	}
}

// ManifestText writes a line "name,key,1" for each file that is missing, once, as
// symchk's manifests have it. A name with a comma cannot be told in one.
func ManifestText(w io.Writer, l *List) error {
	b := bufio.NewWriter(w)
	written := map[symbols.FileKey]bool{}
	for i := range l.Symbols {
		n := &l.Symbols[i]
		if !n.Missing() || n.Key.Check() != nil || written[n.Key] || strings.Contains(n.Key.Name, ",") {
			continue
		}
		written[n.Key] = true
		fmt.Fprintf(b, "%s,%s,1\n", n.Key.Name, n.Key.ID)
	}
	return b.Flush()
}
