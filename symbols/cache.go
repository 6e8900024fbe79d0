package symbols

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/input"
)

// Fetcher gets files from servers; package symbols/server has one. There is no
// other way to a network from here.
type Fetcher interface {
	// Fetch writes what a URL names into a file, from its beginning, and at most
	// max bytes. An error that is fs.ErrNotExist says that the server lacks it.
	Fetch(url string, to *os.File, max int64) error
}

// badSuffix is appended to files of a cache that are not what their place says.
const badSuffix = ".bad"

// maxDebugSize limits debug information that comes from a server.
const maxDebugSize = 4 << 30

// cacheOf is the directory that keeps what the farther stores of a chain have.
func cacheOf(e Element) (string, bool) {
	return e.Stores[0], !e.Plain && !e.Flat && len(e.Stores) > 1 && !IsURL(e.Stores[0])
}

// quarantine sets aside a file of a cache that is proved not to be what it is
// filed as, so that it is fetched again. Files of other places are left alone.
func (s *Store) quarantine(e Element, i int, file string, err error) {
	dir, ok := cacheOf(e)
	if !ok || i != 0 || !within(dir, file) || !isDamage(err) {
		return
	}
	_ = os.Rename(file, file+badSuffix)
}

// provedInCache verifies what a cache has as a download is verified: a file that
// was cut short proves its identity all the same.
func (s *Store) provedInCache(e Element, i int, file string, key FileKey, q *query) error {
	if _, ok := cacheOf(e); !ok || i != 0 || q.plain { // a plain format has no end to miss
		return nil
	}
	f, err := input.Open(file, input.Options{MaxSize: q.maxSize, Want: func(member string) bool { return sameName(member, key.Name) }})
	if err != nil {
		return err
	}
	defer f.Close()
	return q.verify(f, f.Size(), file)
}

