package input

import "bytes"

// headSize is how much of a file is looked at to tell what it is: up to the
// magic of a tar archive.
const headSize = 512

// format is a container of other data.
type format struct {
	name  string // as Container returns it, or as messages call it
	at    int    // where its magic lies
	magic string
	open  func(f *File, opt Options) error // nil: recognised only
}

// formats are the containers that are recognised, by public descriptions.
func formats() []format {
	return []format{
		{"zstd", 0, "\x28\xb5\x2f\xfd", (*File).unpackZstd}, // RFC 8878 3.1.1
		{"gzip", 0, "\x1f\x8b\x08", (*File).unpackGzip},     // RFC 1952 2.3.1, method deflate
		{"zip", 0, "PK\x03\x04", (*File).unpackZip},
		{"zip", 0, "PK\x05\x06", (*File).unpackZip}, // an empty one
		{"cab", 0, "MSCF", (*File).unpackCab},
		{"7z", 0, "7z\xbc\xaf\x27\x1c", nil},
		{"xz", 0, "\xfd7zXZ\x00", nil},
		{"bzip2", 0, "BZh", nil},
		{"rar", 0, "Rar!\x1a\x07", nil},
		{"lz4", 0, "\x04\x22\x4d\x18", nil},
		{"compress.exe (SZDD)", 0, "SZDD\x88\xf0\x27\x33", nil},
		{"compress.exe (KWAJ)", 0, "KWAJ\x88\xf0\x27\xd1", nil},
		{"tar", 257, "ustar", nil},
	}
}

// container returns the container that a file beginning with head is.
func container(head []byte) (format, bool) {
	for _, f := range formats() {
		if len(head) >= f.at && bytes.HasPrefix(head[f.at:], []byte(f.magic)) {
			return f, true
		}
	}
	// RFC 8878 3.1.2: parallel packers begin with a skippable frame.
	if len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return formats()[0], true
	}
	return format{}, false
}

// dumpMagics are how the formats of package dump begin.
var dumpMagics = []string{"MDMP", "PAGEDU64", "PAGEDUMP", "USERDU64", "USERDUMP"}

// magicSize is how much isDump needs.
const magicSize = 8

func isDump(head []byte) bool {
	for _, m := range dumpMagics {
		if bytes.HasPrefix(head, []byte(m)) {
			return true
		}
	}
	return false
}
