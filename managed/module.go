package managed

import (
	"errors"
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/managed/metadata"
	"dumptriage/pdata"
)

// Module is a module of the runtime.
type Module struct {
	Name string // file name
	MVID string
	Base uint64 // of its image in memory
	Size uint64
	Flat bool // it lies in memory as in its file

	md    *metadata.Metadata // nil when it is not in the dump
	im    *pdata.Image
	ahead *Ahead // of im, nil when it has none or was not asked for
	asked bool
	err   error
}

// A process has some hundred assemblies with less than 100 MB of metadata in all. A
// forged one may have a module of its own for every frame, all over the same bytes.
const (
	maxModules       = 1 << 12 // that are looked into
	maxMetadataBytes = 1 << 30 // of all that are opened
)

const (
	maxPath      = 512 // characters
	layoutMapped = 1   // PEImageLayout.Flags
)

// module returns a Module of the runtime, read once. It is never nil.
func (r *Runtime) module(va uint64) (*Module, error) {
	if m := r.modules[va]; m != nil {
		return m, m.err
	}
	m := &Module{}
	if len(r.modules) >= maxModules || r.opened > maxMetadataBytes {
		r.crowded = dump.Errorf(dump.Limit, "modules", "the .NET runtime has more modules than a sound process (%d with %d bytes of metadata were opened): what others have is unknown", len(r.modules), r.opened)
		m.err = r.crowded
		return m, m.err
	}
	m.err = r.readModule(m, va)
	if m.md != nil {
		r.opened += m.md.Size()
	}
	r.modules[va] = m
	return m, m.err
}

func (r *Runtime) readModule(m *Module, va uint64) error {
	a := r.access()
	m.Name = r.path(a, va, "FileName")
	if m.Name == "" {
		m.Name = r.path(a, va, "Path")
	}
	a.err = nil // a name is not needed
	if size, data, ok := r.emitted(a, va); ok {
		md, err := metadata.Open(metadata.Memory(r.memory(), data, int64(size)), int64(size))
		return m.use(md, err)
	}
	a.err = nil
	assembly := a.ptr(va, "Module", "PEAssembly")
	image := a.ptr(assembly, "PEAssembly", "PEImage")
	loaded := a.ptr(image, "PEImage", "LoadedImageLayout")
	m.Base, m.Size = a.ptr(loaded, "PEImageLayout", "Base"), uint64(a.u32(loaded, "PEImageLayout", "Size"))
	flags := a.u32(loaded, "PEImageLayout", "Flags")
	if a.err != nil {
		return a.err
	}
	m.Flat = flags&layoutMapped == 0
	return r.openImage(m)
}

// openImage opens the metadata of a module's image, from memory, else from its file.
func (r *Runtime) openImage(m *Module) error {
	name := or(m.Name, fmt.Sprintf("the image at %#x", m.Base))
	var err error
	if m.Flat {
		m.im, err = pdata.OpenFile(metadata.Memory(r.memory(), m.Base, int64(m.Size)), int64(m.Size), name)
	} else {
		m.im, err = pdata.OpenMapped(r.memory(), m.Base, name)
	}
	if err == nil {
		var md *metadata.Metadata
		md, err = metadata.FindInImage(m.im)
		if err = m.use(md, err); err == nil {
			return nil
		}
	}
	if r.images != nil && !m.Flat {
		if im := r.images(m.Base); im != nil && im.PE != nil && im.File {
			md, ferr := metadata.FindInImage(im.PE)
			if m.use(md, ferr) == nil {
				m.im = im.PE
				return nil
			}
			err = errors.Join(err, ferr)
		}
	}
	return err
}

// use takes the metadata, and the name that it gives the module.
func (m *Module) use(md *metadata.Metadata, err error) error {
	if err != nil {
		return err
	}
	m.md = md
	if m.Name == "" {
		m.Name, _ = md.Module()
	}
	if id, err := md.MVID(); err == nil {
		m.MVID = id.String()
	}
	return nil
}

// emitted finds the metadata of a module that was made at run time
// (Reflection.Emit).
func (r *Runtime) emitted(a *access, va uint64) (size uint32, data uint64, ok bool) {
	if !r.l.has("Module", "DynamicMetadata") {
		return 0, 0, false
	}
	block := a.ptr(va, "Module", "DynamicMetadata")
	if block == 0 || a.err != nil {
		return 0, 0, false
	}
	size = a.u32(block, "DynamicMetadata", "Size")
	data = a.at(block, "DynamicMetadata", "Data")
	return size, data, a.err == nil && size > 0
}

// path reads a field that points to a path in UTF-16 and returns the file's name, ""
// when there is none. Whoever watches is told of the text alone, and which part of it
// are folders.
func (r *Runtime) path(a *access, va uint64, field string) string {
	p := a.ptr(va, "Module", field)
	if p == 0 || a.err != nil {
		return ""
	}
	b := make([]byte, 2*maxPath)
	mem := r.memory()
	w := dump.WatcherOf(mem)
	if w == nil {
		n, _ := mem.ReadAt(b, p)
		return dump.BaseName(cursor.UTF16(b[:n&^1]))
	}
	n, _ := w.ReadAhead(b, p)
	b = b[:n&^1]
	end, folders := 0, 0
	for ; end < len(b) && (b[end] != 0 || b[end+1] != 0); end += 2 {
		if b[end+1] == 0 && (b[end] == '\\' || b[end] == '/') {
			folders = end
		}
	}
	w.Used(p, min(len(b), end+2))
	if pw, ok := w.(dump.PathWatcher); ok {
		pw.Folders(p, folders)
	}
	return dump.BaseName(cursor.UTF16(b))
}

// aheadOfTime returns the tables of the code that was compiled ahead of time.
func (m *Module) aheadOfTime(budget *AheadBudget) (*Ahead, error) {
	if m.asked || m.im == nil {
		return m.ahead, nil
	}
	m.asked = true
	var err error
	m.ahead, err = budget.Open(m.im, m.Base, m.Name)
	return m.ahead, err
}

// ImageOf returns the image of code that was compiled ahead of time and its base, nil
// when it is not mapped as it was linked.
func (r *Runtime) ImageOf(c Code) (*pdata.Image, uint64) {
	mod, err := r.module(c.Module)
	if err != nil || mod.Flat || mod.Base != c.Base {
		return nil, 0
	}
	return mod.im, mod.Base
}
