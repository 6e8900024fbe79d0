// Package dump is the vocabulary that every other package speaks: what a
// dump of a Windows process or kernel holds, whatever file format it came in.
//
// It reads no file format itself. Its values come from the readers (minidump,
// kdump) and so from files that are not trusted: a count, a size or an address
// in them is a claim of the file, and users of this package must treat it as
// one. Nothing here allocates by such a claim.
package dump

// Arch is a processor architecture.
type Arch uint8

// The architectures of Windows dumps. Dumps of any other are recognised by
// their readers and refused by name.
const (
	ArchUnknown Arch = iota
	AMD64            // IMAGE_FILE_MACHINE_AMD64 0x8664
	X86              // IMAGE_FILE_MACHINE_I386 0x014c
	ARM64            // IMAGE_FILE_MACHINE_ARM64 0xaa64
	ARM              // IMAGE_FILE_MACHINE_ARMNT 0x01c4, recognised only
)

// String returns the name that the JSON contract uses: amd64, x86, arm64, arm
// or unknown.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case X86:
		return "x86"
	case ARM64:
		return "arm64"
	case ARM:
		return "arm"
	}
	return "unknown"
}

// PointerSize returns the size of a pointer in bytes: 4 on x86 and ARM, else 8.
func (a Arch) PointerSize() int {
	if a == X86 || a == ARM {
		return 4
	}
	return 8
}

// Narrow drops the sign extension that dumps give the addresses of 32-bit
// code in their 64-bit fields: 0xffffffff80001234 is 0x80001234 there.
func (a Arch) Narrow(va uint64) uint64 {
	if a.PointerSize() == 4 && va>>31 == 0x1ffffffff {
		return va & 0xffffffff
	}
	return va
}

// ArchOfMachine translates an IMAGE_FILE_MACHINE value of a PE or kernel dump
// header.
func ArchOfMachine(machine uint16) Arch {
	switch machine {
	case 0x8664:
		return AMD64
	case 0x014c:
		return X86
	case 0xaa64:
		return ARM64
	case 0x01c4:
		return ARM
	}
	return ArchUnknown
}
