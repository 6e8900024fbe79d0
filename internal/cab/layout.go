package cab

import (
	"fmt"
	"io"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// The flags of CFHEADER.
const (
	flagPrev    = 1 // szCabinetPrev and szDiskPrev are present
	flagNext    = 2 // szCabinetNext and szDiskNext are present
	flagReserve = 4 // the sizes of the reserved areas are present
)

const (
	headerSize = 36 // CFHEADER up to iCabinet
	folderSize = 8  // CFFOLDER without its reserved area
	// headerMost is the most that a header can take: its fixed part, three sizes
	// (4 bytes), the reserved area (at most 60,000 by [MS-CAB], 65,535 by its
	// field) and four names.
	headerMost = headerSize + 4 + 65535 + 4*maxName
)

// header is what is needed of CFHEADER.
type header struct {
	size          int64 // cbCabinet
	filesOffset   int64 // coffFiles
	folders       int
	files         int
	foldersOffset int64
	folderReserve int // bytes after each CFFOLDER
	dataReserve   int // bytes after each CFDATA's fixed part
	prev, next    string
}

func readHeader(r io.ReaderAt, size int64) (header, error) {
	var h header
	at := cursor.At(r, size, 0, headerMost, "CFHEADER")
	if at.Left() < len(Magic) || string(at.Bytes(len(Magic))) != Magic {
		if err := at.Err(); err != nil {
			return h, err
		}
		return h, &dump.Error{Code: dump.UnsupportedFormat, Stream: "CFHEADER", Offset: 0, Size: 4, Msg: "not a cabinet: it does not begin with MSCF"}
	}
	at.Skip(4) // reserved1
	h.size = int64(at.U32())
	at.Skip(4) // reserved2
	h.filesOffset = int64(at.U32())
	at.Skip(4) // reserved3
	minor, major := at.U8(), at.U8()
	h.folders, h.files = int(at.U16()), int(at.U16())
	flags := at.U16()
	at.Skip(4) // setID, iCabinet
	if at.Err() == nil && major != 1 {
		return h, &dump.Error{Code: dump.UnsupportedFormat, Stream: "CFHEADER", Offset: 24, Size: 2, Msg: fmt.Sprintf("a cabinet of version %d.%d; 1.3 is known", major, minor)}
	}
	if flags&flagReserve != 0 {
		own := int(at.U16())
		h.folderReserve, h.dataReserve = int(at.U8()), int(at.U8())
		at.Skip(own)
	}
	if flags&flagPrev != 0 {
		h.prev = readString(at)
		readString(at)
	}
	if flags&flagNext != 0 {
		h.next = readString(at)
		readString(at)
	}
	h.foldersOffset = at.FileOffset()
	return h, at.Err()
}

// folder is a CFFOLDER: a run of data blocks that unpack to one byte sequence.
type folder struct {
	offset int64 // of the first CFDATA
	blocks int   // number of CFDATA, as claimed
	method Compression
	window int // LZX: log2 of the window size
}

func readFolders(r io.ReaderAt, size int64, h header) ([]folder, error) {
	each := folderSize + h.folderReserve
	at := cursor.At(r, size, h.foldersOffset, int64(h.folders)*int64(each), "CFFOLDER")
	n, err := at.Count(uint64(h.folders), each)
	if err != nil {
		return nil, err
	}
	folders := make([]folder, n)
	for i := range folders {
		f := &folders[i]
		f.offset = int64(at.U32())
		f.blocks = int(at.U16())
		method := at.U16()
		f.method, f.window = Compression(method&15), int(method>>8&31)
		at.Skip(h.folderReserve)
	}
	return folders, at.Err()
}
