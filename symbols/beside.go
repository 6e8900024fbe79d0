package symbols

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxBeside caps how many entries of a folder beside a dump or an image are
	// listed. Dumps pile up in folders: in a larger one only the names that the
	// dump itself spells are looked for.
	maxBeside = 4096
	// maxFolders caps how many listings are kept.
	maxFolders = 256
)

// BesidePath is the path of the folders that the files lie in, each once. Of such
// a folder only the files themselves count, not what lies below. Standard input,
// "-", lies in none.
func BesidePath(files ...string) Path {
	var p Path
	for _, file := range files {
		if file == "" || file == "-" {
			continue
		}
		dir := filepath.Dir(file)
		if !slices.ContainsFunc(p, func(e Element) bool { return e.Stores[0] == dir }) {
			p = append(p, Element{Stores: []string{dir}, Flat: true})
		}
	}
	return p
}

// besideImage is the folder that an image's symbols may lie in with it, "" for
// one in a store's tree, NAME/KEY/NAME, where nothing else lies.
func besideImage(image string) string {
	if image == "" {
		return ""
	}
	dir := filepath.Dir(image)
	if strings.EqualFold(filepath.Base(filepath.Dir(dir)), filepath.Base(image)) {
		return ""
	}
	return dir
}

// byFlat looks into the folder of the image, then into those beside the dumps.
func (s *Store) byFlat(q *query) string {
	if q.beside != "" {
		if file := s.inFolder(q, q.beside); file != "" {
			return file
		}
	}
	for _, e := range s.path {
		if e.Flat && e.Stores[0] != q.beside {
			if file := s.inFolder(q, e.Stores[0]); file != "" {
				return file
			}
		}
	}
	return ""
}

func (s *Store) inFolder(q *query, dir string) string {
	f := s.folder(dir)
	q.note(Attempt{Place: dir, Result: f.note})
	for _, path := range f.candidates(dir, q) {
		err := q.use(path)
		if err == nil {
			return path
		}
		q.refuse(err)
	}
	return ""
}

// folder is the listing of one folder, without those below.
type folder struct {
	byName map[string][]string // by index name
	note   string              // why it is not the whole
}

func (s *Store) folder(dir string) *folder {
	if f := s.folders[dir]; f != nil {
		return f
	}
	f := listFolder(dir)
	if s.folders == nil || len(s.folders) >= maxFolders {
		s.folders = map[string]*folder{}
	}
	s.folders[dir] = f
	return f
}

func listFolder(dir string) *folder {
	f := &folder{byName: map[string][]string{}}
	d, err := os.Open(dir)
	if err != nil {
		f.note = "cannot be read: " + brief(err)
		return f
	}
	defer d.Close()
	names, err := d.Readdirnames(maxBeside + 1) // with the error io.EOF when empty
	if len(names) > maxBeside {
		f.note = fmt.Sprintf("holds more than %d files; looked for names as the dump spells them", maxBeside)
		names = nil // which of them would come first is up to the file system
	} else if err != nil && len(names) > 0 {
		f.note = "cannot be read: " + brief(err)
	}
	slices.Sort(names) // the same order everywhere
	for _, name := range names {
		key := indexName(name)
		f.byName[key] = append(f.byName[key], name)
	}
	return f
}

// candidates are the paths of a folder's files with the names of a query.
func (f *folder) candidates(dir string, q *query) []string {
	var out []string
	add := func(name string) {
		path := filepath.Join(dir, name)
		if !slices.Contains(out, path) && leadsToFile(path) {
			out = append(out, path)
		}
	}
	for _, name := range q.names {
		for _, indexed := range []string{name, compressedName(name)} {
			for _, spelt := range f.byName[indexed] {
				add(spelt)
			}
		}
	}
	if f.note == "" {
		return out
	}
	names := slices.Clone(q.names)
	for _, key := range q.keys {
		names = append(names, key.Name)
	}
	for _, name := range names {
		if unsafeName(name) == "" {
			add(name)
			add(compressedName(name))
		}
	}
	return out
}
