package pdata

import "dumptriage/dump"

// CodeView returns the image's debug identity; Signature is "" without one.
func (im *Image) CodeView() dump.CodeView { return dump.CodeView{} }
