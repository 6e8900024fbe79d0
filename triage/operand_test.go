package triage

import (
	"testing"

	"dumptriage/dump"
)

// TestOperands decodes single instructions, assembled by hand from the
// processor manual's opcode tables.
func TestOperands(t *testing.T) {
	const pc = 0x140001000
	regs := dump.Registers{Arch: dump.AMD64}
	regs.Set(dump.RCX, 0x8000000000001000)
	regs.Set(dump.RBX, 0xffffffff00002000)
	for _, c := range []struct {
		what  string
		code  []byte
		addr  uint64
		write bool
		known bool
	}{
		{"mov eax, [rcx+10h]", []byte{0x8b, 0x41, 0x10}, 0x8000000000001010, false, true},
		{"mov [rcx+10h], eax", []byte{0x89, 0x41, 0x10}, 0x8000000000001010, true, true},
		// A 67 prefix makes the address 32 bits wide: the upper halves of the
		// registers do not count.
		{"mov eax, [ebx+8]", []byte{0x67, 0x8b, 0x43, 0x08}, 0x2008, false, true},
		{"mov eax, [rip+20h]", []byte{0x8b, 0x05, 0x20, 0, 0, 0}, pc + 6 + 0x20, false, true},
		{"mov eax, [rdx]", []byte{0x8b, 0x02}, 0, false, false},                // rdx is not known
		{"mov rax, gs:[rcx]", []byte{0x65, 0x48, 0x8b, 0x01}, 0, false, false}, // the base of gs neither
		{"fadd qword [rcx]", []byte{0xdc, 0x01}, 0x8000000000001000, false, true},
		{"fstp qword [rcx]", []byte{0xdd, 0x19}, 0x8000000000001000, true, true},
		{"cmp [rcx], eax", []byte{0x39, 0x01}, 0x8000000000001000, false, true},
		{"add [rcx], eax", []byte{0x01, 0x01}, 0x8000000000001000, true, true},
		{"prefetcht2 [rcx]", []byte{0x0f, 0x18, 0x19}, 0x8000000000001000, false, true},
	} {
		in := decode(&regs, c.code, pc)
		if in == nil || len(in.Accesses) != 1 {
			t.Errorf("%s: %+v, want one operand in memory", c.what, in)
			continue
		}
		if a := in.Accesses[0]; a.Address != c.addr || a.Write != c.write || a.Known != c.known {
			t.Errorf("%s: %+v, want address %#x, write %v, known %v", c.what, a, c.addr, c.write, c.known)
		}
	}
}
