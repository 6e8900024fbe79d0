package sym

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"dumptriage/dump"
)

// Module is what the first line says: whose symbols these are.
type Module struct {
	OS   string // "windows"
	Arch string // "x86", "x86_64", "arm64"
	ID   string // debug id: GUID's digits and age, as dump.CodeView.DebugID
	Name string // of the PDB, or of the image
}

// File is a symbol file.
type File struct {
	r      io.ReaderAt
	size   int64
	name   string
	module Module

	once  sync.Once
	index index

	mu     sync.Mutex
	funcs  map[int64]*function // functions read, by offset
	damage damage
}

const maxHead = 4096 // bytes that the first line may have

// Open reads the first line of a symbol file. The name is for messages. The
// error is a *dump.Error: unsupported_format when it is no symbol file. The
// reader must stay usable.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	head := make([]byte, min(max(size, 0), maxHead))
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, &dump.Error{Code: dump.IO, File: name, Offset: 0, Size: int64(len(head)), Msg: "cannot be read", Err: err}
	}
	line, _, _ := bytes.Cut(head[:n], []byte{'\n'})
	f := fields(bytes.TrimSuffix(line, []byte{'\r'}))
	if string(f.word()) != "MODULE" {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: name, Offset: 0, Size: -1, Msg: "is not a Breakpad symbol file: it does not begin with MODULE"}
	}
	m := Module{string(f.word()), string(f.word()), string(f.word()), string(f.rest())}
	if m.ID == "" || m.Name == "" {
		return nil, &dump.Error{Code: dump.BadRecord, File: name, Stream: "MODULE", Offset: 0, Size: -1, Msg: "lacks an id or a name"}
	}
	return &File{r: r, size: size, name: name, module: m, funcs: map[int64]*function{}}, nil
}

// Module returns whose symbols these are.
func (f *File) Module() Module { return f.module }

// Matches checks that the symbols belong to the module with a debug identity.
// The error, a *dump.Error, has the code mismatch.
func (f *File) Matches(cv dump.CodeView) error {
	if id := cv.DebugID(); id == "" || !strings.EqualFold(id, f.module.ID) {
		return &dump.Error{Code: dump.Mismatch, File: f.name, Stream: "MODULE", Offset: 0, Size: -1,
			Msg: fmt.Sprintf("its id is %.40s, the image wants %s", f.module.ID, id)}
	}
	return nil
}

// Damage returns what could not be read so far, at most one error a kind of
// record, each with the count.
func (f *File) Damage() []*dump.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damage.errors(f.name)
}

// damage counts bad records by kind.
type damage struct {
	kinds []badKind
}

type badKind struct {
	stream string
	msg    string
	first  int64
	n      int
	err    error
}

func (d *damage) add(stream, msg string, off int64, err error) {
	for i := range d.kinds {
		if k := &d.kinds[i]; k.stream == stream && k.msg == msg {
			k.n++
			return
		}
	}
	d.kinds = append(d.kinds, badKind{stream, msg, off, 1, err})
}

func (d *damage) errors(name string) []*dump.Error {
	var out []*dump.Error
	for _, k := range d.kinds {
		e := &dump.Error{Code: dump.BadRecord, File: name, Stream: k.stream, Offset: k.first, Size: -1, Msg: k.msg, Err: k.err}
		if k.err != nil {
			e.Code = dump.IO
		}
		if k.n > 1 {
			e.Msg = fmt.Sprintf("%s (%d times)", k.msg, k.n)
		}
		out = append(out, e)
	}
	return out
}
