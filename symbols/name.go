package symbols

import (
	"fmt"
	"strings"

	"dumptriage/dump"
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

// NameIn names an address by a module's debug information and its image, either
// of which may be nil. A public symbol is used, like an export, only when nothing
// proves that the address belongs to another function; that function's own symbol
// then takes its place.
func NameIn(d Debug, im *pdata.Image, lookup, ip uint32) Name {
	var n Name
	ok := false
	if d != nil {
		n, ok = d.Name(lookup, ip)
	}
	switch {
	case im == nil && !ok:
		return Name{Source: SourceNone}
	case im == nil, ok && (!n.Public || reaches(im, ip-uint32(n.Offset), lookup)):
		return n
	}
	if start, proved := im.FunctionStart(lookup); d != nil && proved && start <= ip {
		if s, ok := d.Name(start, start); ok && s.Offset == 0 {
			s.Offset, s.File, s.Line, s.Inlines = uint64(ip-start), n.File, n.Line, n.Inlines
			return s
		}
	}
	return NameOf(im, lookup, ip)
}

// reaches reports whether nothing proves that the function at a symbol is not the
// one that holds an address.
func reaches(im *pdata.Image, symbol, addr uint32) bool {
	if start, proved := im.FunctionStart(addr); proved {
		return inFunction(im, symbol, start)
	}
	return !endsBefore(im, symbol, addr)
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
// before an address: by the function table or, on x86, which has none, by the
// code between them.
func endsBefore(im *pdata.Image, export, addr uint32) bool {
	if dump.ArchOfMachine(im.Identity().Machine) == dump.X86 {
		return beginsBetween86(im, export, addr)
	}
	_, end, ok := im.Extent(export)
	return ok && end <= addr
}

// beginsBetween86 reports whether another function begins behind an export, at
// or before an address: at the customary first instructions, behind filling or
// a return; or behind a return with filling of int3, which nothing else makes.
func beginsBetween86(im *pdata.Image, export, addr uint32) bool {
	var buf [exportReach + len(hotpatch86)]byte
	code := buf[:min(addr-export+uint32(len(hotpatch86)), uint32(len(buf)))]
	n, _ := im.ReadRVA(code, export)
	code = code[:n]
	filled := false // by int3 since a return
	for i := 1; i < n && uint32(i) <= addr-export; i++ {
		before := code[:i]
		filled = code[i-1] == 0xcc && (filled || returns86(before[:i-1]))
		begins := strings.HasPrefix(string(code[i:]), frame86) || strings.HasPrefix(string(code[i:]), frameGNU86) || strings.HasPrefix(string(code[i:]), hotpatch86)
		if begins && (code[i-1] == 0xcc || code[i-1] == 0x90 || returns86(before)) || filled && code[i] != 0xcc {
			return true
		}
	}
	return false
}

// What 32-bit functions begin with.
const (
	frame86    = "\x55\x8b\xec"         // push ebp; mov ebp, esp
	frameGNU86 = "\x55\x89\xe5"         // the same, as other assemblers encode it
	hotpatch86 = "\x8b\xff\x55\x8b\xec" // mov edi, edi before it
)

// returns86 reports whether code ends in a return.
func returns86(code []byte) bool {
	n := len(code)
	return n >= 1 && code[n-1] == 0xc3 || n >= 3 && code[n-3] == 0xc2 && code[n-1] == 0
}
