package bugcheck

import "dumptriage/dump"

// Region is the part of the address space that an address lies in. Its text is part
// of the JSON contract.
type Region string

// The regions.
const (
	RegionUnknown      Region = ""
	RegionNull         Region = "null"          // the first 64 KB, where hardly anything is ever mapped: mostly a null pointer and an offset
	RegionUser         Region = "user"          // what processes may use
	RegionKernel       Region = "kernel"        // what only the kernel may
	RegionNotCanonical Region = "not_canonical" // what no processor can address
)

// RegionOf tells which region an address lies in. With five levels of page tables
// the processor takes 57 bits; whether it has them is not known, so only what has
// neither form is none.
func RegionOf(arch dump.Arch, va uint64) Region {
	const (
		nothing          = 0x10000
		user32, kernel32 = 0x80000000, 0xc0000000 // between them it depends on /3GB
		user48, kernel48 = 0x0000_8000_0000_0000, 0xffff_8000_0000_0000
		user57, kernel57 = 0x0100_0000_0000_0000, 0xff00_0000_0000_0000
	)
	wide := arch.PointerSize() == 8
	switch {
	case va < nothing:
		return RegionNull
	case !wide && va < user32 || wide && va < user48:
		return RegionUser
	case !wide && va >= kernel32 || wide && va >= kernel48:
		return RegionKernel
	case arch == dump.AMD64 && va >= user57 && va < kernel57:
		return RegionNotCanonical
	}
	return RegionUnknown
}
