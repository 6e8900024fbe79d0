package crash

import (
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// A fault without an address is one of alignment only where the instruction wants
// its operand aligned and it is not: 32 bytes of vmovaps at a multiple of 16 are as
// wrong as 16 at a multiple of 8, and vmovups takes any address.
func TestMisaligned(t *testing.T) {
	for text, c := range map[string]struct {
		access triage.MemoryAccess
		want   Class
		as     Access
	}{
		"movaps xmm0, xmmword ptr [rcx]":         {triage.MemoryAccess{Address: 0x50008, Size: 16, Align: 16, Known: true}, MisalignedData, Read},
		"vmovaps ymm0, ymmword ptr [rcx]":        {triage.MemoryAccess{Address: 0x50010, Size: 32, Align: 32, Known: true}, MisalignedData, Read},
		"vmovdqa64 zmmword ptr [rcx], zmm0":      {triage.MemoryAccess{Address: 0x50020, Size: 64, Align: 64, Write: true, Known: true}, MisalignedData, Write},
		"vmovaps ymm0, ymmword ptr [rdx]":        {triage.MemoryAccess{Address: 0x50020, Size: 32, Align: 32, Known: true}, NonCanonical, Read},
		"vmovups ymm0, ymmword ptr [rcx]":        {triage.MemoryAccess{Address: 0x50008, Size: 32, Known: true}, NonCanonical, Read},
		"pcmpistrm xmm1, xmmword ptr [rcx], 0x1": {triage.MemoryAccess{Address: 0x50008, Size: 16, Known: true}, NonCanonical, Read},
		"vmovaps xmm0, xmmword ptr gs:[rcx]":     {triage.MemoryAccess{Size: 16, Align: 16}, NonCanonical, Read},
		"vmovaps xmm0, xmmword ptr [rdx]":        {triage.MemoryAccess{Address: 1 << 62, Size: 16, Align: 16, Known: true}, NonCanonical, Read},
	} {
		inc := incident(codeAccessViolation, frameIn(`C:\demo\app.exe`, "f"))
		inc.Crash.Parameters = []uint64{0, ^uint64(0)} // what Windows reports of a general protection fault
		inc.Crash.Context = regs(dump.AMD64, 0x1010, 0x9000)
		inc.Crash.Instruction = &triage.Instruction{Text: text, Accesses: []triage.MemoryAccess{c.access}}
		if v := Of(inc, nil); v.Class != c.want || v.Access != c.as {
			t.Errorf("%s: %s of %s, want %s of %s", text, v.Access, v.Class, c.as, c.want)
		}
	}
}
