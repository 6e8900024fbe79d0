package symbols

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// twoTierMark is the file whose presence in a store's root says that another
// folder, of the name's first two letters, comes first (Microsoft, "SymStore").
const twoTierMark = "index2.txt"

// maxPointer is how much of a file.ptr is read: a long path.
const maxPointer = 4 << 10

// inTree returns the files that a store's tree has for a key, compressed or not.
// Nothing is walked: the names of the folders follow from the key, in the cases
// in which they are written. notes says what is wrong with a pointer.
func inTree(root string, key FileKey) (files, notes []string) {
	if key.Check() != nil {
		return nil, nil
	}
	for _, folder := range keyFolders(root, key) {
		if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
			continue
		}
		for _, name := range variants(key.Name, strings.ToLower(key.Name)) {
			for _, file := range []string{name, name + ".zst", name + ".gz", compressedName(name)} {
				if file = filepath.Join(folder, file); leadsToFile(file) {
					files = append(files, file)
				}
			}
		}
		if file, note := pointedTo(filepath.Join(folder, pointerName)); file != "" {
			files = append(files, file)
		} else if note != "" {
			notes = append(notes, note)
		}
		if len(files) > 0 {
			break // on a file system that ignores case, the others are the same
		}
	}
	return files, notes
}

// keyFolders are the folders that may hold a key's file.
func keyFolders(root string, key FileKey) []string {
	roots := []string{root}
	if leadsToFile(filepath.Join(root, twoTierMark)) {
		for _, prefix := range variants(firstTwo(key.Dir), strings.ToLower(firstTwo(key.Dir))) {
			if unsafeName(prefix) == "" {
				roots = append(roots, filepath.Join(root, prefix))
			}
		}
	}
	var out []string
	for _, r := range roots {
		for _, dir := range variants(key.Dir, strings.ToLower(key.Dir)) {
			for _, id := range variants(key.ID, strings.ToUpper(key.ID), strings.ToLower(key.ID)) {
				out = append(out, filepath.Join(r, dir, id))
			}
		}
	}
	return out
}

func firstTwo(name string) string {
	_, a := utf8.DecodeRuneInString(name)
	_, b := utf8.DecodeRuneInString(name[a:])
	return name[:a+b]
}

// variants drops repetitions.
func variants(names ...string) []string {
	out := names[:0]
	for i, n := range names {
		if i == 0 || n != out[0] && n != out[len(out)-1] {
			out = append(out, n)
		}
	}
	return out
}

// pointedTo reads a file.ptr of a store on disk: "PATH:" and the file's place, or
// "MSG:" and why there is none.
func pointedTo(pointer string) (file, note string) {
	if !leadsToFile(pointer) {
		return "", ""
	}
	f, err := os.Open(pointer)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPointer))
	if err != nil {
		return "", ""
	}
	target, message := parsePointer(b)
	switch {
	case message != "":
		return "", fmt.Sprintf("%s says: %s", pointer, message)
	case target == "":
		return "", fmt.Sprintf("%s names no file", pointer)
	case !leadsToFile(target):
		return "", fmt.Sprintf("%s leads to %s, which cannot be read", pointer, target)
	}
	return target, ""
}

// parsePointer reads the text of a file.ptr.
func parsePointer(b []byte) (target, message string) {
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimSpace(line)
	if len(line) >= 4 && strings.EqualFold(line[:4], "MSG:") {
		return "", strings.TrimSpace(line[4:])
	}
	if len(line) >= 5 && strings.EqualFold(line[:5], "PATH:") {
		line = strings.TrimSpace(line[5:])
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) || !utf8.ValidString(line) {
		return "", ""
	}
	return line, ""
}
