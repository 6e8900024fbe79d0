package codes

import "fmt"

// kasanShadow names the shadow codes of memory that may not be touched at all.
var kasanShadow = map[uint8]string{
	0x81: "before a block on the stack", 0x82: "between blocks on the stack", 0x83: "behind a block on the stack",
	0x84: "behind a global variable", 0x85: "a red zone", 0x86: "behind a pool block", 0x87: "freed memory",
	0x8a: "before contiguous memory", 0x8b: "behind contiguous memory", 0x8c: "a freed lookaside block", 0x8d: "before a pool block",
	0xf1: "before a variable on the stack", 0xf2: "between variables on the stack", 0xf3: "behind a variable on the stack",
	0xf5: "a variable of a function that returned", 0xf8: "a variable out of scope",
}

// KASAN says in words what parameter 4 of KASAN_ILLEGAL_ACCESS holds: the shadow
// code of the memory and, in bit 8, whether it was written to.
func KASAN(v uint64) string {
	access := "read"
	if v>>8&1 != 0 {
		access = "write"
	}
	shadow := uint8(v)
	what := kasanShadow[shadow]
	switch {
	case shadow > 0 && shadow < 8:
		what = fmt.Sprintf("behind the %d valid bytes of 8", shadow)
	case what == "":
		what = fmt.Sprintf("shadow code %#x", shadow)
	}
	return access + ", " + what
}
