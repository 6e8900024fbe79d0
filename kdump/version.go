package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// The resource tree of a PE image: directories of 16 bytes and entries of 8, for
// type, name and language; then an IMAGE_RESOURCE_DATA_ENTRY. The version resource
// is a VS_VERSIONINFO, whose value is a VS_FIXEDFILEINFO. All of it is published by
// Microsoft.
const (
	resourceStream    = "resources"
	versionType       = 16 // RT_VERSION
	subdirectory      = 1 << 31
	mostResourceTypes = 256
	// The value follows three 16-bit fields and the key "VS_VERSION_INFO" with its
	// terminator, on a 32-bit border.
	versionValue     = 6 + 2*16 + 2
	versionSignature = 0xfeef04bd
	versionSize      = versionValue + 0x34
)

// readVersion reads the versions in an image's version resource, as far as its
// pages are in the dump. Root is the RVA of the resource directory.
func readVersion(m dump.Memory, mod *dump.Module, root uint32) {
	at, ok := resourceEntry(m, mod, root, 0, func(id uint32) bool { return id == versionType })
	anyone := func(uint32) bool { return true }
	for level := 0; ok && at&subdirectory != 0 && level < 2; level++ { // name, language: the first of each
		at, ok = resourceEntry(m, mod, root, at&^subdirectory, anyone)
	}
	if !ok || at&subdirectory != 0 {
		return
	}
	rva, err := dump.ReadUint32(m, mod.Base+uint64(root)+uint64(at))
	if err != nil || rva == 0 || uint64(rva) >= mod.Size {
		return
	}
	b := make([]byte, versionSize)
	n, _ := m.ReadAt(b, mod.Base+uint64(rva))
	c := cursor.New(b[:n], resourceStream, -1)
	c.Seek(2)
	length := c.U16() // of the value
	c.Seek(versionValue)
	signature := c.U32()
	c.U32() // version of the structure
	var v [4]uint32
	for i := range v {
		v[i] = c.U32()
	}
	if c.Err() != nil || signature != versionSignature || length < 0x34 {
		return
	}
	mod.Version = dump.FileVersion{uint16(v[0] >> 16), uint16(v[0]), uint16(v[1] >> 16), uint16(v[1])}
	mod.Product = dump.FileVersion{uint16(v[2] >> 16), uint16(v[2]), uint16(v[3] >> 16), uint16(v[3])}
}

// resourceEntry returns the offset in the first entry of a directory that is
// wanted; with its top bit set it is that of another directory.
func resourceEntry(m dump.Memory, mod *dump.Module, root, directory uint32, want func(id uint32) bool) (uint32, bool) {
	const head, entry = 16, 8
	at := uint64(root) + uint64(directory)
	if at >= mod.Size {
		return 0, false
	}
	b := make([]byte, head+mostResourceTypes*entry)
	n, _ := m.ReadAt(b, mod.Base+at)
	c := cursor.New(b[:n], resourceStream, -1)
	c.Seek(12)
	for range int(c.U16()) + int(c.U16()) { // those with a name, then those with a number
		id, offset := c.U32(), c.U32()
		if c.Err() != nil {
			break
		}
		if want(id) {
			return offset, true
		}
	}
	return 0, false
}
