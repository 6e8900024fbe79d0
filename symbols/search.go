package symbols

import (
	"fmt"
	"io"
	"slices"
)

// Attempt is one place that was asked for a file.
type Attempt struct {
	Place  string // directory or address of the server
	Path   string // file or URL that was asked for, "" when a directory was searched
	Result string // what came of it, "" when there was nothing
}

// String gives the place and what came of it, without the path: so that all that
// was missed at one place reads alike.
func (a Attempt) String() string {
	if a.Result == "" {
		return a.Place
	}
	return a.Place + " (" + a.Result + ")"
}

// query is a search for one file.
type query struct {
	keys    []FileKey
	names   []string // in lower case, for the index of plain directories
	beside  string   // folder of the module's image, "" when it is not known
	id      string   // of the folder whose files come first
	maxSize int64    // of the unpacked file
	plain   bool     // servers of its kind have neither compressed files nor pointers
	// verify proves that content is what is looked for.
	verify func(r io.ReaderAt, size int64, file string) error
	// use opens a file that is, and keeps it.
	use func(file string) error

	attempts []Attempt
	reason   string // why the first candidate was refused
}

func (q *query) note(a Attempt) {
	if !slices.Contains(q.attempts, a) {
		q.attempts = append(q.attempts, a)
	}
}

func (q *query) refuse(err error) {
	if q.reason == "" {
		q.reason = err.Error()
	}
}

// search looks for a file of the first query that has one, on disk or else on a
// server: a worse format on disk does not keep servers from being asked for a
// better one. Only in the cache of a server it does, for there it lies because the
// server had nothing better.
func (s *Store) search(queries ...*query) string {
	for i, q := range queries {
		if file := s.onDisk(q); file != "" {
			return file
		}
		if !s.asks() {
			continue
		}
		for _, worse := range queries[i+1:] {
			if file := s.byKey(worse, hasServers); file != "" {
				return file
			}
		}
		if file := s.fromServers(q); file != "" {
			return file
		}
	}
	return ""
}

// asks reports whether there are servers that may be asked.
func (s *Store) asks() bool { return s.fetcher != nil && s.path.HasServer() }

// hasServers reports whether an element is a cache with servers behind it.
func hasServers(e Element) bool {
	_, ok := cacheOf(e)
	return ok && Path{e}.HasServer()
}

// hasTree reports whether an element's directories may be stores' trees.
func hasTree(e Element) bool { return !e.Flat }

// onDisk looks beside the image and the dumps, then by key in every directory,
// then in the index of the plain ones.
func (s *Store) onDisk(q *query) string {
	if file := s.byFlat(q); file != "" {
		return file
	}
	if file := s.byKey(q, hasTree); file != "" {
		return file
	}
	return s.byIndex(q)
}

// byKey looks into the trees of stores, in those elements of the path that count.
func (s *Store) byKey(q *query, counts func(Element) bool) string {
	for _, e := range s.path {
		if !counts(e) {
			continue
		}
		for i, dir := range e.Stores {
			if IsURL(dir) {
				continue
			}
			q.note(Attempt{Place: dir})
			for _, key := range q.keys {
				files, notes := inTree(dir, key)
				for _, note := range notes {
					q.note(Attempt{Place: dir, Path: key.String(), Result: note})
				}
				for _, file := range files {
					err := s.provedInCache(e, i, file, key, q)
					if err == nil {
						err = q.use(file)
					}
					if err == nil {
						s.keepNear(e, i, key, file, q)
						return file
					}
					q.refuse(err)
					s.quarantine(e, i, file, err)
				}
			}
		}
	}
	return ""
}

// byIndex looks for files of the name anywhere below the plain directories.
func (s *Store) byIndex(q *query) string {
	s.index()
	for _, note := range s.unread {
		q.note(note)
	}
	for _, name := range q.names {
		for _, indexed := range []string{name, compressedName(name)} {
			for _, file := range keyFirst(s.byName[indexed], q.id) {
				err := q.use(file)
				if err == nil {
					return file
				}
				q.refuse(err)
			}
		}
	}
	if q.reason == "" && s.full {
		q.reason = fmt.Sprintf("the directories hold more than %d files; the rest was not looked at", maxIndexed)
	}
	return ""
}

// tried lists the attempts of queries as text, each once. That a place lacks one
// form of a file is left out where another attempt there says more.
func tried(queries ...*query) []string {
	said := map[string]bool{}
	var all []Attempt
	for _, q := range queries {
		all = append(all, q.attempts...)
	}
	for _, a := range all {
		if a.Result != "" && a.Result != notFound {
			said[a.Place] = true
		}
	}
	var out []string
	for _, a := range all {
		if a.Result == notFound && said[a.Place] {
			continue
		}
		if text := a.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
