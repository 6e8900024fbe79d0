package r2r

import (
	"fmt"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/chunk"
	"dumptriage/internal/cursor"
	"dumptriage/managed/metadata"
	"dumptriage/pdata"
)

// Sections of an image or of a component in it.
const (
	secCompiler         = 100
	secFunctions        = 102
	secMethodEntries    = 103
	secInstanceEntries  = 109
	secManifestMetadata = 112
	secComponents       = 115
	secOwner            = 116
	secManifestMVIDs    = 118
	secHotCold          = 120
)

const (
	headerStream = "ReadyToRun header"
	headerExport = "RTR_HEADER"
	signature    = 0x00525452 // "RTR"
	maxSections  = 256        // 25 kinds are known
	maxParts     = 1 << 12    // component assemblies; the framework has 300
	maxExports   = 1 << 10    // exports looked through for the header
)

// Image is a ReadyToRun image. It is safe for concurrent use.
type Image struct {
	im           *pdata.Image
	in           *chunk.Reader
	major, minor uint16
	flags        uint32
	sections     sections
	components   []Component

	wide     bool // RUNTIME_FUNCTION has an end: x64
	own      *metadata.Metadata
	manifest *metadata.Metadata

	indexOnce sync.Once
	index     index
}

type sections map[uint32]metadata.Directory

// Component is an assembly whose code a composite image has.
type Component struct {
	Name     string             // simple name; "" when the manifest cannot be read
	Header   metadata.Directory // its CLR header in the image; zeros when its IL is a file of its own
	MVID     metadata.GUID      // of the build that was compiled; zeros when unknown
	sections sections
}

// Open reads the ReadyToRun header of an image, of a file or mapped in memory. An image
// without one gives an error of the code UnsupportedFormat.
func Open(im *pdata.Image) (*Image, error) {
	size := int64(im.Identity().SizeOfImage)
	r := &Image{im: im, in: chunk.New(metadata.InImage(im, metadata.Directory{Size: uint32(size)}), size)}
	switch im.Identity().Machine {
	case 0x8664, 0x8664 ^ 0x7b79, 0x8664 ^ 0x4644, 0x8664 ^ 0xadc4, 0x8664 ^ 0x1993, 0x8664 ^ 0x1992: // on Windows, Linux, macOS, BSDs, SunOS
		r.wide = true
	}
	rva, err := r.findHeader()
	if err != nil {
		return nil, err
	}
	c := r.in.At(int64(rva), 8, headerStream)
	if sig := c.U32(); c.Err() == nil && sig != signature {
		return nil, dump.Errorf(dump.UnsupportedFormat, headerStream, "native code is not ReadyToRun (signature %#08x)", sig)
	}
	r.major, r.minor = c.U16(), c.U16()
	if c.Err() != nil {
		return nil, c.Err()
	}
	if r.flags, r.sections, err = r.readSections(rva + 8); err != nil {
		return nil, err
	}
	r.readManifest()
	return r, r.readComponents()
}

// findHeader returns where the header is: where the CLR header says, or in composite images
// at an export.
func (r *Image) findHeader() (uint32, error) {
	h, err := metadata.ReadCLRHeader(r.im)
	if err == nil && h.ManagedNative.RVA != 0 {
		return h.ManagedNative.RVA, nil
	}
	seen := 0
	for e, failed := range r.im.Exports() {
		if seen++; failed != nil || seen > maxExports {
			break
		}
		if e.Name == headerExport {
			return e.RVA, nil
		}
	}
	if err != nil && dump.AsError(err).Code != dump.UnsupportedFormat {
		return 0, err
	}
	return 0, dump.Errorf(dump.UnsupportedFormat, headerStream, "image has no ReadyToRun code")
}

// readSections reads a READYTORUN_CORE_HEADER.
func (r *Image) readSections(rva uint32) (flags uint32, s sections, err error) {
	c := r.in.At(int64(rva), 8, headerStream)
	flags = c.U32()
	n := c.U32()
	if n > maxSections {
		c.Fail(dump.Limit, "claims %d sections", n)
	}
	if c.Err() != nil {
		return 0, nil, c.Err()
	}
	c = r.in.At(int64(rva)+8, int64(n)*12, headerStream)
	s = sections{}
	for range n {
		kind := c.U32()
		d := metadata.Directory{RVA: c.U32(), Size: c.U32()}
		if _, twice := s[kind]; !twice && c.Err() == nil {
			s[kind] = d
		}
	}
	return flags, s, c.Err()
}

