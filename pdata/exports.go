package pdata

type exportIndex struct{}

// Symbol is an exported symbol.
type Symbol struct {
	Name string
	RVA  uint32
}

// NearestExport returns the exported function at or below an RVA, by the
// contract's preference when several names share the address.
func (im *Image) NearestExport(rva uint32) (Symbol, bool) { return Symbol{}, false }
