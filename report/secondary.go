package report

import "dumptriage/triage/bugcheck"

// Blob is a record of secondary data in a kernel dump.
type Blob struct {
	GUID   [16]byte
	Offset int64 // in the file, of its data
	Size   int64
}

// Stream lists a record of secondary data as a part of the file.
func (b Blob) Stream() Stream {
	named := bugcheck.NameBlob(b.GUID, b.Size)
	name := named.Name
	if name == "" {
		name = guidText(b.GUID)
	}
	return Stream{Name: "SecondaryData " + name, Offset: b.Offset, Size: b.Size, Note: named.Holds}
}
