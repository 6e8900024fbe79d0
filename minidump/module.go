package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// ModuleRecord is an entry of the ModuleList stream.
type ModuleRecord struct {
	dump.Module
	// CodeViewSignature is the first four bytes of the CodeView record: RSDS,
	// NB10, or another writer's such as BpEL (an ELF build id). 0 without record.
	CodeViewSignature uint32
	CodeViewAt        Location
	Misc              *DebugMisc
	Fixed             *FixedFileInfo // nil without version resource
}

// DebugMisc is an IMAGE_DEBUG_MISC record, which older linkers used to name the
// .dbg file.
type DebugMisc struct {
	Type uint32 // IMAGE_DEBUG_MISC_EXENAME 1
	Data string
}

// FixedFileInfo is the part of VS_FIXEDFILEINFO that dump.Module has no place
// for.
type FixedFileInfo struct {
	FlagsMask, Flags  uint32 // VS_FF_*
	OS, Type, Subtype uint32 // VOS_*, VFT_*, VFT2_*
	Date              uint64
}

const (
	moduleSize       = 108
	unloadedSize     = 24
	maxModules       = 1 << 16
	maxCodeView      = 0x2000 // room for the longest PDB path that linkers write
	fixedInfoMagic   = 0xfeef04bd
	cvRSDS           = 0x53445352
	cvNB10           = 0x3031424e
	cvRSDSHeader     = 24
	cvNB10Header     = 16
	debugMiscHeader  = 12
	modulePathIsText = "a module's path"
)

// ModuleList returns the ModuleList stream.
func (f *File) ModuleList() ([]ModuleRecord, error) {
	return f.moduleList.get(f, (*File).decodeModuleList)
}

// HostModules returns the modules of the Unix side of a process that ran under
// Wine, which its dumps list in a stream of their own.
func (f *File) HostModules() ([]ModuleRecord, error) {
	return f.hostModules.get(f, func(f *File) ([]ModuleRecord, *dump.Error) { return f.decodeModules(StreamWineHostModules) })
}

func (f *File) decodeModuleList() ([]ModuleRecord, *dump.Error) {
	return f.decodeModules(StreamModuleList)
}

func (f *File) decodeModules(streamType uint32) ([]ModuleRecord, *dump.Error) {
	c, fs, n := f.openList(streamType, moduleSize, maxModules)
	if c == nil {
		return nil, fs.done()
	}
	out := make([]ModuleRecord, n)
	text := f.texts(fs)
	misc := make([]Location, n)
	for i := range out {
		m := &out[i]
		m.Base, m.Size, m.CheckSum, m.TimeDateStamp = c.U64(), uint64(c.U32()), c.U32(), c.U32()
		name := int64(c.U32())
		m.readVersion(c)
		m.CodeViewAt = location(c)
		misc[i] = location(c)
		c.Skip(16)
		m.Path = text.utf16(name, modulePathIsText)
	}
	// Writers keep names and debug records apart: two passes read each area once.
	for i := range out {
		out[i].readCodeView(text)
		out[i].readMisc(text, misc[i])
	}
	fs.add(c.Err())
	return out, fs.done()
}

// readVersion reads the 52 bytes of VS_FIXEDFILEINFO.
func (m *ModuleRecord) readVersion(c *cursor.Cursor) {
	magic := c.U32()
	c.Skip(4)
	var v [4]uint32
	for i := range v {
		v[i] = c.U32()
	}
	info := FixedFileInfo{FlagsMask: c.U32(), Flags: c.U32(), OS: c.U32(), Type: c.U32(), Subtype: c.U32()}
	high := c.U32()
	info.Date = uint64(high)<<32 | uint64(c.U32())
	if magic != fixedInfoMagic || c.Err() != nil {
		return
	}
	m.Version = fileVersion(v[0], v[1])
	m.Product = fileVersion(v[2], v[3])
	m.Fixed = &info
}

func fileVersion(ms, ls uint32) dump.FileVersion {
	return dump.FileVersion{uint16(ms >> 16), uint16(ms), uint16(ls >> 16), uint16(ls)}
}

// readCodeView reads the record that ties the image to its PDB. Records of
// other writers are left to CodeViewSignature.
func (m *ModuleRecord) readCodeView(text *texts) {
	at := m.CodeViewAt
	if at.Size < 4 {
		return
	}
	n := int(min(at.Size, maxCodeView))
	c := cursor.New(text.blob(at.Offset, n, "a CodeView record"), text.fs.stream, at.Offset)
	if c.Len() < min(n, 4) {
		return
	}
	m.CodeViewSignature = c.U32()
	cv := dump.CodeView{}
	switch m.CodeViewSignature {
	case cvRSDS:
		cv.Signature = "RSDS"
		copy(cv.GUID[:], c.Bytes(16))
		cv.Age = c.U32()
	case cvNB10:
		cv.Signature = "NB10"
		c.Skip(4) // offset, always 0
		cv.Stamp, cv.Age = c.U32(), c.U32()
	default:
		return
	}
	if c.Err() != nil { // half an identity identifies nothing
		if c.Len() == n {
			text.fs.add(c.Err())
		}
		return
	}
	cv.PDB = cursor.CString(c.Bytes(c.Left()))
	m.CodeView = cv
}

func (m *ModuleRecord) readMisc(text *texts, at Location) {
	if at.Size <= debugMiscHeader {
		return
	}
	c := cursor.New(text.blob(at.Offset, int(min(at.Size, maxCodeView)), "a debug record"), text.fs.stream, at.Offset)
	kind, length, unicode := c.U32(), c.U32(), c.U8()
	c.Skip(3)
	if c.Err() != nil || length < debugMiscHeader {
		return
	}
	data := c.Bytes(min(int(length-debugMiscHeader), c.Left()))
	m.Misc = &DebugMisc{Type: kind, Data: cursor.CString(data)}
	if unicode != 0 {
		m.Misc.Data = cursor.UTF16(data)
	}
}

// Modules implements dump.Source.
func (f *File) Modules() []dump.Module {
	m, _ := f.modules.get(f, func(f *File) ([]dump.Module, *dump.Error) {
		records, _ := f.ModuleList()
		out := make([]dump.Module, len(records))
		for i := range records {
			out[i] = records[i].Module
		}
		return out, nil
	})
	return m
}

// UnloadedModuleList returns the UnloadedModuleList stream.
func (f *File) UnloadedModuleList() ([]dump.Module, error) {
	return f.unloaded.get(f, (*File).decodeUnloaded)
}

// UnloadedModules implements dump.Source.
func (f *File) UnloadedModules() []dump.Module {
	m, _ := f.UnloadedModuleList()
	return m
}

func (f *File) decodeUnloaded() ([]dump.Module, *dump.Error) {
	c, fs := f.open(StreamUnloadedModuleList, tableLimit)
	if c == nil {
		return nil, fs.done()
	}
	header, record, count := c.U32(), c.U32(), c.U32()
	n := fs.table(c, header, record, 12, unloadedSize, uint64(count), maxModules)
	out := make([]dump.Module, 0, n)
	text := f.texts(fs)
	for range n {
		r := c.Sub(int(record))
		m := dump.Module{Base: r.U64(), Size: uint64(r.U32()), CheckSum: r.U32(), TimeDateStamp: r.U32(), Unloaded: true}
		m.Path = text.utf16(int64(r.U32()), modulePathIsText)
		out = append(out, m)
	}
	return out, fs.done()
}
