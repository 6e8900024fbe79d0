// Package cab reads Microsoft cabinet files (.cab and the .pd_, .dl_ files of
// symbol stores): stored, MSZIP and LZX folders.
//
// The container is documented by Microsoft in [MS-CAB] and in the Cabinet SDK's
// "Microsoft Cabinet File Format"; MSZIP in [MS-MCI]; LZX in the Cabinet SDK's
// "Microsoft LZX Data Compression Format" and in [MS-PATCH], which describes
// the same bit stream with larger windows. Quantum folders and files that
// continue in another cabinet of a set are recognised and refused by name.
//
// Nothing in a cabinet is trusted. Counts and offsets are claims: tables are
// read only as far as the file goes, a data block may not exceed 32 KB
// unpacked, every block's checksum is verified, and callers set a limit on
// what is unpacked. Memory use is one block, a window of at most 2 MB and the
// list of files, however large the cabinet is.
package cab

import (
	"fmt"
	"io"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Magic is how every cabinet begins.
const Magic = "MSCF"

// Compression is the method of a folder.
type Compression uint8

// The methods; the values are those of the low four bits of CFFOLDER.typeCompress.
const (
	Stored  Compression = 0
	MSZIP   Compression = 1
	Quantum Compression = 2 // recognised, not unpacked
	LZX     Compression = 3
)

// String returns the method's usual name.
func (c Compression) String() string {
	switch c {
	case Stored:
		return "stored"
	case MSZIP:
		return "MSZIP"
	case Quantum:
		return "Quantum"
	case LZX:
		return "LZX"
	}
	return fmt.Sprintf("method %d", uint8(c))
}

// File is one file of a cabinet.
type File struct {
	Name     string    // as stored: may hold directories, separated by backslashes
	Size     int64     // unpacked size in bytes, as the cabinet claims
	Folder   int       // index of the folder that holds its data
	Offset   int64     // where it begins in the folder's unpacked data
	Modified time.Time // to two seconds, zone unknown (given as UTC); zero when not valid
	Spans    bool      // its data begin or end in another cabinet of the set
}

// Cabinet is an opened cabinet.
type Cabinet struct {
	r       io.ReaderAt
	size    int64
	folders []folder
	files   []File
	reserve int // bytes of application data in each CFDATA
	prev    string
	next    string
	damage  []*dump.Error
}

// Open reads a cabinet's directory. The error is a *dump.Error: one of code
// UnsupportedFormat when r does not hold a cabinet at all. A directory that is
// cut short gives the files that are there, and Damage.
func Open(r io.ReaderAt, size int64) (*Cabinet, error) {
	c := &Cabinet{r: r, size: size}
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	c.reserve, c.prev, c.next = h.dataReserve, h.prev, h.next
	if h.size > size {
		c.damage = append(c.damage, &dump.Error{Code: dump.Truncated, Stream: "CFHEADER", Offset: size, Size: h.size - size,
			Msg: fmt.Sprintf("the cabinet says it has %d bytes, beyond the end of the file", h.size)})
	}
	if c.folders, err = readFolders(r, size, h); err != nil {
		return nil, err
	}
	if err := c.readFiles(h); err != nil {
		if len(c.files) == 0 {
			return nil, err
		}
		c.damage = append(c.damage, err)
	}
	return c, nil
}

// Files returns the files in the order of the directory. The slice is the
// cabinet's own.
func (c *Cabinet) Files() []File { return c.files }

// Damage returns what was found wrong with the directory.
func (c *Cabinet) Damage() []*dump.Error { return c.damage }

// maxName is the longest file name with its NUL that [MS-CAB] allows.
const maxName = 256

// cffileSize is the size of a CFFILE without its name.
const cffileSize = 16

// The special values of CFFILE.iFolder.
const (
	folderPrev     = 0xfffd // continued from the previous cabinet: the first folder
	folderNext     = 0xfffe // continued in the next cabinet: the last folder
	folderPrevNext = 0xffff
)

func (c *Cabinet) readFiles(h header) *dump.Error {
	at := cursor.At(c.r, c.size, h.filesOffset, int64(h.files)*(cffileSize+maxName), "CFFILE")
	for i := range h.files {
		f, err := readFile(at, len(c.folders))
		if err == nil {
			c.files = append(c.files, f)
			continue
		}
		err.Msg = fmt.Sprintf("file %d of %d: %s", i+1, h.files, err.Msg)
		return err
	}
	return nil
}

func readFile(at *cursor.Cursor, folders int) (File, *dump.Error) {
	f := File{Size: int64(at.U32()), Offset: int64(at.U32())}
	index := at.U16()
	date, clock := at.U16(), at.U16()
	at.Skip(2) // attributes; its "name is UTF-8" bit is not needed, see readString
	f.Name = readString(at)
	if err := cursorError(at); err != nil {
		return f, err
	}
	f.Modified = dosTime(date, clock)
	f.Folder = int(index)
	switch index {
	case folderPrev, folderPrevNext:
		f.Folder, f.Spans = 0, true
	case folderNext:
		f.Folder, f.Spans = folders-1, true
	}
	if f.Folder < 0 || f.Folder >= folders {
		at.Fail(dump.BadRecord, "%q lies in folder %d of %d", f.Name, index, folders)
		return f, cursorError(at)
	}
	return f, nil
}

// readString reads a NUL-terminated name. Cabinets do not say which code page
// a name is in, so bytes that are not UTF-8 become U+FFFD rather than a guess.
func readString(at *cursor.Cursor) string {
	var name []byte
	for range maxName {
		ch := at.U8()
		if at.Err() != nil {
			return ""
		}
		if ch == 0 {
			return strings.ToValidUTF8(string(name), "\uFFFD")
		}
		name = append(name, ch)
	}
	at.Fail(dump.BadRecord, "a name is longer than %d bytes", maxName-1)
	return ""
}

// dosTime decodes an MS-DOS date (year since 1980:7, month:4, day:5) and time
// (hour:5, minute:6, second/2:5).
func dosTime(date, clock uint16) time.Time {
	year, month, day := 1980+int(date>>9), time.Month(date>>5&15), int(date&31)
	hour, minute, second := int(clock>>11), int(clock>>5&63), int(clock&31)*2
	t := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	if t.Day() != day || t.Month() != month || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return time.Time{} // time.Date normalised a value out of range
	}
	return t
}

// cursorError returns a cursor's error as the type that it always has.
func cursorError(at *cursor.Cursor) *dump.Error {
	if err := at.Err(); err != nil {
		if e, ok := err.(*dump.Error); ok {
			return e
		}
		return &dump.Error{Code: dump.IO, Stream: "CAB", Offset: -1, Size: -1, Msg: "cannot be read", Err: err}
	}
	return nil
}
