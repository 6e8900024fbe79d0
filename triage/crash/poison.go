package crash

import "dumptriage/dump"

// Pattern is a value that memory managers write over memory, so that a pointer
// read from there shows what it was.
type Pattern struct {
	Value   uint32 // 32 bits, repeated to the width of a pointer
	Class   Class
	Meaning string
}

// patterns are the public ones. Sources: the documentation of the MSVC debug
// heap and of /RTC, of Application Verifier's page heap, of HeapAlloc under a
// debugger, mozjemalloc's, PartitionAlloc's and WebKit's.
var patterns = []Pattern{
	{0xdddddddd, UseAfterFree, "memory that the debug C runtime freed"},
	{0xfeeefeee, UseAfterFree, "memory that HeapFree freed under a debugger"},
	{0xf0f0f0f0, UseAfterFree, "memory that page heap freed"},
	{0xe5e5e5e5, UseAfterFree, "memory that mozjemalloc freed"},
	{0xefefefef, UseAfterFree, "memory that PartitionAlloc holds in quarantine"},
	{0x5a5a5a5a, UseAfterFree, "memory that jemalloc freed"},
	{0xcdcdcdcd, Uninitialized, "heap memory of the debug C runtime, never written"},
	{0xcccccccc, Uninitialized, "a local variable in code built with /RTC, never written"},
	{0xbaadf00d, Uninitialized, "heap memory under a debugger, never written"},
	{0xc0c0c0c0, Uninitialized, "memory of page heap, never written"},
	{0xe0e0e0e0, Uninitialized, "memory of light page heap, never written"},
	{0xe4e4e4e4, Uninitialized, "memory of mozjemalloc, never written"},
	{0xabababab, OutOfBounds, "the bytes behind a heap block under a debugger"},
	{0xfdfdfdfd, OutOfBounds, "the bytes around a block of the debug C runtime"},
	{0xedededed, OutOfBounds, "the bytes around an aligned block of the debug C runtime"},
	{0xa0a0a0a0, OutOfBounds, "the bytes behind a block of light page heap"},
	{0xbbadbeef, Deliberate, "a crash that WebKit's WTFCrash makes"},
	{0xdeadbeef, WildPointer, "a value that programmers mark bad memory with"},
}

// patternReach is how far from a pattern an address may be that was computed
// from it: the offset of a field.
const patternReach = 0x10000

// width repeats a pattern to the width of a pointer. One that is not made of
// equal bytes or halves stands alone as well: 0xbbadbeef is a 64-bit address too.
func (p *Pattern) width(arch dump.Arch) uint64 {
	if arch.PointerSize() == 4 {
		return uint64(p.Value)
	}
	return uint64(p.Value)<<32 | uint64(p.Value)
}

// patternAt finds the pattern that an address was computed from.
func patternAt(va uint64, arch dump.Arch) *Pattern {
	for i := range patterns {
		p := &patterns[i]
		if near(va, p.width(arch)) || p.Value == 0xbbadbeef && near(va, uint64(p.Value)) {
			return p
		}
	}
	return nil
}

func near(va, value uint64) bool {
	d := va - value
	return d < patternReach || -d < patternReach/16
}
