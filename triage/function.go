package triage

import (
	"dumptriage/dump"
	"dumptriage/symbols"
)

// FunctionCode returns the code of the function that a frame is in when only its
// start is known, from there on and at most limit bytes of it; nil when any of
// them are missing, since half a function could be another's. A part that stands
// away from its function, as optimizing by profile puts it, takes no part.
func (v *View) FunctionCode(f *Frame, limit int) (arch dump.Arch, code []byte) {
	if v == nil || v.space == nil || f.Module == nil || f.Name.Source != symbols.SourcePdata {
		return dump.ArchUnknown, nil
	}
	im, base := v.space.Image(f.Lookup)
	if im == nil {
		return dump.ArchUnknown, nil
	}
	start := uint32(f.IP - base - f.Name.Offset)
	begin, end, ok := im.Extent(start)
	if !ok || begin != start || end <= begin || limit <= 0 {
		return dump.ArchUnknown, nil
	}
	code = make([]byte, min(uint64(end-begin), uint64(limit)))
	if _, err := im.ReadRVA(code, begin); err != nil {
		return dump.ArchUnknown, nil
	}
	return dump.ArchOfMachine(im.Identity().Machine), code
}
