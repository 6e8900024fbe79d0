package symbols

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/pdata"
)

// maxIndexed caps how many files the directories may hold before the index
// stops growing: a mistyped "/" must not walk a whole disk for ever.
const maxIndexed = 2_000_000

// maxUnread caps how many folders that cannot be listed are named.
const maxUnread = 4

// notFile are the kinds of directory entries that cannot be images: reading a
// pipe or device may never end.
const notFile = fs.ModeDir | fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice

// Store finds images and debug information in the places of a symbol path. Plain
// directories are walked once, when nothing is found by its key, and only files
// whose name matches are opened, so naming a large symbol store costs its
// directory listing. It is safe for concurrent use.
type Store struct {
	path          Path
	fetcher       Fetcher
	allowMismatch bool
	memory        *memory // nil: every question is looked up

	mu      sync.Mutex
	indexed bool
	full    bool
	unread  []Attempt           // folders that could not be listed, with the reason
	byName  map[string][]string // lower-case base name to paths, in walking order
	folders map[string]*folder  // of flat places
	swept   map[string]bool     // caches in which no stale parts are left
	open    []openFile
	builds  map[string]pdata.Identity // of the files that were opened and refused
	failed  failures
	sums    map[string]uint32 // checksums of files that were split off images
}

// StoreOptions say how a store finds what its path names.
type StoreOptions struct {
	// Fetcher reaches the servers of the path; nil means that none is asked.
	Fetcher Fetcher
	// AllowMismatch makes FindDebug return debug information of another build
	// when there is none of the right one, with the state DebugMismatch. Images
	// of another build are never used.
	AllowMismatch bool
	// Remember keeps what was found, and what was not, for those who ask again:
	// the same open images and debug information, which one goroutine at a time
	// may use. It is for many dumps in a row.
	Remember bool
}

// NewStore returns a store over plain directories, searched in order and
// recursively.
func NewStore(dirs []string) *Store { return NewPathStore(DirPath(dirs...), StoreOptions{}) }

// NewPathStore returns a store over a symbol path.
func NewPathStore(path Path, opt StoreOptions) *Store {
	s := &Store{path: slices.Clone(path), fetcher: opt.Fetcher, allowMismatch: opt.AllowMismatch, failed: failures{}, sums: map[string]uint32{}}
	if opt.Remember {
		s.memory = newMemory()
	}
	return s
}

// Close closes the image files that were opened.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first error
	for _, c := range s.open {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.open = nil
	return first
}

// Find returns the image file of a module and its path. When there is none, the
// Missing says where it was looked for and why candidates were refused.
func (s *Store) Find(m *dump.Module) (*pdata.Image, string, *Missing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.rememberImage(m, func() foundImage {
		var im *pdata.Image
		q := s.imageQuery(m, &im)
		if file := s.search(q); file != "" {
			return foundImage{im, file, nil}
		}
		return foundImage{missing: &Missing{Module: m, Key: q.id, Tried: tried(q), Reason: q.reason}}
	})
	return f.image, f.file, f.missing
}

// foundImage is the outcome of a search for an image.
type foundImage struct {
	image   *pdata.Image
	file    string
	missing *Missing
}

// imageQuery is the search for a module's image, which is put into im.
func (s *Store) imageQuery(m *dump.Module, im **pdata.Image) *query {
	q := &query{names: m.FileNames(), id: Key(m), maxSize: int64(min(m.Size, math.MaxUint32)) + overlay}
	if q.id != "" {
		for _, name := range q.names {
			q.keys = append(q.keys, FileKey{Dir: name, ID: q.id, Name: name})
		}
	}
	q.use = func(file string) (err error) {
		*im, err = s.try(file, m)
		return err
	}
	q.verify = func(r io.ReaderAt, size int64, file string) error {
		im, err := pdata.OpenFile(r, size, file)
		if err != nil {
			return err
		}
		if !proves(im.Identity(), m) {
			return refusal(file, im.Identity(), m)
		}
		return im.Complete()
	}
	return q
}

// Key is the symbol-store key of a module's image: TimeDateStamp in eight
// upper-case digits, then SizeOfImage. It is "" when the dump holds no stamp.
func Key(m *dump.Module) string {
	if m.TimeDateStamp == 0 {
		return ""
	}
	return pdata.Identity{TimeDateStamp: m.TimeDateStamp, SizeOfImage: uint32(m.Size)}.Key()
}

