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

// A store to address 0 without a register: C7 /0 with a SIB byte that has
// neither base nor index.
func TestAbsoluteZero(t *testing.T) {
	regs := dump.Registers{Arch: dump.AMD64}
	in := decode(&regs, []byte{0xc7, 0x04, 0x25, 0, 0, 0, 0, 0, 0, 0, 0}, 0x140001000)
	if in == nil || in.Text != "mov dword ptr [0x0], 0x0" {
		t.Errorf("%+v, want a store to [0x0]", in)
	}
}

// zeros is memory that reads as zeros everywhere.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ uint64) (int, error) { clear(p); return len(p), nil }

// Where the processor may not execute, no instruction is to blame, whatever
// bytes the dump holds there.
func TestInstructionOfExecuteFault(t *testing.T) {
	for access, want := range map[uint64]bool{0: true, 1: true, 8: false} {
		c := &Crash{Exception: dump.Exception{Code: 0xc0000005, Parameters: []uint64{access, 0}}}
		c.Context.Arch = dump.AMD64
		c.Context.Set(dump.RIP, 0)
		explainFault(&space{mem: zeros{}}, c, 0)
		if got := c.Instruction != nil; got != want {
			t.Errorf("access %d: an instruction: %v, want %v", access, got, want)
		}
	}
}
