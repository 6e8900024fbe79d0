package unwind

import (
	"errors"
	"strings"
	"testing"

	"dumptriage/dump"
)

// programWords are what the programs below read: a frame of ebp esp0+0x20 with
// saved registers below it.
func programWords(s *space) {
	s.poke32(esp0+0x10, 0xd1, 0x51, 0xb1) // edi, esi, ebx
	s.poke32(esp0+0x20, esp0+0x80, exeBase+0x1540)
}

// Programs as compilers write them, and what they must give, worked out by hand.
func TestPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]uint64
		lost []string // assigned and not known
	}{
		"a frame on ebp": {"$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $L $T0 .cbSavedRegs - = $P $T0 4 + .cbParams + =",
			map[string]uint64{"eip": exeBase + 0x1540, "ebp": esp0 + 0x80, "esp": esp0 + 0x28, "$L": esp0 + 0x20 - 12, "$P": esp0 + 0x24 + 8}, nil},
		"registers by CodeView's numbers": {"$T0 $ebp = $eip $T0 4 + ^ = $20 $T0 8 - ^ = $23 $T0 12 - ^ = $24 $T0 16 - ^ =",
			map[string]uint64{"ebx": 0xb1, "esi": 0x51, "edi": 0xd1}, nil},
		"a search": {"$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =",
			map[string]uint64{"eip": exeBase + 0x1540, "esp": esp0 + 0x28}, nil},
		"its other name, and esp itself": {"$T2 $esp .cbLocals + .cbSavedRegs + = $T0 .raSearchStart = $eip $T0 ^ =",
			map[string]uint64{"$T2": esp0 + 0x10 + 12, "eip": exeBase + 0x1540}, nil},
		"an aligned frame": {"$T1 $ebp 4 + = $T0 $T1 16 - 16 @ = $eip $T1 ^ =",
			map[string]uint64{"$T1": esp0 + 0x24, "$T0": esp0 + 0x10, "eip": exeBase + 0x1540}, nil},
		"arithmetic":                   {"$T0 100 7 / = $T1 100 7 % = $T2 3 -4 * =", map[string]uint64{"$T0": 14, "$T1": 2, "$T2": 0xfffffff4}, nil},
		"32 bits":                      {"$T0 -1 2 + = $T1 0 1 - =", map[string]uint64{"$T0": 1, "$T1": 0xffffffff}, nil},
		"what is not known stays so":   {"$T0 $ebx 8 + ^ = $T1 $T0 1 + = $esp 4 =", map[string]uint64{"esp": 4}, []string{"$T0", "$T1"}},
		"memory that is not there":     {"$eip 16 ^ =", nil, []string{"eip"}},
		"a variable before its value":  {"$T0 $T1 4 + =", nil, []string{"$T0"}},
		"the last assignment counts":   {"$T0 1 = $T0 $T0 1 + =", map[string]uint64{"$T0": 2}, nil},
		"a value that is lost again":   {"$esp $ebx =", nil, []string{"esp"}},
		"nothing":                      {"", nil, nil},
		"a number of 64 bits is cut":   {"$T0 4294967297 =", map[string]uint64{"$T0": 1}, nil},
		"callee's parameters":          {"$T0 .cbCalleeParams =", map[string]uint64{"$T0": 20}, nil},
		"white space of any kind":      {" $T0\t5 \n = ", map[string]uint64{"$T0": 5}, nil},
		"deref of a value at the edge": {"$T0 4294967295 ^ =", nil, []string{"$T0"}},
	} {
		s := space86()
		programWords(s)
		w := s.walkerFor(dump.X86)
		p, err := compileProgram(c.text, "FrameData", dump.X86)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		regs := regs86(exeBase+0x1300, esp0, esp0+0x20)
		w.machine.reset(&regs)
		for v, n := range map[variable]uint64{varLocals: 0x10, varSavedRegs: 12, varParams: 8, varCalleeParams: 20, varSearch: esp0 + 0x24} {
			w.machine.set(v, n)
		}
		if err := w.runProgram(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for v := range variable(maxVariables) {
			val, known, assigned := w.machine.result(v)
			if !assigned {
				continue
			}
			n := p.nameOf(v, dump.X86)
			if want, ok := c.want[n]; ok && (!known || val != want) {
				t.Errorf("%s: %s = %#x (%v), want %#x", name, n, val, known, want)
			}
			delete(c.want, n)
			for i, lost := range c.lost {
				if lost == n {
					c.lost[i] = ""
					if known {
						t.Errorf("%s: %s = %#x is known", name, n, val)
					}
				}
			}
		}
		if len(c.want) != 0 || strings.Join(c.lost, "") != "" {
			t.Errorf("%s: not assigned: %v %v", name, c.want, c.lost)
		}
	}
}

