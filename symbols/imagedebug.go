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
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.rememberInImage(path, func() foundInImage { return s.lookInImage(r, size, path) })
	return f.debug, f.file
}

// foundInImage is the debug information of an image and the path of its file.
type foundInImage struct {
	opened
	file   string
	inside bool // it is the image's own, whatever lies beside it
}

func (s *Store) lookInImage(r io.ReaderAt, size int64, path string) foundInImage {
	own, err := dwarf.Open(r, size, path)
	if err != nil {
		return foundInImage{}
	}
	inside := foundInImage{opened: openedDWARF(own, r, size, path), file: path}
	if own.HasDWARF() {
		inside.inside = true
		return inside
	}
	if linked := s.findLinked(own, path); linked.debug != nil {
		return linked
	}
	if own.HasSymbols() {
		return inside
	}
	return foundInImage{}
}

func openedDWARF(d *dwarf.File, r io.ReaderAt, size int64, path string) opened {
	return opened{DWARF{d}, func() (Debug, error) {
		d, err := dwarf.Open(r, size, path)
		if err != nil {
			return nil, err
		}
		return DWARF{d}, nil
	}}
}

// findLinked looks for the file that holds what was stripped off an image.
func (s *Store) findLinked(own *dwarf.File, image string) foundInImage {
	name, sum, ok := own.Link()
	if !ok || unsafeName(name) != "" {
		return foundInImage{}
	}
	var o opened
	q := &query{names: []string{strings.ToLower(name)}, beside: besideImage(image), use: func(file string) (err error) {
		o, err = s.openLinked(file, name, sum)
		return err
	}}
	if file := s.onDisk(q); file != "" {
		return foundInImage{opened: o, file: file}
	}
	if q.beside != "" {
		if file := s.inFolder(q, filepath.Join(q.beside, ".debug")); file != "" {
			return foundInImage{opened: o, file: file}
		}
	}
	return foundInImage{}
}

// openLinked opens a file of a checksum. To know that it is read whole, which is done
// once.
func (s *Store) openLinked(path, name string, sum uint32) (opened, error) {
	if err := s.failed[path]; err != nil {
		return opened{}, err
	}
	if known, ok := s.sums[path]; ok && known != sum {
		return opened{}, wrongSum(path)
	} else if ok {
		if o, open := s.keptDebug(path, linkedName(name)); open {
			return o, nil
		}
	}
	f, err := input.Open(path, input.Options{MaxSize: maxDebugSize, Want: func(member string) bool { return sameName(member, name) }})
	if err != nil {
		return opened{}, err
	}
	if err = s.proveSum(f, path, sum); err == nil {
		var d *dwarf.File
		if d, err = dwarf.Open(f, f.Size(), path); err == nil {
			s.keepOpen(path, f)
			return s.keepDebug(path, linkedName(name), openedDWARF(d, f, f.Size(), path)), nil
		}
	}
	s.failed.keep(path, err)
	f.Close()
	return opened{}, err
}

// linkedName tells a file that was split off an image from others of its name.
func linkedName(name string) string { return "linked " + name }

func (s *Store) proveSum(f *input.File, path string, sum uint32) error {
	known, ok := s.sums[path]
	if !ok {
		h := crc32.NewIEEE()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, f.Size())); err != nil {
			return err
		}
		known = h.Sum32()
		if len(s.sums) < maxFailures {
			s.sums[path] = known
		}
	}
	if known != sum {
		return wrongSum(path)
	}
	return nil
}

func wrongSum(path string) error {
	return &dump.Error{Code: dump.Mismatch, File: path, Offset: -1, Size: -1, Msg: "its checksum is not the one that the image records"}
}
