package pdata

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	exportStream  = "export directory"
	exportDirSize = 40
	maxFunctions  = 1 << 16 // ordinals of names are 16 bits wide
	maxNames      = 1 << 17
	maxNameLen    = 4096     // MSVC cuts decorated names there
	maxAliases    = 4096     // names of one address that are compared
	maxNameBytes  = 32 << 20 // of a listing: names may share bytes in a hostile image
)

// Symbol is an exported symbol.
type Symbol struct {
	Name string // "Ordinal7" when the image exports it by number alone
	RVA  uint32
}

// Export is one line of an image's export table.
type Export struct {
	Name      string // "" when exported by ordinal alone
	Ordinal   uint32
	RVA       uint32 // 0 for a forwarder
	Forwarder string // "NTDLL.RtlAllocateHeap"; "" for code and data
}

// exportRef is an export whose name is still in the image: names are read when
// they are asked for, so that the index stays within the size of the tables.
type exportRef struct {
	rva     uint32
	nameRVA uint32 // 0 none
	index   uint32 // into the address table
}

// exportIndex is a read export directory.
type exportIndex struct {
	err  error // why it is missing or not complete
	base uint32
	all  []exportRef // by name as the table has them, then those without a name
	code []exportRef // functions in executable sections, by address
	// best holds, at the first of the exports of an address, 1 + which of them
	// has the preferred name, once that is known: aliases are compared once.
	best []atomic.Uint32
	// unnamedKnown says that the name tables are complete, so that a function
	// without a name really has none.
	unnamedKnown bool
}

func (im *Image) exportIndex() *exportIndex {
	im.exportsOnce.Do(func() {
		if im.h.dirs[dirExport].rva != 0 {
			im.readExports()
		}
	})
	return &im.exports
}

// readExports reads the tables of the export directory. When a page of the
// address table is missing there is no search by address: what is nearest
// cannot be told.
func (im *Image) readExports() {
	x := &im.exports
	b := make([]byte, exportDirSize)
	if _, err := im.layout.read(b, im.h.dirs[dirExport].rva); err != nil {
		x.err = withFile(err, im.name)
		return
	}
	c := cursor.New(b, exportStream, -1)
	c.Seek(16)
	x.base = c.U32()
	nFunctions, nNames := c.U32(), c.U32()
	functionsRVA, namesRVA, ordinalsRVA := c.U32(), c.U32(), c.U32()

	functions, errF := im.exportTable(functionsRVA, nFunctions, 4, maxFunctions)
	names, errN := im.exportTable(namesRVA, nNames, 4, maxNames)
	ordinals, errO := im.exportTable(ordinalsRVA, nNames, 2, maxNames)
	x.unnamedKnown = errN == nil && errO == nil
	for _, err := range []error{errO, errN, errF} {
		if err != nil {
			x.err = withFile(err, im.name)
		}
	}
	x.collect(functions, names, ordinals)
	if errF == nil {
		im.indexCode()
	}
}

// exportTable reads a table of count entries, or as many as there are.
func (im *Image) exportTable(rva, count uint32, width int, limit uint32) (*cursor.Cursor, error) {
	n := min(count, limit, im.layout.backed(rva)/uint32(width))
	b, err := readGrowing(im.layout, rva, int(n)*width)
	if err == nil && n < count {
		code := dump.BadCount
		if n == limit {
			code = dump.Limit
		}
		e := rvaError(code, uint64(rva), int(n)*width, fmt.Sprintf("claims %d entries, %d are read", count, n))
		e.Stream = exportStream
		err = e
	}
	return cursor.New(b, exportStream, -1), err
}

// readGrowing reads size bytes, allocating no more than twice what is there.
func readGrowing(l layout, rva uint32, size int) ([]byte, error) {
	var b []byte
	for len(b) < size {
		start := len(b)
		next := min(size, max(pageSize, 2*start))
		b = slices.Grow(b, next-start)[:next]
		n, err := l.read(b[start:], rva+uint32(start))
		if err != nil {
			return b[:start+n], err
		}
	}
	return b, nil
}

// collect joins the three tables.
func (x *exportIndex) collect(functions, names, ordinals *cursor.Cursor) {
	addresses := make([]uint32, functions.Len()/4)
	for i := range addresses {
		addresses[i] = functions.U32()
	}
	named := make([]bool, len(addresses))
	n := min(names.Len()/4, ordinals.Len()/2)
	x.all = make([]exportRef, 0, max(n, len(addresses)))
	for range n {
		nameRVA, index := names.U32(), uint32(ordinals.U16())
		if int(index) < len(addresses) && addresses[index] != 0 {
			named[index] = true
			x.all = append(x.all, exportRef{addresses[index], nameRVA, index})
		}
	}
	for i, rva := range addresses {
		if rva != 0 && !named[i] {
			x.all = append(x.all, exportRef{rva: rva, index: uint32(i)})
		}
	}
}