func (s *Store) index() {
	if s.indexed {
		return
	}
	s.indexed = true
	s.byName = map[string][]string{}
	count := 0
	for _, e := range s.path {
		if !e.Plain {
			continue
		}
		dir := e.Stores[0]
		// A link is followed where the user names it, not within the tree,
		// where it could lead round in circles.
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			root = dir
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				s.unlisted(err)
				return nil // WalkDir goes on behind it
			case d.Type()&notFile != 0, d.Type()&fs.ModeSymlink != 0 && !leadsToFile(path):
				return nil
			}
			if count++; count > maxIndexed {
				s.full = true
				return fs.SkipAll
			}
			if rel, err := filepath.Rel(root, path); err == nil {
				path = filepath.Join(dir, rel) // as the user knows it
			}
			name := indexName(d.Name())
			s.byName[name] = append(s.byName[name], path)
			return nil
		})
	}
}

// leadsToFile reports whether a link may be opened: it can lead to a pipe too.
func leadsToFile(link string) bool {
	fi, err := os.Stat(link)
	return err == nil && fi.Mode().IsRegular()
}

// unlisted notes a folder that could not be listed.
func (s *Store) unlisted(err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) && len(s.unread) < maxUnread {
		s.unread = append(s.unread, Attempt{Place: pe.Path, Result: "cannot be read: " + pe.Err.Error()})
	}
}

// indexName folds case and drops the suffix of the compressions that are opened
// transparently.
func indexName(name string) string {
	name = strings.ToLower(name)
	for _, suffix := range []string{".zst", ".gz"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// keyFirst puts the paths that lie in a folder named by the key first: in a
// symbol store, which holds every build of a name, that saves opening them all.
func keyFirst(paths []string, key string) []string {
	inKey := func(path string) bool { return strings.EqualFold(filepath.Base(filepath.Dir(path)), key) }
	if key == "" || len(paths) < 2 || !slices.ContainsFunc(paths[1:], inKey) {
		return paths
	}
	var first, rest []string
	for _, path := range paths {
		if inKey(path) {
			first = append(first, path)
		} else {
			rest = append(rest, path)
		}
	}
	return append(first, rest...)
}

// overlay is how much a file may hold besides its image: signatures, and what
// installers append. Compressed files that unfold beyond that are refused.
const overlay = 256 << 20

// try opens a candidate and verifies that it is the module's very image.
func (s *Store) try(path string, m *dump.Module) (*pdata.Image, error) {
	if id, ok := s.builds[path]; ok && !proves(id, m) {
		return nil, refusal(path, id, m)
	}
	if err := s.failed[path]; err != nil {
		return nil, err
	}
	if s.memory != nil && s.memory.openImages[path] != nil {
		im := s.memory.openImages[path]
		if !proves(im.Identity(), m) {
			return nil, refusal(path, im.Identity(), m)
		}
		return im, nil
	}
	f, err := input.Open(path, input.Options{Want: func(string) bool { return true }, MaxSize: int64(min(m.Size, math.MaxUint32)) + overlay})
	if err != nil {
		return nil, err
	}
	im, err := s.openVerified(f, f.Size(), path, m)
	if err != nil {
		s.failed.keep(path, err)
		f.Close()
		return nil, err
	}
	s.keepOpen(path, f)
	if s.memory != nil {
		s.memory.openImages[path] = im
	}
	return im, nil
}

func (s *Store) openVerified(r io.ReaderAt, size int64, path string, m *dump.Module) (*pdata.Image, error) {
	id, err := pdata.ReadIdentity(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !proves(id, m) {
		if s.builds == nil {
			s.builds = map[string]pdata.Identity{}
		}
		s.builds[path] = id
		return nil, refusal(path, id, m)
	}
	return pdata.OpenFile(r, size, path)
}

// refusal says why a file of an identity is not the module's image.
func refusal(path string, id pdata.Identity, m *dump.Module) error {
	if m.TimeDateStamp == 0 && uint64(id.SizeOfImage) == m.Size {
		return fmt.Errorf("%s has the size, but the dump records no time stamp to verify it by", path)
	}
	return fmt.Errorf("%s is another build (%s, wanted %s)", path, id.Key(), pdata.Identity{TimeDateStamp: m.TimeDateStamp, SizeOfImage: uint32(m.Size)}.Key())
}

// proves reports whether an image file's identity is the module's. A dump that
// records no time stamp may have the checksum; the size alone proves nothing,
// since builds of one program often agree in it.
func proves(id pdata.Identity, m *dump.Module) bool {
	if uint64(id.SizeOfImage) != m.Size {
		return false
	}
	return id.TimeDateStamp == m.TimeDateStamp || m.TimeDateStamp == 0 && m.CheckSum != 0 && id.CheckSum == m.CheckSum
}
