package bugcheck

import "dumptriage/internal/cursor"

// Parts of a record, of section descriptors and of sections by offset and size that tell
// of an error. The others tell of a machine: its identity and that of its system, of the
// part to replace and its text, a device's serial number, the processor's brand.
var (
	usedHeader     = [][2]int{{0, 32}, {80, 16}}
	usedDescriptor = [][2]int{{0, 32}, {48, 4}}
	usedSections   = map[string][][2]int{
		"processor":     {{0, 24}, {152, 40}},
		"machine check": {{0, 8}, {16, 4}, {36, 28}},
		"memory":        {{0, 8}, {16, 8}, {32, 6}, {72, 1}},
		"PCI Express":   {{0, 12}, {24, 12}},
	}
)

// usedOfRecord lists the parts of a record, by offset and size, that ParseErrorRecord
// reads numbers from.
func usedOfRecord(b []byte) (out [][2]int) {
	add := func(at, size int, parts [][2]int) {
		for _, p := range parts {
			if n := min(p[1], size-p[0], len(b)-at-p[0]); n > 0 {
				out = append(out, [2]int{at + p[0], n})
			}
		}
	}
	add(0, recordHeader, usedHeader)
	c := cursor.New(b, recordStream, -1)
	c.Seek(10)
	sections := int(c.U16())
	c.Seek(recordHeader)
	for i := range min(sections, maxSections) {
		d := c.Sub(sectionHeader)
		offset, length := d.U32(), d.U32()
		d.Seek(16)
		kind := d.Bytes(16)
		if c.Err() != nil || d.Err() != nil {
			break
		}
		add(recordHeader+i*sectionHeader, sectionHeader, usedDescriptor)
		if int64(offset) < int64(len(b)) {
			add(int(offset), int(min(length, maxRecord)), usedSections[sectionTypes[[16]byte(kind)].name])
		}
	}
	return out
}
