package r2r

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Flags of a method's signature in the table of instances.
const (
	sigInstantiation = 0x04
	sigSlot          = 0x08
	sigMemberRef     = 0x10
	sigConstrained   = 0x20
	sigOwnerType     = 0x40
	sigUpdateContext = 0x80
)

// Element types that only native code's signatures have, from the public headers.
const (
	etVarZap         = 0x3b // a type variable by number
	etNativeValueZap = 0x3d
	etCanonZap       = 0x3e
	etModuleZap      = 0x3f // a module's number, then a type of it
)

const (
	maxSigDepth = 64
	maxSigSize  = 4096 // bytes
	usualSig    = 96
)

// readInstances reads the table of instantiations: a method's signature, then its entry
// point. Instances that cannot be read keep their place when their entry point is known.
func (r *Image) readInstances() error {
	t, ok := r.table(r.sections, secInstanceEntries, "instance entry points")
	if !ok {
		return nil
	}
	h, err := openHashtable(t)
	if err != nil {
		return err
	}
	failed := 0
	for n := 0; ; n++ {
		off, ok, err := h.next()
		if err != nil || !ok {
			return err
		}
		if n == maxInstances {
			return bad(t, 0, "has more than %d instances", maxInstances)
		}
		e, err := r.instance(t, off)
		if err != nil {
			r.index.note(err)
			if failed++; failed == maxFailed {
				return err
			}
			continue
		}
		r.index.entries = append(r.index.entries, e)
	}
}

// instance reads one instance. Nearly all signatures are short; a longer one is read again.
func (r *Image) instance(t table, off uint32) (entry, error) {
	e, err := r.instanceWithin(t, off, usualSig)
	if err != nil && dump.AsError(err).Code == dump.Truncated {
		e, err = r.instanceWithin(t, off, maxSigSize)
	}
	return e, err
}

func (r *Image) instanceWithin(t table, off uint32, size int64) (entry, error) {
	e := entry{instance: true}
	s := sig{c: t.at(off, size)}
	flags := s.number()
	if flags&sigUpdateContext != 0 {
		e.module = s.number()
	}
	if flags&sigOwnerType != 0 {
		s.typ(0)
		if s.owner != 0 {
			e.module = s.owner
		}
	}
	rid := s.number()
	if flags&sigInstantiation != 0 {
		s.types(s.number(), 0)
	}
	if flags&sigConstrained != 0 {
		s.typ(0)
	}
	if s.c.Err() != nil {
		return e, s.c.Err()
	}
	switch {
	case flags&sigSlot != 0: // of an array's method, which has no token
	case flags&sigMemberRef != 0:
		e.token = 0x0a000000 | rid&0xffffff
	default:
		e.token = 0x06000000 | rid&0xffffff
	}
	if len(r.components) > 0 { // whose numbers of modules are not known from measurement
		e.token = 0
	}
	var err error
	e.function, err = r.entryPoint(t, off+uint32(s.c.Offset()))
	return e, err
}

// sig walks over a signature.
type sig struct {
	c     *cursor.Cursor
	owner uint32 // module of the first type: the method's
	named bool
}

// number reads a compressed integer of ECMA-335 (II.23.2).
func (s *sig) number() uint32 {
	b := uint32(s.c.U8())
	switch {
	case b < 0x80:
		return b
	case b < 0xc0:
		return b&0x3f<<8 | uint32(s.c.U8())
	}
	hi := uint32(s.c.U8())
	mid := uint32(s.c.U8())
	return b&0x1f<<24 | hi<<16 | mid<<8 | uint32(s.c.U8())
}

// typ skips a type.
func (s *sig) typ(depth int) {
	if depth > maxSigDepth {
		s.c.Fail(dump.Limit, "signature is nested more than %d deep", maxSigDepth)
	}
	if s.c.Err() != nil {
		return
	}
	switch kind := s.c.U8(); kind {
	case 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x16, 0x18, 0x19, 0x1c, etCanonZap: // one byte
	case 0x11, 0x12: // class, value type
		s.number()
	case 0x13, 0x1e, etVarZap: // variables
		s.number()
	case 0x0f, 0x10, 0x1d, 0x45, etNativeValueZap: // pointer, reference, vector, pinned
		s.typ(depth + 1)
	case 0x1f, 0x20: // modifiers
		s.number()
		s.typ(depth + 1)
	case 0x14:
		s.array(depth + 1)
	case 0x15:
		s.typ(depth + 1)
		s.types(s.number(), depth+1)
	case 0x1b:
		s.function(depth + 1)
	case etModuleZap:
		module := s.number()
		if !s.named {
			s.owner, s.named = module, true
		}
		s.typ(depth + 1)
	default:
		s.c.Fail(dump.BadRecord, "element type %#x in a signature", kind)
	}
	s.named = true
}

func (s *sig) types(n uint32, depth int) {
	for ; n > 0 && s.c.Err() == nil; n-- {
		s.typ(depth)
	}
}

func (s *sig) array(depth int) {
	s.typ(depth)
	if s.number() == 0 { // rank
		return
	}
	for range 2 { // sizes, lower bounds
		for n := s.number(); n > 0 && s.c.Err() == nil; n-- {
			s.number()
		}
	}
}

func (s *sig) function(depth int) {
	if s.number()&0x10 != 0 { // generic
		s.number()
	}
	n := s.number()
	s.typ(depth)
	s.types(n, depth)
}

// module returns the assembly that a module's number stands for: 0 the image's own, then
// the references of its metadata, then those of the manifest.
func (r *Image) module(n uint32) (string, error) {
	if n == 0 {
		return "", nil
	}
	if r.own == nil {
		return "", dump.Errorf(dump.BadRecord, headerStream, "module %d: the image's metadata cannot be read", n)
	}
	refs := r.own.Rows(0x23000000)
	if n <= refs {
		a, err := r.own.AssemblyRef(n)
		return a.Name, err
	}
	return r.reference(n - refs - 1)
}