// within reports whether a file lies below a directory: a pointer leads elsewhere.
func within(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// isDamage reports whether an error is about a file's content, not about reading
// it.
func isDamage(err error) bool {
	e, ok := errors.AsType[*dump.Error](err)
	return !ok || e.Code != dump.IO && e.Code != dump.Limit
}

// keepNear copies what a farther store on disk has into the cache of its chain.
// That it cannot be written takes nothing from the answer.
func (s *Store) keepNear(e Element, i int, key FileKey, file string, q *query) {
	dir, ok := cacheOf(e)
	if !ok || i == 0 {
		return
	}
	if _, err := s.store(dir, key, q, func(to *os.File) error { return copyFile(to, file) }); err != nil {
		q.note(Attempt{Place: dir, Path: key.String(), Result: "cannot keep a copy: " + brief(err)})
	}
}

func copyFile(to *os.File, file string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// fromServers asks the servers of the path, in order, and keeps what they have.
func (s *Store) fromServers(q *query) string {
	if s.fetcher == nil {
		return ""
	}
	for _, e := range s.path {
		dir, ok := cacheOf(e)
		if !ok {
			continue
		}
		for _, server := range e.Stores[1:] {
			if !IsURL(server) {
				continue
			}
			for _, key := range q.keys {
				if file := s.fromServer(q, dir, server, key); file != "" {
					return file
				}
			}
		}
	}
	return ""
}

// fromServer asks one server for one key: for the file, for its compressed form,
// and for a pointer to it.
func (s *Store) fromServer(q *query, dir, server string, key FileKey) string {
	if err := key.Check(); err != nil {
		q.note(Attempt{Place: redacted(server), Result: "not asked: " + brief(err)})
		return ""
	}
	names := []string{key.Name, compressedName(key.Name), pointerName}
	if q.plain {
		names = names[:1]
	}
	for _, name := range names {
		url := server + "/" + key.named(name).URLPath()
		var file string
		var err error
		if name == pointerName {
			file, err = s.fetchPointed(q, dir, url, key)
		} else {
			file, err = s.fetch(q, dir, url, key)
		}
		if err == nil {
			if err = q.use(file); err == nil {
				return file
			}
		}
		q.note(Attempt{Place: redacted(server), Path: redacted(url), Result: outcome(err)})
		if !errors.Is(err, fs.ErrNotExist) {
			if isDamage(err) {
				q.refuse(err)
			}
			break // a server that fails is not asked thrice
		}
	}
	return ""
}

func (s *Store) fetch(q *query, dir, url string, key FileKey) (string, error) {
	return s.store(dir, key, q, func(to *os.File) error { return s.fetcher.Fetch(url, to, q.maxSize) })
}

// fetchPointed follows a server's file.ptr, but only to a server: a path would
// make this machine open files, or shares, of a stranger's choice.
func (s *Store) fetchPointed(q *query, dir, url string, key FileKey) (string, error) {
	f, err := newPart("")
	if err != nil {
		return "", err
	}
	defer endPart(f.Name())
	defer f.Close()
	if err := s.fetcher.Fetch(url, f, maxPointer); err != nil {
		return "", err
	}
	b := make([]byte, maxPointer)
	n, _ := f.ReadAt(b, 0)
	target, message := parsePointer(b[:n])
	secure := strings.HasPrefix(strings.ToLower(url), "https:")
	switch {
	case message != "":
		return "", fmt.Errorf("the server says: %q", shortened(message))
	case !IsURL(target) || checkURL(target) != nil:
		return "", fmt.Errorf("its file.ptr leads to %q, which is not followed", shortened(target))
	case secure && !strings.HasPrefix(strings.ToLower(target), "https:"):
		return "", fmt.Errorf("its file.ptr leads from https to %q, which is not followed", shortened(redacted(target)))
	}
	return s.fetch(q, dir, target, key)
}

// store puts a file that write produces into a cache: first under another name
// in the same directory, unpacked and verified there, and then in one step into
// its place. So no process ever sees a part of a file, and of several that store
// the same one each finds it whole. It returns the file's path.
func (s *Store) store(dir string, key FileKey, q *query, write func(*os.File) error) (string, error) {
	if err := key.Check(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	s.removeStale(dir)
	part, err := newPart(dir)
	if err != nil {
		return "", err
	}
	defer endPart(part.Name())
	defer part.Close()
	if err := write(part); err != nil {
		return "", err
	}
	from, err := verified(dir, part.Name(), key, q)
	if err != nil {
		return "", err
	}
	defer endPart(from)
	if err := part.Close(); err != nil {
		return "", err
	}
	return place(dir, from, key)
}

// verified unpacks a file of a cache where it is compressed, and proves what it
// holds. It returns the path of the plain file.
func verified(dir, part string, key FileKey, q *query) (string, error) {
	f, err := input.Open(part, input.Options{MaxSize: q.maxSize, TempDir: dir, Want: func(member string) bool { return sameName(member, key.Name) }})
	if err != nil {
		return "", err
	}
	defer f.Close()
	if damage := f.Damage(); len(damage) > 0 {
		return "", damage[0]
	}
	if err := q.verify(f, f.Size(), key.Name); err != nil {
		return "", err
	}
	if f.Container() == "" {
		return part, nil
	}
	plain, err := newPart(dir)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(plain, io.NewSectionReader(f, 0, f.Size()))
	if err = errors.Join(err, plain.Close()); err != nil {
		endPart(plain.Name())
		return "", err
	}
	return plain.Name(), nil
}

// place renames a verified file into the tree. The directory is opened as a root,
// which neither a name nor a link can leave.
func place(dir, from string, key FileKey) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	folder := filepath.Join(key.Dir, key.ID)
	if err := root.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	_ = root.Chmod(filepath.Base(from), 0o644) // a temporary file is its owner's alone
	to := filepath.Join(folder, key.Name)
	if err := root.Rename(filepath.Base(from), to); err != nil {
		// On Windows a file in use is not replaced: another process put it there.
		if fi, statErr := root.Stat(to); statErr != nil || !fi.Mode().IsRegular() {
			return "", err
		}
	}
	return filepath.Join(dir, to), nil
}

func sameName(member, name string) bool { return strings.EqualFold(dump.BaseName(member), name) }

// notFound is the result of an attempt at a server that lacks the file.
const notFound = "not found"

// outcome says what came of an attempt at a server.
func outcome(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound
	}
	return brief(err)
}

// brief is an error's message without the name of a temporary file.
func brief(err error) string {
	if e, ok := errors.AsType[*dump.Error](err); ok {
		return e.Detail()
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
