package managed

import (
	"dumptriage/dump"
	"dumptriage/managed/metadata"
	"dumptriage/managed/r2r"
	"dumptriage/pdata"
)

// Ahead names the code of a ReadyToRun image in memory, by the image alone.
type Ahead struct {
	tables *r2r.Image
	base   uint64
	name   string // of the module
	md     map[int]*metadata.Metadata
	mvid   map[int]string
}

// OpenAhead reads the tables of an image that is loaded at a base. An image without
// such code gives an error of the code UnsupportedFormat.
func OpenAhead(im *pdata.Image, base uint64, name string) (*Ahead, error) {
	tables, err := r2r.Open(im)
	if err != nil {
		return nil, err
	}
	return &Ahead{tables: tables, base: base, name: name, md: map[int]*metadata.Metadata{}, mvid: map[int]string{}}, nil
}

// AheadBudget bounds what the tables of all ReadyToRun images of a process take. A forged
// dump may have thousands of images over the same bytes.
type AheadBudget struct{ used int }

// maxAhead is several times what all images of a .NET 10 program have together.
const maxAhead = 1 << 22

// Open is OpenAhead within the budget, which is used up by images that were opened.
func (b *AheadBudget) Open(im *pdata.Image, base uint64, name string) (*Ahead, error) {
	if b.used > maxAhead {
		return nil, dump.Errorf(dump.Limit, "ReadyToRun images", "have more than %d entry points in sum: %s and others are not looked into", maxAhead, name)
	}
	a, err := OpenAhead(im, base, name)
	if err == nil {
		b.used += a.tables.Weight()
	}
	return a, err
}

// Method names the method whose code is at an address, nil when the tables do not tell.
func (a *Ahead) Method(va uint64) *Method {
	if a == nil || va < a.base || va-a.base > 0xffffffff {
		return nil
	}
	found, ok, err := a.tables.Lookup(uint32(va - a.base))
	if !ok || err != nil {
		return nil
	}
	m := &Method{Kind: KindR2R, Source: SourceImage, Start: a.base + uint64(found.Start)}
	if found.Token == 0 || found.Assembly != "" {
		m.Note = "generic code of a method of another module"
		return m
	}
	if found.Shared {
		m.Note = "several methods have this code: it is named by the first"
	}
	m.Module = a.module(found.Component)
	md := a.metadata(found.Component)
	m.MVID = a.mvid[found.Component]
	if found.Token>>24 == methodDef>>24 {
		m.Token = found.Token
	}
	if md == nil {
		m.Note = "the metadata of the assembly is not in the image"
		return m
	}
	named, err := md.Method(found.Token)
	if err != nil {
		m.Note = dump.AsError(err).Detail()
	}
	m.take(&named)
	if named.Assembly != "" { // a MemberRef
		m.Module, m.MVID = named.Assembly, ""
	}
	return m
}

// module is the file name of an assembly that the image has the code of.
func (a *Ahead) module(component int) string {
	if all := a.tables.Components(); component > 0 && component <= len(all) {
		return all[component-1].Name
	}
	return a.name
}

// metadata opens the metadata of a component, once; nil when it is not there.
func (a *Ahead) metadata(component int) *metadata.Metadata {
	md, done := a.md[component]
	if done {
		return md
	}
	md, err := a.tables.Metadata(component)
	if err != nil {
		md = nil
	} else if id, err := md.MVID(); err == nil {
		a.mvid[component] = id.String()
	}
	a.md[component] = md
	return md
}