func (r *Image) table(s sections, kind uint32, name string) (table, bool) {
	d, ok := s[kind]
	return table{r.in, d.RVA, d.Size, "ReadyToRun " + name}, ok && d.RVA != 0 && d.Size != 0
}

// readManifest opens the image's own metadata and the manifest's. Neither is needed for
// tokens, so what is wrong with them is said where a name is asked for.
func (r *Image) readManifest() {
	r.own, _ = metadata.FindInImage(r.im)
	if d, ok := r.sections[secManifestMetadata]; ok {
		r.manifest, _ = metadata.Open(metadata.InImage(r.im, d), int64(d.Size))
	}
}

// readComponents reads the table of a composite image's assemblies, which is parallel to
// the manifest's references.
func (r *Image) readComponents() error {
	t, ok := r.table(r.sections, secComponents, "component assemblies")
	if !ok {
		return nil
	}
	n := t.size / 16
	if n > maxParts {
		return bad(t, 0, "%d component assemblies", n)
	}
	for i := range n {
		c := t.at(i*16, 16)
		part := Component{Header: metadata.Directory{RVA: c.U32(), Size: c.U32()}}
		core := metadata.Directory{RVA: c.U32(), Size: c.U32()}
		if c.Err() != nil {
			return c.Err()
		}
		part.Name, _ = r.reference(i + 1)
		part.MVID = r.mvid(i)
		if core.RVA != 0 {
			var err error
			if _, part.sections, err = r.readSections(core.RVA); err != nil {
				return err
			}
		}
		r.components = append(r.components, part)
	}
	return nil
}

// reference returns the simple name of a reference of the manifest.
func (r *Image) reference(rid uint32) (string, error) {
	if r.manifest == nil {
		return "", dump.Errorf(dump.BadRecord, headerStream, "image has no manifest metadata that can be read")
	}
	a, err := r.manifest.AssemblyRef(rid)
	return a.Name, err
}

func (r *Image) mvid(i uint32) (g metadata.GUID) {
	if t, ok := r.table(r.sections, secManifestMVIDs, "MVIDs"); ok {
		copy(g[:], t.at(i*16, 16).Bytes(16))
	}
	return g
}

// Version returns the version of the format, such as 16, 0.
func (r *Image) Version() (major, minor uint16) { return r.major, r.minor }

// String describes the image: "ReadyToRun 16.0".
func (r *Image) String() string { return fmt.Sprintf("ReadyToRun %d.%d", r.major, r.minor) }

// Components returns the assemblies of a composite image; none for one of its own.
func (r *Image) Components() []Component { return r.components }

// Compiler returns what the compiler calls itself, or "".
func (r *Image) Compiler() string {
	text, _ := r.text(secCompiler, "compiler")
	return text
}

// Owner returns the file name of the composite image that has this assembly's code; false
// when the code is here.
func (r *Image) Owner() (string, bool) { return r.text(secOwner, "owner") }

const maxText = 512 // bytes of a file name or of the compiler's

func (r *Image) text(kind uint32, name string) (string, bool) {
	t, ok := r.table(r.sections, kind, name)
	if !ok {
		return "", false
	}
	c := t.at(0, maxText)
	return cursor.CString(c.Bytes(min(c.Left(), maxText, int(t.size)))), c.Err() == nil
}

// Metadata returns the metadata that a Method's token is of: the image's own for component
// 0, else that of a component whose IL the composite image has.
func (r *Image) Metadata(component int) (*metadata.Metadata, error) {
	if component == 0 {
		return metadata.FindInImage(r.im)
	}
	if component < 0 || component > len(r.components) {
		return nil, dump.Errorf(dump.OutOfRange, headerStream, "image has no component %d", component)
	}
	part := r.components[component-1]
	if part.Header.RVA == 0 {
		return nil, dump.Errorf(dump.OutOfRange, headerStream, "the metadata of %s is in a file of its own", part.Name)
	}
	return metadata.FindAt(r.im, part.Header)
}
