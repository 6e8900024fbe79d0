package symbols

import (
	"errors"
	"maps"
	"slices"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// memory is what a store that remembers has found. It is as large as what the
// store has open, and as the number of modules that were searched in vain.
type memory struct {
	images  map[imageKey]foundImage
	debug   map[debugKey]found
	inImage map[string]foundInImage // by the path of the image
	// What is open, whatever it was the answer to.
	openImages map[string]*pdata.Image // by path
	openDebug  map[openKey]opened
}

func newMemory() *memory {
	return &memory{images: map[imageKey]foundImage{}, debug: map[debugKey]found{}, inImage: map[string]foundInImage{},
		openImages: map[string]*pdata.Image{}, openDebug: map[openKey]opened{}}
}

// openKey is an open file, and the name that was looked for in it if it is an archive.
type openKey struct{ path, name string }

// LookBeside makes a store that remembers look into the folders that other dumps lie in,
// the flat ones of a path, and no more into those before. What may have another answer now
// is looked for anew; what is open stays open, and what is known of files and of the other
// places is not read again.
func (s *Store) LookBeside(path Path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.path = slices.Concat(path.only(isFlat), s.path.only(hasTree))
	if s.memory == nil {
		return
	}
	s.memory.images, s.memory.debug = map[imageKey]foundImage{}, map[debugKey]found{}
	maps.DeleteFunc(s.memory.inImage, func(_ string, f foundInImage) bool { return !f.inside })
}

// keptDebug is debug information that is open already.
func (s *Store) keptDebug(path, name string) (opened, bool) {
	if s.memory == nil {
		return opened{}, false
	}
	o, ok := s.memory.openDebug[openKey{path, name}]
	if !ok {
		return o, false
	}
	return o.renewed(), true
}

func (s *Store) keepDebug(path, name string, o opened) opened {
	if s.memory != nil {
		s.memory.openDebug[openKey{path, name}] = o
	}
	return o
}

type imageKey struct {
	name            string
	size            uint64
	stamp, checkSum uint32
}

type debugKey struct {
	cv    dump.CodeView
	image string
}

// rememberImage makes the store answer a question that it was asked before without
// looking again. What was not there then is not found later either.
func (s *Store) rememberImage(m *dump.Module, look func() foundImage) foundImage {
	if s.memory == nil {
		return look()
	}
	key := imageKey{m.Path, m.Size, m.TimeDateStamp, m.CheckSum}
	f, ok := s.memory.images[key]
	if !ok {
		f = look()
		s.memory.images[key] = f
	}
	if f.missing != nil { // the caller's to change
		miss := *f.missing
		miss.Module = m
		f.missing = &miss
	}
	return f
}

// rememberDebug is the same for debug information.
func (s *Store) rememberDebug(cv dump.CodeView, image string, look func() found) found {
	if s.memory == nil {
		return look()
	}
	key := debugKey{cv, image}
	f, ok := s.memory.debug[key]
	if !ok {
		f = look()
	}
	f.opened = f.renewed()
	s.memory.debug[key] = f
	return f
}

// rememberInImage is the same for the debug information of an image.
func (s *Store) rememberInImage(image string, look func() foundInImage) foundInImage {
	if s.memory == nil {
		return look()
	}
	f, ok := s.memory.inImage[image]
	if !ok {
		f = look()
	}
	f.opened = f.renewed()
	s.memory.inImage[image] = f
	return f
}

// opened is debug information, and how it is read anew from the file that is open.
type opened struct {
	debug Debug
	again func() (Debug, error)
}

// renewed returns it for another dump. Such as turned out damaged is read anew, out of
// the file that is open: what one dump met of its damage is not told to the next one,
// so that an answer does not depend on the dumps before.
func (o opened) renewed() opened {
	if o.debug == nil {
		return o
	}
	if b, ok := o.debug.(interface{ Renew() }); ok {
		b.Renew()
	}
	if d, ok := o.debug.(interface{ Damage() []*dump.Error }); ok && len(d.Damage()) > 0 {
		if fresh, err := o.again(); err == nil {
			o.debug = fresh
		}
	}
	return o
}

// maxFailures bounds the files of which it is remembered that they cannot be read.
const maxFailures = 4096

// failures are files that cannot be read, by path, and why: many modules of many dumps
// may come to one.
type failures map[string]error

// keep remembers why a file cannot be read. That it is another one than was wanted is
// no failure.
func (f failures) keep(path string, err error) {
	if e, ok := errors.AsType[*dump.Error](err); ok && e.Code != dump.Mismatch && len(f) < maxFailures {
		f[path] = err
	}
}
