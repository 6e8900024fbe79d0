package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/symbols"
)

// UseKernelSymbols reads a dump of a whole system by what the PDB of its kernel
// says, when the path leads to that of the very build: where the fields of the
// kernel's structures lie, and where its variables are. What was asked of the
// dump before stays as it was answered; it reports whether there is such a PDB.
func (d *Dump) UseKernelSymbols(path symbols.Path, opt symbols.StoreOptions) bool {
	if k, ok := d.Source.(*kdump.File); !ok || !k.Full() || len(path) == 0 {
		return false
	}
	store := symbols.NewPathStore(path, opt)
	defer store.Close()
	return d.useKernelSymbols(store)
}

// useKernelSymbols opens the dump anew when the store has the kernel's PDB.
func (d *Dump) useKernelSymbols(store *symbols.Store) bool {
	k, ok := d.Source.(*kdump.File)
	if !ok || !k.Full() || d.kernelSymbols {
		return false
	}
	nt := k.Kernel()
	if nt == nil {
		return false
	}
	debug, _, state := store.FindDebug(nt.CodeView, "")
	p, ok := debug.(symbols.PDB)
	if !ok || state != symbols.DebugLoaded { // those of another build would lead astray
		return false
	}
	find := func(again *dump.Module) kdump.Symbols {
		if again.CodeView != nt.CodeView {
			return nil
		}
		return &kernelSymbols{pdb: p, x86: d.System().Arch == dump.X86}
	}
	f, err := kdump.OpenWith(kernelReader(d.File), d.File.Size(), d.Path, kdump.Options{Symbols: find, Watch: d.watch, WatchNames: d.watchNames})
	if err != nil {
		return false
	}
	d.Source, d.kernelSymbols = f, true
	return true
}

// kernelSymbols is a PDB as kdump asks it.
type kernelSymbols struct {
	pdb     symbols.PDB
	x86     bool // C names have an underscore
	layouts map[string]*layout
	publics map[string]uint32
}

// layout is a structure by the names of its fields.
type layout struct {
	size   int
	fields map[string]layoutField
	bits   map[string]layoutBits
}

type layoutField struct {
	offset int
	of     string // its type
}

// layoutBits is a bit field, its lowest bit counted from the start of the structure.
type layoutBits struct{ first, width int }

// Size implements kdump.Symbols.
func (s *kernelSymbols) Size(structure string) (int, bool) {
	l := s.layout(structure)
	if l == nil {
		return 0, false
	}
	return l.size, true
}

// Field implements kdump.Symbols.
func (s *kernelSymbols) Field(structure, field string) (int, bool) {
	at := 0
	for name := range strings.SplitSeq(field, ".") {
		l := s.layout(structure)
		if l == nil {
			return 0, false
		}
		f, ok := l.fields[name]
		if !ok {
			return 0, false
		}
		at, structure = at+f.offset, f.of
	}
	return at, true
}

// Bits implements kdump.Symbols.
func (s *kernelSymbols) Bits(structure, field string) (first, width int, ok bool) {
	l := s.layout(structure)
	if l == nil {
		return 0, 0, false
	}
	b, ok := l.bits[field]
	return b.first, b.width, ok
}

// layout reads a structure once; nil when its definition is not in the PDB.
func (s *kernelSymbols) layout(name string) *layout {
	if l, ok := s.layouts[name]; ok {
		return l
	}
	if s.layouts == nil {
		s.layouts = map[string]*layout{}
	}
	s.layouts[name] = nil
	read, err := s.pdb.Struct(name)
	const largest = 1 << 20
	if err != nil || read.Size == 0 || read.Size > largest {
		return nil
	}
	l := &layout{size: int(read.Size), fields: map[string]layoutField{}, bits: map[string]layoutBits{}}
	for _, f := range read.Fields {
		switch {
		case f.Name == "" || f.Offset >= read.Size:
		case f.Bits != 0:
			l.bits[f.Name] = layoutBits{8*int(f.Offset) + int(f.BitStart), int(f.Bits)}
		default:
			l.fields[f.Name] = layoutField{int(f.Offset), f.Type}
		}
	}
	s.layouts[name] = l
	return l
}

// Symbol implements kdump.Symbols.
func (s *kernelSymbols) Symbol(name string) (uint32, bool) {
	if s.publics == nil {
		s.publics = map[string]uint32{}
		for p := range s.pdb.Publics() {
			s.publics[p.Name] = p.RVA
		}
	}
	if s.x86 {
		name = "_" + name
	}
	rva, ok := s.publics[name]
	return rva, ok
}
