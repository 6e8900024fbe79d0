package kdump

import (
	"io"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/threadcontext"
)

// Use says what bytes of the file were used for.
type Use uint8

// Uses.
const (
	UseStructure Use = iota // a field of a structure, a page table entry, a saved register
	UseMemory               // memory that whoever has the dump's Memory read
	UseFolder               // the folders of a path, in UTF-16: other characters will do
	UseFolder8              // the same in 8-bit characters
	UsePresence             // bytes have to be there, whatever they are
	UseRegister             // saved registers of code that did not fail: what points nowhere may be another value
	UseContext              // registers of a CONTEXT, which may be a copy of those that the header has
)

// Watcher is told which bytes of the file are used: n at file offset off. Va is the
// address that they were read by where the use is UseMemory. Texts that only tell
// people something, such as names of processes and command lines, do not count.
// Options.WatchNames makes those of processes and threads count.
type Watcher func(use Use, va uint64, off int64, n int)

// watchedFile is a file whose uses are told. It serves one goroutine.
type watchedFile struct {
	r     io.ReaderAt
	tell  Watcher
	use   Use
	va    uint64
	ahead int // more than 0: what is read now may never be used
	names bool
}

// ReadAt implements io.ReaderAt.
func (w *watchedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.r.ReadAt(p, off)
	if w.ahead == 0 && n > 0 {
		w.tell(w.use, w.va, off, n)
		w.va += uint64(n)
	}
	return n, err
}

// pageTables reads what translates addresses: that is used whatever becomes of the
// bytes that it leads to.
type pageTables struct{ *watchedFile }

func (t pageTables) ReadAt(p []byte, off int64) (int, error) {
	n, err := t.r.ReadAt(p, off)
	if n > 0 {
		t.tell(UseStructure, 0, off, n)
	}
	return n, err
}

// watch makes f tell what is used of its file.
func (f *File) watch(opt *Options) {
	if opt.Watch != nil {
		f.watched = &watchedFile{r: f.r, tell: opt.Watch, names: opt.WatchNames}
		f.r = f.watched
	}
}

// tableReader is what page tables are read from.
func (f *File) tableReader() io.ReaderAt {
	if f.watched != nil {
		return pageTables{f.watched}
	}
	return f.r
}

// ahead reads what may never be used.
func (f *File) ahead(read func()) {
	if f.watched != nil {
		f.watched.ahead++
		defer func() { f.watched.ahead-- }()
	}
	read()
}

// as reads for a use.
func (f *File) as(use Use, va uint64, read func()) {
	w := f.watched
	if w != nil {
		old, oldVA := w.use, w.va
		w.use, w.va = use, va
		defer func() { w.use, w.va = old, oldVA }()
	}
	read()
}

// usedAt tells that n bytes at an address were used.
func (f *File) usedAt(m dump.Memory, va uint64, n int) {
	if f.watched != nil && n > 0 {
		_, _ = m.ReadAt(make([]byte, n), va)
	}
}

// watchedMemory is memory of a dump whose uses are told.
type watchedMemory struct {
	dump.Memory
	f *File
}

var (
	_ dump.PathWatcher     = (*watchedMemory)(nil)
	_ dump.PresenceWatcher = (*watchedMemory)(nil)
)

// ReadAt implements dump.Memory.
func (m *watchedMemory) ReadAt(p []byte, va uint64) (n int, err error) {
	m.f.as(UseMemory, va, func() { n, err = m.Memory.ReadAt(p, va) })
	return n, err
}

// Watcher implements dump.Watched.
func (m *watchedMemory) Watcher() dump.Watcher { return m }

// ReadAhead implements dump.Watcher.
func (m *watchedMemory) ReadAhead(p []byte, va uint64) (n int, err error) {
	m.f.ahead(func() { n, err = m.Memory.ReadAt(p, va) })
	return n, err
}

// Used implements dump.Watcher.
func (m *watchedMemory) Used(va uint64, n int) {
	if n > 0 && m.f.watched.ahead == 0 {
		_, _ = m.ReadAt(make([]byte, n), va)
	}
}

// Folders implements dump.PathWatcher.
func (m *watchedMemory) Folders(va uint64, n int) {
	if m.f.watched.ahead == 0 {
		m.f.as(UseFolder, 0, func() { m.f.usedAt(m.Memory, va, n) })
	}
}

// Present implements dump.PresenceWatcher.
func (m *watchedMemory) Present(va uint64, n int) {
	if m.f.watched.ahead == 0 {
		m.f.as(UsePresence, 0, func() { m.f.usedAt(m.Memory, va, n) })
	}
}

// shown returns memory for others to read.
func (f *File) shown(m dump.Memory) dump.Memory {
	if f.watched != nil {
		return &watchedMemory{m, f}
	}
	return m
}