// What cannot be a program is refused with a typed error that quotes it.
func TestBadPrograms(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown word":       "$T0 eip =",
		"no operand":            "$T0 + =",
		"no variable":           "4 =",
		"values left":           "$T0 $ebp",
		"deref of nothing":      "^",
		"too many words":        strings.Repeat("$T0 1 = ", maxTokens/3+1),
		"too many operands":     strings.Repeat("1 ", maxOperands+1),
		"too many variables":    "$a $b $c $d $e $f $g $h $i $j $k $l $m $n $o $p $q $r $s $t $u $v $w $x $y $z =",
		"too long":              strings.Repeat(" ", maxProgramText+1),
		"another architecture":  "$rip 4 =  rax 4 =",
		"a number out of range": "$T0 99999999999999999999 =",
	} {
		_, err := compileProgram(text, "FrameData", dump.X86)
		var e *dump.Error
		if !errors.As(err, &e) || e.Stream != "FrameData" || e.Msg == "" {
			t.Errorf("%s: %v", name, err)
		}
		if tooMuch := name == "too many words" || name == "too many operands" || name == "too long"; e != nil && tooMuch != (e.Code == dump.Limit) {
			t.Errorf("%s: the code is %v", name, e.Code)
		}
	}
	for name, text := range map[string]string{"assigns to a value": "4 5 =", "divides by zero": "$T0 1 0 / =", "modulo zero": "$T0 1 0 % =", "aligns to zero": "$T0 $ebx 0 @ ="} {
		w := space86().walkerFor(dump.X86)
		p, err := compileProgram(text, "FrameData", dump.X86)
		if err == nil {
			regs := regs86(exeBase, esp0, 0)
			w.machine.reset(&regs)
			err = w.runProgram(p)
		}
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != dump.BadRecord {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFrameProgram compiles and runs any text, for every architecture, as a
// program and as an expression.
func FuzzFrameProgram(f *testing.F) {
	for _, text := range []string{
		"$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + = $L $T0 .cbSavedRegs - = $P $T0 4 + .cbParams + =",
		"$T1 .raSearch = $T0 $T1 4 - 8 @ = $ebp $T1 4 - ^ = $eip $T1 ^ = $esp $T1 4 + = $20 $T0 196 - ^ =",
		".cfa 8 - ^", "$rsp 80 +", "sp 16 +", "1 0 /", "= = =", "$T0 1 0 @ =", "-9223372036854775808 -1 *",
	} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		s := space86()
		programWords(s)
		arch := []dump.Arch{dump.X86, dump.AMD64, dump.ARM64}[how%3]
		w := s.walkerFor(arch)
		regs := regs86(exeBase, esp0, esp0+0x20)
		regs.Arch = arch
		w.machine.reset(&regs)
		p, err := compileProgram(text, "FrameData", arch)
		if err == nil && w.runProgram(p) == nil && w.machine.depth != 0 {
			t.Errorf("%q leaves %d operands", text, w.machine.depth)
		}
		x, err := compileExpression(text, "STACK CFI", arch)
		if err == nil && w.runProgram(x) == nil && w.machine.depth != 1 {
			t.Errorf("%q leaves %d operands", text, w.machine.depth)
		}
	})
}
