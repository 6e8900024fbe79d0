package pdata

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	debugStream       = "debug directory"
	debugEntrySize    = 28
	debugTypeCodeView = 2 // IMAGE_DEBUG_TYPE_CODEVIEW
	maxDebugEntries   = 64
	maxCodeView       = 4096 // header and the longest path

	sigRSDS = 0x53445352 // "RSDS"
	sigNB10 = 0x3031424e // "NB10"
)

// CodeView returns the image's debug identity; Signature is "" without one, or
// when its record cannot be read.
func (im *Image) CodeView() dump.CodeView {
	im.codeViewOnce.Do(func() { im.codeView = im.readCodeView() })
	return im.codeView
}

func (im *Image) readCodeView() dump.CodeView {
	d := im.h.dirs[dirDebug]
	if d.rva == 0 {
		return dump.CodeView{}
	}
	b := make([]byte, min(d.size/debugEntrySize, maxDebugEntries)*debugEntrySize)
	n, _ := im.layout.read(b, d.rva)
	c := cursor.New(b[:n], debugStream, -1)
	for c.Left() >= debugEntrySize {
		c.Skip(12) // Characteristics, TimeDateStamp, version
		kind, size, rva, off := c.U32(), c.U32(), c.U32(), c.U32()
		if kind != debugTypeCodeView {
			continue
		}
		if cv := ParseCodeView(im.debugData(rva, off, size)); cv.Signature != "" {
			return cv
		}
	}
	return dump.CodeView{}
}

// debugData reads a debug record, in a file also where it is not mapped.
func (im *Image) debugData(rva, off, size uint32) []byte {
	b := make([]byte, min(size, maxCodeView))
	if rva != 0 {
		if n, _ := im.layout.read(b, rva); n > 0 {
			return b[:n]
		}
	}
	if im.file == nil || int64(off) >= im.size {
		return nil
	}
	n, _ := im.file.ReadAt(b[:min(int64(len(b)), im.size-int64(off))], int64(off))
	return b[:n]
}

// ParseCodeView decodes a CodeView record that names a PDB: RSDS (signature,
// GUID, age, path) or NB10 (signature, offset, time stamp, age, path). The
// Signature of the result is "" for any other, or when its fixed part is cut.
func ParseCodeView(b []byte) dump.CodeView {
	c := cursor.New(b, "CodeView", -1)
	var cv dump.CodeView
	switch c.U32() {
	case sigRSDS:
		cv.Signature = "RSDS"
		copy(cv.GUID[:], c.Bytes(len(cv.GUID)))
		cv.Age = c.U32()
	case sigNB10:
		cv.Signature = "NB10"
		c.Skip(4)
		cv.Stamp, cv.Age = c.U32(), c.U32()
	}
	if c.Err() != nil || cv.Signature == "" {
		return dump.CodeView{}
	}
	cv.PDB = cursor.CString(c.Bytes(c.Left()))
	return cv
}