// recordUse makes a record tell which of its fields are used: those of a structure at an
// offset in the file, else at its address.
func (f *File) recordUse(r *record) *record {
	if f.watched == nil || r == nil {
		return r
	}
	if r.off < 0 {
		f.as(UsePresence, 0, func() { f.usedAt(f.mem, r.va, len(r.b)) })
	}
	r.names = f.watched.names
	r.used = func(off, n int) {
		if r.off >= 0 {
			f.watched.tell(UseStructure, 0, r.off+int64(off), n)
		} else {
			f.as(UseStructure, 0, func() { f.usedAt(f.mem, r.va+uint64(off), n) })
		}
	}
	return r
}

// unseen returns the record for looks that nothing follows from.
func (r *record) unseen() *record {
	c := *r
	c.used = nil
	return &c
}

// all returns the whole record, all of which is used.
func (r *record) all() []byte {
	r.use(0, len(r.b))
	return r.b
}

// use tells that a part of the record was used.
func (r *record) use(off, n int) {
	if r.used != nil && off >= 0 && n > 0 && off <= len(r.b)-n {
		r.used(off, n)
	}
}

// usedContext are the bytes of a CONTEXT that registers are read from, without vector
// and floating-point ones: offset and size.
func usedContext(a dump.Arch) [][2]int {
	switch a {
	case dump.AMD64:
		return [][2]int{{0x30, 0xd0}}
	case dump.X86:
		return [][2]int{{0, 4}, {0x8c, 0x40}}
	case dump.ARM64:
		return [][2]int{{0, 0x110}}
	}
	return nil
}

// usedRegisters are the general registers among them, one behind the other.
func usedRegisters(a dump.Arch) (off, n int) {
	switch a {
	case dump.AMD64:
		return 0x78, 16 * 8 // rax to r15
	case dump.X86:
		return 0x9c, 7 * 4 // edi to ebp
	case dump.ARM64:
		return 0x8, 31 * 8
	}
	return 0, 0
}

// usedUserFrame tells what of a KTRAP_FRAME from user mode was used, when it is one:
// another is found to be none by zeros, too.
func (f *File) usedUserFrame(va uint64, size int, ok bool) {
	switch {
	case f.watched == nil:
	case !ok:
		f.usedParts(va, size, nil)
	case f.hdr.arch == dump.AMD64:
		f.usedParts(va, size, [][2]int{{0x28, 8}, {0x168, threadcontext.TrapFrameSize - 0x168}})
		f.as(UseRegister, 0, func() {
			f.usedAt(f.mem, va+0x30, 0x38)  // rax to r11
			f.usedAt(f.mem, va+0x140, 0x20) // rbx, rdi, rsi, rbp
		})
	case f.hdr.arch == dump.ARM64:
		f.usedParts(va, size, [][2]int{{0x90, 4}, {0x98, 8}, {0x138, 0x18}})
	default:
		f.usedParts(va, size, usedTrapFrame(f.hdr.arch))
	}
}

// usedTrapFrame are those of a KTRAP_FRAME.
func usedTrapFrame(a dump.Arch) [][2]int {
	switch a {
	case dump.AMD64:
		return [][2]int{{0x28, 0x48}, {0x138, threadcontext.TrapFrameSize - 0x138}}
	case dump.ARM64:
		return [][2]int{{0x90, 0x10 + 19*8}, {0x138, 0x18}}
	}
	return [][2]int{{0, threadcontext.TrapFrameSizeX86}}
}

// usedParts tells which parts of a structure of size bytes in memory were used.
func (f *File) usedParts(va uint64, size int, parts [][2]int) {
	if f.watched == nil {
		return
	}
	f.as(UsePresence, 0, func() { f.usedAt(f.mem, va, size) })
	for _, p := range parts {
		f.usedAt(f.mem, va+uint64(p[0]), p[1])
	}
}

// systemFolders are those that tell of nobody.
var systemFolders = []string{`\systemroot\`, `\windows\`, `c:\windows\`, `\??\c:\windows\`, `\driver\`, `\filesystem\`}

// folderLength is how many characters of a path its folders take that tell of somebody.
func folderLength(path string) int {
	lower := strings.ToLower(path)
	for _, known := range systemFolders {
		if strings.HasPrefix(lower, known) {
			return 0
		}
	}
	return strings.LastIndexAny(path, `\/`) + 1
}

// keepPath tells that the path of the UNICODE_STRING at va was used, of which the
// folders are what it is not known by.
func (f *File) keepPath(m dump.Memory, ptr int, va uint64, path string) {
	f.keepText(m, ptr, va, path, folderLength(path))
}

// keepText does so for a text of which the first characters tell of somebody.
func (f *File) keepText(m dump.Memory, ptr int, va uint64, text string, private int) {
	if f.watched == nil || text == "" {
		return
	}
	var head [16]byte
	_, _ = m.ReadAt(head[:2*ptr], va)
	c := cursor.New(head[:], "UNICODE_STRING", -1)
	length := int(c.U16())
	c.Seek(ptr)
	buffer := c.Pointer(ptr)
	folder := min(2*private, length)
	f.as(UseFolder, 0, func() { f.usedAt(m, buffer, folder) })
	f.usedAt(m, buffer+uint64(folder), length-folder)
}
