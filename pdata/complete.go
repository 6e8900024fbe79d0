package pdata

import "dumptriage/dump"

// Complete returns nil when a file is long enough for the data of all its
// sections, else a *dump.Error of code Truncated. Of a mapped image it says
// nothing.
func (im *Image) Complete() error {
	if im.file == nil {
		return nil
	}
	for _, s := range im.h.table {
		n := s.rawSize
		if s.virtualSize != 0 { // linkers round up what is raw
			n = min(n, s.virtualSize)
		}
		if end := int64(s.rawOff) + int64(n); n != 0 && end > im.size {
			return &dump.Error{Code: dump.Truncated, File: im.name, Stream: headerStream, Offset: im.size, Size: end - im.size, Msg: "the file ends before the data of its sections"}
		}
	}
	return nil
}
