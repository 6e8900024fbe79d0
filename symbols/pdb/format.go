package pdb

import (
	"bytes"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Format is what a file is by its first bytes.
type Format string

// The formats that Sniff tells apart. Only FormatMSF7 and FormatMSFZ can be opened.
const (
	FormatMSF7     Format = "MSF 7.00"
	FormatMSF2     Format = "MSF 2.00"     // Visual C++ 6 and earlier
	FormatMSFZ     Format = "MSFZ"         // compressed PDB of recent Visual Studio
	FormatPortable Format = "portable PDB" // managed code: ECMA-335 metadata
	FormatUnknown  Format = ""
)

const magicMSF7 = "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"

// magicBytes is at least as many as the longest magic has.
const magicBytes = 64

// magics holds the first bytes of each format, and of files that are easily
// taken for a PDB, with what to tell the user.
var magics = []struct {
	prefix string
	format Format
	what   string
}{
	{magicMSF7, FormatMSF7, ""},
	{"Microsoft C/C++ program database 2.00\r\n\x1aJG", FormatMSF2, "is a PDB of the old format MSF 2.00, which is not read"},
	{magicMSFZ, FormatMSFZ, ""},
	{"BSJB", FormatPortable, "is a portable PDB (managed code), which holds no native symbols"},
	{"MZ", FormatUnknown, "is an executable image, not a PDB"},
	{"MSCF", FormatUnknown, "is a cabinet, not a PDB; unpack it first"},
	{"\x28\xb5\x2f\xfd", FormatUnknown, "is compressed with zstd; unpack it first"},
	{"\x1f\x8b", FormatUnknown, "is compressed with gzip; unpack it first"},
	{"MODULE ", FormatUnknown, "is a Breakpad symbol file, not a PDB"},
}

// Sniff tells a file's format by its first bytes.
func Sniff(r io.ReaderAt) Format {
	head := make([]byte, magicBytes)
	n, _ := r.ReadAt(head, 0)
	f, _ := sniff(head[:max(n, 0)])
	return f
}

func sniff(head []byte) (Format, string) {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return m.format, m.what
		}
	}
	return FormatUnknown, "is not a PDB"
}

// checkFormat returns the format of a file that can be read, and for others an
// error that names what they are.
func checkFormat(r io.ReaderAt, size int64) (Format, error) {
	c := cursor.At(r, size, 0, magicBytes, "MSF")
	head := c.Bytes(c.Left())
	if err := c.Err(); err != nil {
		return "", err
	}
	format, what := sniff(head)
	if format == FormatMSF7 || format == FormatMSFZ {
		return format, nil
	}
	if len(head) == 0 {
		what = "is empty"
	}
	return format, &dump.Error{Code: dump.UnsupportedFormat, Stream: "MSF", Offset: 0, Size: int64(len(head)), Msg: what}
}
