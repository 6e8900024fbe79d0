package symbols

import (
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/pdata"
	"dumptriage/symbols/dwarf"
)

// unnamed is what an inlined function is called whose name is not known, for its
// line may be.
const unnamed = "??"

// DWARF is the debug information, or the symbol table, inside an image.
type DWARF struct{ *dwarf.File }

// Name implements Debug.
func (d DWARF) Name(lookup, ip uint32) (Name, bool) {
	loc, ok := d.Lookup(lookup)
	if !ok || loc.Function == "" || loc.RVA > ip || loc.Public && lookup-loc.RVA >= exportReach {
		return Name{}, false
	}
	n := Name{Offset: uint64(ip - loc.RVA), Source: SourceDWARF, File: loc.File, Line: loc.Line}
	if loc.Public {
		n.Source, n.Public = SourceCOFF, true
		n.Function, n.Full = linkerName(loc.Function, d.X86())
	} else {
		n.Function, n.Full = sourceName(loc.Function)
	}
	for _, in := range loc.Inlines {
		short, _ := sourceName(in.Function)
		if short == "" {
			short = unnamed
		}
		n.Inlines = append(n.Inlines, Inline{Function: short, File: in.File, Line: in.Line})
	}
	return n, true
}

// FindImageDebug returns the debug information inside an image file, which needs
// no proof, or in the file that its .gnu_debuglink names: beside it, in .debug
// below that, beside the dump, or in a plain directory of the path, proved by the
// checksum. The path of the file comes with it. Nil means that there is none: the
// image has neither DWARF nor a symbol table, or was read from memory.
func (s *Store) FindImageDebug(im *pdata.Image, path string) (Debug, string) {
	r, size, ok := im.File()
	if !ok {
		return nil, ""
	}
	own, err := dwarf.Open(r, size, path)
	if err != nil {
		return nil, ""
	}
	if own.HasDWARF() {
		return DWARF{own}, path
	}
	if d, file := s.findLinked(own, path); d != nil {
		return d, file
	}
	if own.HasSymbols() {
		return DWARF{own}, path
	}
	return nil, ""
}

// findLinked looks for the file that holds what was stripped off an image.
func (s *Store) findLinked(own *dwarf.File, image string) (Debug, string) {
	name, sum, ok := own.Link()
	if !ok || unsafeName(name) != "" {
		return nil, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var d Debug
	q := &query{names: []string{strings.ToLower(name)}, beside: besideImage(image), use: func(file string) (err error) {
		d, err = s.openLinked(file, name, sum)
		return err
	}}
	if file := s.onDisk(q); file != "" {
		return d, file
	}
	if q.beside != "" {
		if file := s.inFolder(q, filepath.Join(q.beside, ".debug")); file != "" {
			return d, file
		}
	}
	return nil, ""
}

func (s *Store) openLinked(path, name string, sum uint32) (Debug, error) {
	f, err := input.Open(path, input.Options{MaxSize: maxDebugSize, Want: func(member string) bool { return sameName(member, name) }})
	if err != nil {
		return nil, err
	}
	h := crc32.NewIEEE()
	_, err = io.Copy(h, io.NewSectionReader(f, 0, f.Size()))
	if err == nil && h.Sum32() != sum {
		err = &dump.Error{Code: dump.Mismatch, File: path, Offset: -1, Size: -1, Msg: "its checksum is not the one that the image records"}
	}
	var d *dwarf.File
	if err == nil {
		d, err = dwarf.Open(f, f.Size(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.open = append(s.open, f)
	return DWARF{d}, nil
}
