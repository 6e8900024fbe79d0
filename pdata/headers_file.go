package pdata

import (
	"io"

	"github.com/saferwall/pe"
	"github.com/saferwall/pe/log"
)

// silent keeps the library's messages off stdout, where results go.
var silent = log.NewFilter(log.NewStdLogger(io.Discard), log.FilterLevel(log.LevelFatal))

// fileNT reads the NT headers of an image file through saferwall/pe.
//
// The fast mode is run step by step over the headers alone instead of through
// Parse over the whole file: Parse also walks the Rich header without bounds
// and the COFF symbols, and over a prefix it gives up at the first section
// that lies beyond 256 MiB, losing all that follow (a test shows it). Sections
// are read by readSections, which mapped images need in any case.
//
// What the library refuses is parsed by parseNT: it demands room for all
// sixteen data directories and an image base on a 64 KiB boundary, which an
// image saved out of memory need not have. Its refusal gives the error then.
func fileNT(prefix []byte, off int64) (ntHeaders, error) {
	f, err := pe.NewBytes(prefix, &pe.Options{Fast: true, Logger: silent})
	if err != nil {
		return parseNT(prefix, off)
	}
	if f.ParseDOSHeader() != nil || f.ParseNTHeader() != nil {
		return parseNT(prefix, off)
	}
	fh := &f.NtHeader.FileHeader
	h := ntHeaders{
		id:           Identity{Machine: uint16(fh.Machine), TimeDateStamp: fh.TimeDateStamp},
		sections:     fh.NumberOfSections,
		symbolTable:  fh.PointerToSymbolTable != 0,
		optionalSize: fh.SizeOfOptionalHeader,
		library:      uint16(fh.Characteristics)&fileDLL != 0,
	}
	switch oh := f.NtHeader.OptionalHeader.(type) {
	case pe.ImageOptionalHeader64:
		h.id.SizeOfImage, h.id.CheckSum = oh.SizeOfImage, oh.CheckSum
		h.sectionAlignment, h.sizeOfHeaders, h.entry = oh.SectionAlignment, oh.SizeOfHeaders, oh.AddressOfEntryPoint
		h.setDirs(oh.DataDirectory, directories(oh.NumberOfRvaAndSizes, h.optionalSize, optionalSize64))
	case pe.ImageOptionalHeader32:
		h.id.SizeOfImage, h.id.CheckSum = oh.SizeOfImage, oh.CheckSum
		h.sectionAlignment, h.sizeOfHeaders, h.entry = oh.SectionAlignment, oh.SizeOfHeaders, oh.AddressOfEntryPoint
		h.setDirs(oh.DataDirectory, directories(oh.NumberOfRvaAndSizes, h.optionalSize, optionalSize32))
	default:
		return parseNT(prefix, off)
	}
	return h, nil
}

func (h *ntHeaders) setDirs(dirs [numDirs]pe.DataDirectory, n int) {
	for i := range n {
		h.dirs[i] = directory{dirs[i].VirtualAddress, dirs[i].Size}
	}
}
