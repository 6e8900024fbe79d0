package symbols

import (
	"fmt"

	"dumptriage/pdata"
)

// exportReach is how far from an exported start an address may lie when no
// unwind table says where the function ends: beyond it the nearest export is
// more likely another function's name.
const exportReach = 0x1000

// NameOf names an address in an image. Both are RVAs: lookup is where the code
// is looked up (one byte before a return address), ip what Offset counts from.
// An export is used only when nothing proves that it belongs to another
// function; failing that the start of the function by .pdata is the name. Code
// that was moved away from its function is named after the function all the
// same, unless it lies before it, where no offset leads.
func NameOf(im *pdata.Image, lookup, ip uint32) Name {
	sym, ok := im.NearestExport(lookup)
	start, proved := im.FunctionStart(lookup)
	if !proved {
		if ok && lookup-sym.RVA < exportReach && !endsBefore(im, sym.RVA, lookup) {
			return ofExport(sym, ip)
		}
		return Name{Source: SourceNone}
	}
	if !ok || !inFunction(im, sym.RVA, start) {
		sym, ok = im.NearestExport(start)
		ok = ok && sym.RVA == start
	}
	if ok && sym.RVA <= ip {
		return ofExport(sym, ip)
	}
	if start > ip {
		start, _, _ = im.Extent(lookup)
	}
	return Name{Function: fmt.Sprintf("fn@%x", start), Offset: uint64(ip - start), Source: SourcePdata}
}

func ofExport(sym pdata.Symbol, ip uint32) Name {
	n := Name{Offset: uint64(ip - sym.RVA), Source: SourceExport}
	n.Function, n.Full = exportName(sym.Name)
	return n
}

// inFunction reports whether an address belongs to the function that begins at
// start.
func inFunction(im *pdata.Image, rva, start uint32) bool {
	s, ok := im.FunctionStart(rva)
	return ok && s == start
}

// endsBefore reports whether the function at an export is known to end at or
// before an address.
func endsBefore(im *pdata.Image, export, addr uint32) bool {
	_, end, ok := im.Extent(export)
	return ok && end <= addr
}
