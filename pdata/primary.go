package pdata

// Primary follows chained unwind information to the function's first entry.
// Where a link cannot be read it returns the last entry reached; a chain that
// does not end within 32 links has no first entry, and rf is returned.
func (im *Image) Primary(rf RuntimeFunction) RuntimeFunction {
	at := rf
	for range maxLinks {
		info, err := im.UnwindInfo(at.UnwindInfo)
		if err != nil || !info.Chained {
			return at
		}
		at = info.Chain
	}
	return rf
}
