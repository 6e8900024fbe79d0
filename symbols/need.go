package symbols

import (
	"dumptriage/dump"
	"dumptriage/pdata"
)

// NeedKind is what a Need is for. Its text is part of the JSON contract.
type NeedKind string

// Kinds of needs.
const (
	NeedImage NeedKind = "image"
	NeedDebug NeedKind = "symbols"
)

// Need is a file that a module calls for, and whether it was found.
type Need struct {
	Module   *dump.Module
	Kind     NeedKind
	Key      FileKey // of the image, or of the PDB; ID is "" when the dump does not tell
	File     string  // where it was found, "" when missing
	InDump   bool    // an image whose unwind data the dump's memory holds
	InImage  bool    // symbols that are DWARF inside the image; File is the image's path
	Mismatch bool    // only files of other builds were found
	Attempts []Attempt
	Reason   string // why a candidate was refused, "" when there was none
}

// Missing reports whether a need is not met.
func (n *Need) Missing() bool { return n.File == "" && !n.InDump || n.Mismatch }

// Needs looks for a module's image and its debug information. mapped is the image
// in the dump's memory, nil when there is none that serves; it is then not looked
// for elsewhere. Where a PDB or Breakpad file is missing, DWARF of the image takes its
// place. A module of which no debug identity is known, and whose image has no DWARF,
// needs no symbols.
func (s *Store) Needs(m *dump.Module, mapped *pdata.Image) []Need {
	image := Need{Module: m, Kind: NeedImage, Key: FileKey{Dir: m.Name(), ID: Key(m), Name: m.Name()}}
	im := mapped
	if image.InDump = im != nil; !image.InDump {
		im = s.needImage(m, &image)
	}
	needs := []Need{image}
	cv := m.CodeView
	if cv.Signature == "" && im != nil {
		cv = im.CodeView()
	}
	own, ok := s.needDWARF(m, im, image.File)
	if cv.PDB == "" || cv.DebugID() == "" {
		if ok {
			needs = append(needs, own)
		}
		return needs
	}
	f := s.findDebug(cv, image.File)
	if f.state != DebugLoaded && ok {
		own.Key = debugFormats[0].fileKey(&cv)
		return append(needs, own)
	}
	n := Need{Module: m, Kind: NeedDebug, Key: debugFormats[0].fileKey(&cv), File: f.file, Mismatch: f.state == DebugMismatch}
	for _, q := range f.queries {
		n.Attempts = append(n.Attempts, q.attempts...)
		if n.Reason == "" && n.Missing() {
			n.Reason = q.reason
		}
	}
	return append(needs, n)
}

// needDWARF returns the need that DWARF inside an image, or in the file that was split
// off it, meets. A mere symbol table does not make up for missing symbols. Memory often
// lacks the sections, so that the file is looked for.
func (s *Store) needDWARF(m *dump.Module, im *pdata.Image, path string) (Need, bool) {
	if path == "" && im != nil && im.HasSymbolTable() {
		im, path, _ = s.Find(m)
	}
	if im == nil || path == "" {
		return Need{}, false
	}
	d, file := s.FindImageDebug(im, path)
	if own, ok := d.(DWARF); !ok || !own.HasDWARF() {
		return Need{}, false
	}
	return Need{Module: m, Kind: NeedDebug, Key: FileKey{Dir: m.Name(), Name: m.Name()}, File: file, InImage: file == path}, true
}

func (s *Store) needImage(m *dump.Module, n *Need) *pdata.Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	var im *pdata.Image
	q := s.imageQuery(m, &im)
	n.File = s.search(q)
	n.Attempts = q.attempts
	if n.Missing() {
		n.Reason = q.reason
	}
	return im
}