func (im *Image) indexCode() {
	x := &im.exports
	x.code = make([]exportRef, 0, len(x.all))
	for _, e := range x.all {
		if !im.isForwarder(e.rva) && im.Executable(e.rva) {
			x.code = append(x.code, e)
		}
	}
	x.best = make([]atomic.Uint32, len(x.code))
	slices.SortStableFunc(x.code, func(a, b exportRef) int { return cmp.Compare(a.rva, b.rva) })
}

// isForwarder reports whether an export's address lies in the export directory
// itself, where it is a string and not code.
func (im *Image) isForwarder(rva uint32) bool {
	d := im.h.dirs[dirExport]
	return rva >= d.rva && rva-d.rva < d.size
}

// Exports lists the exports, by name as the image has them, then those without
// a name. An error comes last, with a zero Export, and says why the list is
// not complete; an image that exports nothing has an empty list.
func (im *Image) Exports() iter.Seq2[Export, error] {
	return func(yield func(Export, error) bool) {
		x := im.exportIndex()
		left := maxNameBytes
		for _, e := range x.all {
			out := Export{Name: im.exportName(e.nameRVA), Ordinal: x.base + e.index, RVA: e.rva}
			if im.isForwarder(e.rva) {
				out.Forwarder, out.RVA = im.exportName(e.rva), 0
			}
			if left -= len(out.Name) + len(out.Forwarder); left < 0 {
				err := dump.Errorf(dump.Limit, exportStream, "names are longer than %d bytes in all", maxNameBytes)
				yield(Export{}, withFile(err, im.name))
				return
			}
			if !yield(out, nil) {
				return
			}
		}
		if x.err != nil {
			yield(Export{}, x.err)
		}
	}
}

// NearestExport returns the exported function at or below an RVA within the
// same executable section, since no function spans two. Several names at one
// address: Nt before Zw, undecorated before decorated, then alphabetical.
func (im *Image) NearestExport(rva uint32) (Symbol, bool) {
	section, ok := im.codeRange(rva)
	if !ok {
		return Symbol{}, false
	}
	x := im.exportIndex()
	end := sort.Search(len(x.code), func(i int) bool { return x.code[i].rva > rva })
	if end == 0 || x.code[end-1].rva < section.begin {
		return Symbol{}, false
	}
	at := x.code[end-1].rva
	begin := sort.Search(end, func(i int) bool { return x.code[i].rva >= at })
	i := int(x.best[begin].Load()) - 1
	if i < 0 {
		i = im.preferred(x.code[begin:min(end, begin+maxAliases)])
		x.best[begin].Store(uint32(i) + 1)
	}
	name := im.codeName(x.code[begin+i])
	if name == "" {
		return Symbol{}, false
	}
	return Symbol{name, at}, true
}

// preferred returns which of the exports of one address has the best name.
func (im *Image) preferred(aliases []exportRef) int {
	if len(aliases) == 1 {
		return 0
	}
	at, best := 0, ""
	for i, e := range aliases {
		name := im.exportName(e.nameRVA)
		if name != "" && (best == "" || compareNames(name, best) < 0) {
			at, best = i, name
		}
	}
	return at
}

// codeName names a function: by its number only when it surely has no name.
func (im *Image) codeName(e exportRef) string {
	if e.nameRVA == 0 && im.exports.unnamedKnown {
		return "Ordinal" + strconv.FormatUint(uint64(im.exports.base+e.index), 10)
	}
	return im.exportName(e.nameRVA)
}

func compareNames(a, b string) int {
	return cmp.Or(
		cmp.Compare(rank(strings.HasPrefix(a, "Zw")), rank(strings.HasPrefix(b, "Zw"))),
		cmp.Compare(rank(decorated(a)), rank(decorated(b))),
		strings.Compare(a, b))
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// decorated recognises C++ (?f@@YAXXZ), fastcall (@f@8) and stdcall (_f@8)
// decoration.
func decorated(name string) bool {
	return strings.HasPrefix(name, "?") || strings.HasPrefix(name, "@") ||
		strings.HasPrefix(name, "_") && strings.Contains(name, "@")
}

// exportName reads a NUL-terminated name of any characters; "" when it is not
// there. What is longer than any name is cut.
func (im *Image) exportName(rva uint32) string {
	if rva == 0 {
		return ""
	}
	buf := make([]byte, 0, 64)
	for len(buf) < maxNameLen {
		start := len(buf)
		buf = slices.Grow(buf, max(64, start))[:start+max(64, start)]
		n, err := im.layout.read(buf[start:], rva+uint32(start))
		buf = buf[:start+n]
		if i := slices.Index(buf[start:], 0); i >= 0 {
			return string(buf[:start+i])
		}
		if err != nil {
			return "" // ends before its NUL: not the whole name
		}
	}
	return string(buf[:maxNameLen])
}
