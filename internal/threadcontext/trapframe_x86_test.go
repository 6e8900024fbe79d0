package threadcontext

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
)

// words86 is a KTRAP_FRAME by the public type: offset to word.
func words86(size int, words map[int]uint32) []byte {
	b := make([]byte, size)
	for off, v := range words {
		if off+4 <= size {
			binary.LittleEndian.PutUint32(b[off:], v)
		}
	}
	return b
}

// with returns the words of a frame with some changed.
func with(base map[int]uint32, changed map[int]uint32) map[int]uint32 {
	out := map[int]uint32{}
	for _, m := range []map[int]uint32{base, changed} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

var (
	// A system call: KiFastCallEntry pushed user selectors and the stub's address.
	user86 = map[int]uint32{0: 0x12fe50, 4: 0x7c90eb94, 8: 0xbadb0d00, 0x50: 0x3b, 0x54: 0x10, 0x58: 0x20, 0x5c: 0x30, 0x60: 0x12fe50,
		0x68: 0x7c90eb94, 0x6c: 0x1b, 0x70: 0x246, 0x74: 0x12fe2c, 0x78: 0x23}
	// A page fault in the kernel: the stack goes on at 0x74.
	kernel86 = map[int]uint32{0: 0xf5ab0c10, 4: 0xf8123456, 8: 0xbadb0d00, 0x50: 0x30, 0x54: 0x11, 0x58: 0x21, 0x5c: 0x31, 0x60: 0xf5ab0c10,
		0x64: 2, 0x68: 0xf8123456, 0x6c: 8, 0x70: 0x10282, 0x74: 0x11223344, 0x78: 0x55667788}
)

func TestTrapModesX86(t *testing.T) {
	const unmarked, noFS = 8, 0x50
	for name, c := range map[string]struct {
		words  map[int]uint32
		size   int
		mode   TrapMode
		proved bool
	}{
		"user":                           {user86, 0x8c, TrapUser, true},
		"kernel":                         {kernel86, 0x8c, TrapKernel, true},
		"kernel, at the stack's end":     {kernel86, 0x74, TrapKernel, true},
		"selectors' upper halves":        {with(user86, map[int]uint32{0x6c: 0xabcd001b, 0x78: 0x12340023}), 0x8c, TrapUser, true},
		"user at address 0":              {with(user86, map[int]uint32{4: 0, 0x68: 0}), 0x8c, TrapUser, true},
		"user at address 0, not proved":  {with(user86, map[int]uint32{0x68: 0}), 0x8c, TrapNone, false},
		"user, 3 GB":                     {with(user86, map[int]uint32{0x74: 0xb0000000}), 0x8c, TrapUser, true},
		"user in the kernel's half":      {with(user86, map[int]uint32{0x74: 0xc0000000}), 0x8c, TrapNone, true},
		"user, interrupts off":           {with(user86, map[int]uint32{0x70: 0x46}), 0x8c, TrapNone, true},
		"user, another stack selector":   {with(user86, map[int]uint32{0x78: 0x10}), 0x8c, TrapNone, true},
		"user, cut before esp":           {user86, 0x74, TrapNone, true},
		"virtual-8086":                   {with(user86, map[int]uint32{4: 0x1234, 0x68: 0x1234, 0x6c: 0xc000, 0x70: 0x20202}), 0x8c, TrapV86, true},
		"virtual-8086, address too long": {with(user86, map[int]uint32{0x70: 0x20202}), 0x8c, TrapNone, true},
		"a flag that is always set":      {with(kernel86, map[int]uint32{0x70: 0x10280}), 0x8c, TrapNone, true},
		"a flag that is always clear":    {with(kernel86, map[int]uint32{0x70: 0x1028a}), 0x8c, TrapNone, true},
		"an edited frame":                {with(kernel86, map[int]uint32{0x6c: 0}), 0x8c, TrapNone, true},
		"no mark, but fs":                {with(kernel86, map[int]uint32{unmarked: 0}), 0x8c, TrapKernel, true},
		"no fs, but the mark":            {with(kernel86, map[int]uint32{noFS: 0}), 0x8c, TrapKernel, true},
		"neither":                        {with(kernel86, map[int]uint32{unmarked: 0, noFS: 0}), 0x8c, TrapKernel, false},
		"another eip in the header":      {with(kernel86, map[int]uint32{4: 0xf8123457}), 0x8c, TrapKernel, false},
		"another ebp in the header":      {with(kernel86, map[int]uint32{0: 0xf5ab0c14}), 0x8c, TrapKernel, false},
		"zeros":                          {nil, 0x8c, TrapNone, false},
	} {
		f, err := ParseTrapFrameX86(words86(c.size, c.words))
		if err != nil || f.Mode() != c.mode || f.Proved() != c.proved {
			t.Errorf("%s: mode %d, proved %v, %v; want %d, %v", name, f.Mode(), f.Proved(), err, c.mode, c.proved)
		}
	}
	for size := range 0x74 {
		if _, err := ParseTrapFrameX86(make([]byte, size)); err == nil {
			t.Errorf("%#x bytes are a trap frame", size)
		}
	}
}

func TestTrapRegistersX86(t *testing.T) {
	const va = 0xf5ab0b40
	type want map[dump.Reg]uint64
	for name, c := range map[string]struct {
		words map[int]uint32
		want  want
		not   []dump.Reg
	}{
		"user": {user86, want{dump.RIP: 0x7c90eb94, dump.RSP: 0x12fe2c, dump.RBP: 0x12fe50, dump.RDI: 0x10, dump.RSI: 0x20, dump.RBX: 0x30,
			dump.RegCS: 0x1b, dump.RegSS: 0x23, dump.RegEFlags: 0x246}, []dump.Reg{dump.RAX, dump.RCX, dump.RDX}},
		// The processor pushes neither esp nor ss when the mode does not change.
		"kernel": {kernel86, want{dump.RIP: 0xf8123456, dump.RSP: va + 0x74, dump.RBP: 0xf5ab0c10, dump.RDI: 0x11, dump.RSI: 0x21, dump.RBX: 0x31,
			dump.RegCS: 8, dump.RegEFlags: 0x10282}, []dump.Reg{dump.RegSS, dump.RAX}},
	} {
		f, err := ParseTrapFrameX86(words86(TrapFrameSizeX86, c.words))
		if err != nil {
			t.Fatal(err)
		}
		r := f.Registers(va)
		for reg, v := range c.want {
			if got, ok := r.Get(reg); !ok || got != v {
				t.Errorf("%s: register %d is %#x, %v; want %#x", name, reg, got, ok, v)
			}
		}
		for _, reg := range c.not {
			if r.Known(reg) {
				t.Errorf("%s: register %d is known", name, reg)
			}
		}
	}
}
