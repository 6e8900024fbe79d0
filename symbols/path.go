package symbols

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dumptriage/dump"
)

// Limits of a symbol path, which an environment variable or a script supplies.
const (
	maxPathLength = 32 << 10 // what an environment variable may hold on Windows
	maxElements   = 256
	maxChain      = 16
)

// Path says where images and debug information are looked for, in order.
type Path []Element

// Element is one element of a symbol path: a directory that is searched
// whatever its shape, or a chain of symbol stores.
type Element struct {
	// Stores are directories and URLs, nearest first. What a farther one has is
	// copied to the first when that is a directory. A plain directory is alone.
	Stores []string
	// Plain is a directory that may be flat or hold anything: it is walked when
	// a look-up by key finds nothing.
	Plain bool
	// Flat is a directory of which only the files in it count: it is listed, and
	// never walked.
	Flat bool
}

// DirPath is the path of plain directories.
func DirPath(dirs ...string) Path {
	var p Path
	for _, dir := range dirs {
		p = append(p, Element{Stores: []string{dir}, Plain: true})
	}
	return p
}

// only are the elements of a path that count.
func (p Path) only(counts func(Element) bool) Path {
	return slices.DeleteFunc(slices.Clone(p), func(e Element) bool { return !counts(e) })
}

func isFlat(e Element) bool { return e.Flat }

// Places is a path without the folders that dumps lie in.
func (p Path) Places() Path { return p.only(hasTree) }

// HasServer reports whether a path names a server: only then is there a network.
func (p Path) HasServer() bool {
	for _, e := range p {
		for _, s := range e.Stores {
			if IsURL(s) {
				return true
			}
		}
	}
	return false
}

// ParsePath reads a symbol path as the Windows debuggers write it (Microsoft,
// "Symbol path for Windows debuggers" and "Advanced SymSrv use"):
//
//	dir;dir                        plain directories
//	srv*cache*share*https://host   a chain of stores, nearest first
//	symsrv*symsrv.dll*cache*url    the same in long
//	cache*dir;...                  what stores to its right have is kept in dir
//	https://host                   a server
//
// An empty place between asterisks, and that of a server without a cache, is
// DefaultCache. "srv*" alone, which means Microsoft's server to a debugger, is an
// error: a server must be named. Errors are *dump.Error.
func ParsePath(s string) (Path, error) {
	if len(s) > maxPathLength {
		return nil, pathError("is longer than %d bytes", maxPathLength)
	}
	var p Path
	cache := ""
	for element := range strings.SplitSeq(s, ";") {
		element = strings.Trim(strings.TrimSpace(element), `"`)
		if element == "" {
			continue
		}
		if len(p) == maxElements {
			return nil, pathError("has more than %d elements", maxElements)
		}
		parts := strings.Split(element, "*")
		if len(parts) > 1 && strings.EqualFold(parts[0], "cache") {
			dir, err := cacheElement(parts)
			if err != nil {
				return nil, err
			}
			cache = dir
			p = append(p, Element{Stores: []string{dir}})
			continue
		}
		e, err := parseElement(element, parts, cache)
		if err != nil {
			return nil, err
		}
		p = append(p, e)
	}
	return p, nil
}

func pathError(format string, args ...any) error {
	return dump.Errorf(dump.BadRecord, "symbol path", format, args...)
}

func cacheElement(parts []string) (string, error) {
	if len(parts) > 2 || IsURL(parts[1]) {
		return "", pathError("%q: cache* wants one directory", strings.Join(parts, "*"))
	}
	if parts[1] == "" {
		return DefaultCache()
	}
	return parts[1], nil
}

func parseElement(element string, parts []string, cache string) (Element, error) {
	switch kind := strings.ToLower(parts[0]); {
	case kind == "srv":
		return chain(element, parts[1:], cache)
	case kind == "symsrv":
		if len(parts) < 3 || !strings.EqualFold(parts[1], "symsrv.dll") {
			return Element{}, pathError("%q: only symsrv*symsrv.dll*... is known", element)
		}
		return chain(element, parts[2:], cache)
	case len(parts) > 1:
		return Element{}, pathError("%q: a store is written srv*..., symsrv*symsrv.dll*... or cache*...", element)
	case IsURL(element):
		return chain(element, parts, cache)
	}
	return Element{Stores: []string{element}, Plain: true}, nil
}

// chain makes an element of the stores of a srv element.
func chain(element string, stores []string, cache string) (Element, error) {
	if len(stores) > maxChain {
		return Element{}, pathError("a chain has more than %d stores", maxChain)
	}
	if strings.Join(stores, "") == "" {
		return Element{}, pathError("%q names no store and no server", element)
	}
	var e Element
	for _, s := range stores {
		switch {
		case s == "":
			dir, err := DefaultCache()
			if err != nil {
				return Element{}, err
			}
			s = dir
		case strings.Contains(s, "://"):
			if err := checkURL(s); err != nil {
				return Element{}, err
			}
			s = strings.TrimRight(s, "/")
		}
		e.Stores = append(e.Stores, s)
	}
	if cache != "" && cache != e.Stores[0] {
		e.Stores = append([]string{cache}, e.Stores...)
	}
	if IsURL(e.Stores[0]) {
		dir, err := DefaultCache()
		if err != nil {
			return Element{}, err
		}
		e.Stores = append([]string{dir}, e.Stores...)
	}
	return e, nil
}

// NewChain makes an element of a cache directory and a server.
func NewChain(dir, server string) (Element, error) {
	switch {
	case !IsURL(server):
		return Element{}, pathError("%q is no address of a server, such as https://host/symbols", shortened(server))
	case dir == "" || IsURL(dir):
		return Element{}, pathError("%q is no directory", dir)
	}
	return chain(server, []string{dir, server}, "")
}

// IsURL reports whether a place is an HTTP server rather than a directory.
func IsURL(place string) bool {
	scheme, _, ok := strings.Cut(place, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// checkURL refuses what is no URL of a server. The text may hold a password and is
// not repeated.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !IsURL(s) {
		return pathError("a server's address is http://host/... or https://host/...")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return pathError("%q: a server's address has no query and no fragment", u.Redacted())
	}
	return nil
}

// redacted is a server's address without a password.
func redacted(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "a server"
	}
	return u.Redacted()
}

// DefaultCache is where files of servers are kept when the path names no place:
// dumptriage/symbols in the user's cache directory.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &dump.Error{Code: dump.IO, Stream: "symbol path", Offset: -1, Size: -1, Msg: "names no cache directory, and the user has none", Err: err}
	}
	return filepath.Join(dir, "dumptriage", "symbols"), nil
}

// Environment variables that a Windows debugger takes paths from.
const (
	EnvSymbols    = "_NT_SYMBOL_PATH"
	EnvAltSymbols = "_NT_ALT_SYMBOL_PATH"
	EnvImages     = "_NT_EXECUTABLE_IMAGE_PATH"
)

// EnvPath reads the paths of the environment, those variables that are set, in
// the order in which they are listed here.
func EnvPath(getenv func(string) string) (Path, error) {
	var p Path
	for _, name := range []string{EnvSymbols, EnvAltSymbols, EnvImages} {
		q, err := ParsePath(getenv(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p = append(p, q...)
	}
	return p, nil
}
