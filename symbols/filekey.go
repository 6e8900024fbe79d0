package symbols

import (
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"dumptriage/dump"
)

// FileKey is where a symbol store files one file: Dir/ID/Name. All three come
// from a dump and are not trusted until Check.
type FileKey struct {
	Dir  string // name of the image or PDB
	ID   string
	Name string // of the file: Dir, or for Breakpad's files Dir with another extension
}

// pointerName is the file that stands in a store for a file elsewhere.
const pointerName = "file.ptr"

// maxNameLength is what file systems allow in one name.
const maxNameLength = 255

// Check returns nil when the parts of a key are plain file names on every system,
// so that they neither leave a directory nor reach a device.
func (k FileKey) Check() error {
	for _, part := range []string{k.Dir, k.ID, k.Name} {
		if why := unsafeName(part); why != "" {
			return dump.Errorf(dump.BadRecord, "", "%q is no name of a file: %s", shortened(part), why)
		}
	}
	return nil
}

// URLPath returns the key as the path below a server's address.
func (k FileKey) URLPath() string {
	return path.Join(url.PathEscape(k.Dir), url.PathEscape(k.ID), url.PathEscape(k.Name))
}

func (k FileKey) String() string { return k.Dir + "/" + k.ID + "/" + k.Name }

// named is the key of another file in the same folder.
func (k FileKey) named(name string) FileKey { return FileKey{k.Dir, k.ID, name} }

// shortened keeps a hostile name from filling the screen.
func shortened(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// unsafeName says why a name must not be used for a file, "" when it may be. The
// rules are those of Windows (Microsoft, "Naming Files, Paths, and Namespaces"),
// which are the narrowest, since a cache is shared.
func unsafeName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxNameLength:
		return "it is too long"
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.ContainsAny(name, `/\`):
		return "it holds a separator"
	case strings.ContainsAny(name, `:*?"<>|`):
		return "it holds a character that is not allowed"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
		return "it holds a control character"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "it ends in a dot or space"
	case strings.HasPrefix(name, " "):
		return "it begins with a space"
	case strings.EqualFold(name, pointerName):
		return "it is what a store calls its pointers"
	case isDevice(name):
		return "it is a device"
	}
	return ""
}

// isDevice reports whether Windows takes a name for a device, with whatever
// extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	if port, ok := strings.CutPrefix(stem, "COM"); ok {
		return isPort(port)
	}
	port, ok := strings.CutPrefix(stem, "LPT")
	return ok && isPort(port)
}

// isPort reports whether s is the number of a port. Superscripts count.
func isPort(s string) bool {
	return utf8.RuneCountInString(s) == 1 && strings.ContainsAny(s, "0123456789¹²³")
}

// compressedName is what a store calls a file that it compressed: the last
// character becomes an underscore.
func compressedName(name string) string {
	_, size := utf8.DecodeLastRuneInString(name)
	return name[:len(name)-size] + "_"
}
