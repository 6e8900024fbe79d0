package unwind

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

const (
	maxSimulated = 4096 // bytes of code run from a function's start
	maxTargets   = 64   // jump targets remembered
	maxDepth86   = 1 << 20
	shortCallee  = 512 // bytes of a callee looked at for its return
)

// ebpState says what ebp holds.
type ebpState uint8

const (
	ebpCaller ebpState = iota // the caller's value
	ebpFrame                  // a fixed distance below the return address
	ebpOther                  // something else: a general register
)

// stack86 is what code has done to the stack since its function's entry, where
// esp points to the return address. Depths count downwards from there.
type stack86 struct {
	depth    int  // of esp
	unknown  bool // esp was aligned or computed
	ebp      ebpState
	frame    int   // ebpFrame: depth of what ebp points to
	saved    int   // depth of the slot with the caller's ebp, 0 when it was not pushed
	pending  int   // bytes pushed since the last call that may be arguments
	pushed   uint8 // registers whose first push was a save, not an argument
	eax      int32 // constant in eax, for stack probes
	eaxKnown bool
	started  bool // something other than a push was executed
}

// sim86 is a simulated run from a function's start to an address.
type sim86 struct {
	start uint64
	at    stack86 // before the instruction at the address
	// call is the state before the call whose return address that is: a callee
	// may or may not have taken its arguments off the stack.
	call     stack86
	hasCall  bool
	complete bool
	certain  bool // the start is an export
}

// simulate runs code from a function's start in order of addresses, following
// what it does to esp and ebp. Behind a jump or return it goes on with the state
// of a jump to that place, else with that of the last call or condition. It is
// not complete when an instruction is not known or the address lies within one.
func (w *Walker) simulate(code []byte, start, pc uint64) sim86 {
	r := sim86{start: start}
	var targets map[uint64]stack86
	st, body := stack86{}, stack86{}
	reached, haveBody := true, false
	for at := start; ; {
		if known, ok := targets[at]; ok && (!reached || st.unknown) {
			st, reached = known, true
		}
		if at == pc {
			r.at, r.complete = st, reached || haveBody
			return r
		}
		if len(code) == 0 || at > pc || w.tired86() {
			return r
		}
		w.toil86(1)
		in, err := x86asm.Decode(code, 32)
		if err != nil || in.Op == 0 || in.Len == 0 || in.Len > len(code) {
			return r
		}
		next := at + uint64(in.Len)
		jump, target := jump86(in, next)
		if in.Op == x86asm.CALL {
			r.call, r.hasCall = st, next == pc
		}
		w.execute86(&st, in, code[in.Len:], next)
		if st.depth < 0 || st.depth > maxDepth86 {
			return r
		}
		if jump && len(targets) < maxTargets && target > at && target-at < maxSimulated {
			if targets == nil {
				targets = map[uint64]stack86{}
			}
			if _, ok := targets[target]; !ok {
				targets[target] = st
			}
		}
		switch {
		case in.Op == x86asm.JMP && st.depth > 0: // a loop's or switch's: the code behind it has the same frame
			reached = false
		case in.Op == x86asm.RET || in.Op == x86asm.JMP:
			st, reached = body, false
		case jump || in.Op == x86asm.CALL:
			body, haveBody = st, true
		}
		code, at = code[in.Len:], next
	}
}

// jump86 reports whether an instruction is a direct jump, and where to.
func jump86(in x86asm.Inst, next uint64) (bool, uint64) {
	rel, ok := in.Args[0].(x86asm.Rel)
	if !ok || in.Op == x86asm.CALL {
		return false, 0
	}
	return true, (next + uint64(int64(rel))) & highestUser32
}

// execute86 applies one instruction. rest is the code behind it.
func (w *Walker) execute86(st *stack86, in x86asm.Inst, rest []byte, next uint64) {
	dst, isReg := in.Args[0].(x86asm.Reg)
	imm, isImm := in.Args[1].(x86asm.Imm)
	if in.DataSize == 16 && (in.Op == x86asm.PUSH || in.Op == x86asm.POP) {
		st.unknown = true
		return
	}
	switch {
	case in.Op == x86asm.PUSH:
		st.push(dst, isReg)
	case in.Op == x86asm.PUSHFD || in.Op == x86asm.PUSHAD:
		st.depth += map[x86asm.Op]int{x86asm.PUSHFD: 4, x86asm.PUSHAD: 32}[in.Op]
	case in.Op == x86asm.POPFD || in.Op == x86asm.POPAD:
		st.depth -= map[x86asm.Op]int{x86asm.POPFD: 4, x86asm.POPAD: 32}[in.Op]
		if in.Op == x86asm.POPAD {
			st.ebp = ebpOther
		}
	case in.Op == x86asm.POP:
		st.pop(dst, isReg)
	case in.Op == x86asm.SUB && isReg && dst == x86asm.ESP && isImm:
		st.depth += int(imm)
	case in.Op == x86asm.ADD && isReg && dst == x86asm.ESP && isImm:
		st.depth -= int(imm)
		st.pending = 0
	case in.Op == x86asm.LEAVE:
		st.fromFrame(0)
		st.pop(x86asm.EBP, true)
	case in.Op == x86asm.ENTER:
		st.push(x86asm.EBP, true)
		st.setFrame(0)
		if size, ok := in.Args[0].(x86asm.Imm); ok {
			st.depth += int(size)
		}
	case in.Op == x86asm.CALL:
		w.call86(st, in, rest, next)
	case isReg && (dst == x86asm.ESP || dst == x86asm.EBP) && writes86(in.Op):
		st.move(in, dst)
	case in.Op == x86asm.MOV:
		st.store(in)
	}
	st.started = st.started || in.Op != x86asm.PUSH
	st.eaxKnown = isReg && dst == x86asm.EAX && in.Op == x86asm.MOV && isImm
	if st.eaxKnown {
		st.eax = int32(imm)
	}
}

// writes86 reports whether an operation writes its first operand.
func writes86(op x86asm.Op) bool {
	switch op {
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.NOP:
		return false
	}
	return true
}

func (st *stack86) push(reg x86asm.Reg, isReg bool) {
	st.depth += 4
	if isReg && st.prolog() && (reg == x86asm.EAX || reg == x86asm.ECX) {
		return // makes room for a local
	}
	bit := uint8(0)
	if isReg {
		switch reg {
		case x86asm.EBX, x86asm.ESI, x86asm.EDI, x86asm.EBP:
			bit = 1 << (reg - x86asm.EAX)
		}
	}
	if bit == 0 || st.pushed&bit != 0 {
		st.pending += 4
		return
	}
	st.pushed |= bit
	if reg == x86asm.EBP && st.ebp == ebpCaller {
		st.saved = st.depth
	}
}

// store notes where the caller's ebp is saved by a function that made room with one
// instruction and moves the registers there, as the kernel's KiSwapContext does.
func (st *stack86) store(in x86asm.Inst) {
	mem, toMem := in.Args[0].(x86asm.Mem)
	src, fromReg := in.Args[1].(x86asm.Reg)
	if !toMem || !fromReg || src != x86asm.EBP || mem.Base != x86asm.ESP || mem.Index != 0 || st.ebp != ebpCaller || st.saved != 0 || st.unknown {
		return
	}
	if at := st.depth - int(int32(mem.Disp)); at > 0 && at <= st.depth {
		st.saved = at
	}
}

// prolog reports whether nothing but pushes of registers was executed so far.
func (st *stack86) prolog() bool { return !st.started && st.pending == 0 }

func (st *stack86) pop(reg x86asm.Reg, isReg bool) {
	if isReg && reg == x86asm.EBP {
		if st.ebp = ebpOther; st.saved != 0 && st.saved == st.depth {
			st.ebp, st.saved = ebpCaller, 0
		}
	}
	if isReg && reg == x86asm.ESP {
		st.unknown = true
	}
	st.depth -= 4
	st.pending = max(0, st.pending-4)
}

// setFrame makes ebp point off bytes above esp.
func (st *stack86) setFrame(off int) {
	st.ebp, st.frame = ebpFrame, st.depth-off
	if st.unknown {
		st.ebp = ebpOther
	}
}

// fromFrame sets esp to ebp+off.
func (st *stack86) fromFrame(off int) {
	st.depth, st.unknown = st.frame-off, st.ebp != ebpFrame
	st.pending = 0
}

// move handles other writes of esp and ebp.
func (st *stack86) move(in x86asm.Inst, dst x86asm.Reg) {
	src, fromReg := in.Args[1].(x86asm.Reg)
	mem, fromMem := in.Args[1].(x86asm.Mem)
	lea := in.Op == x86asm.LEA && fromMem && mem.Index == 0
	switch {
	case dst == x86asm.EBP && in.Op == x86asm.MOV && fromReg && src == x86asm.ESP:
		st.setFrame(0)
	case dst == x86asm.EBP && lea && mem.Base == x86asm.ESP:
		st.setFrame(int(int32(mem.Disp)))
	case dst == x86asm.EBP && in.Op == x86asm.MOV && fromMem && mem.Base == x86asm.ESP && mem.Index == 0 && st.saved != 0 && st.saved == st.depth-int(int32(mem.Disp)):
		st.ebp = ebpCaller // what store saved
	case dst == x86asm.EBP:
		st.ebp = ebpOther
	case in.Op == x86asm.MOV && fromReg && src == x86asm.EBP:
		st.fromFrame(0)
	case lea && mem.Base == x86asm.EBP:
		st.fromFrame(int(int32(mem.Disp)))
	case lea && mem.Base == x86asm.ESP:
		st.depth -= int(int32(mem.Disp))
	default:
		st.unknown = true
	}
}

// call86 is what a call leaves behind: the callee takes its arguments off, or
// its caller does next, or, when neither can be seen, what was pushed since the
// last call is taken for its arguments. Helpers of the compiler move esp and
// ebp on purpose.
func (w *Walker) call86(st *stack86, in x86asm.Inst, rest []byte, next uint64) {
	defer func() { st.pending = 0 }()
	if len(rest) < codeBytes { // what is simulated may end right here
		n := w.readCode(w.code[:], w.site(next), next)
		rest = w.code[:n]
	}
	popped, known := afterCall(rest)
	known = known && (popped == 0) != (st.pending == 0)
	if rel, ok := in.Args[0].(x86asm.Rel); ok {
		target := w.thunk86((next + uint64(int64(rel))) & highestUser32)
		var buf [shortCallee]byte
		s := w.site(target)
		code := buf[:w.readCode(buf[:], s, target)]
		switch {
		case st.eaxKnown && isStackProbe(code):
			st.depth += int(st.eax)
			return
		case st.depth == 8 && st.ebp == ebpCaller && isSEHProlog(code):
			// It makes the first word pushed the slot of the caller's ebp.
			st.ebp, st.frame, st.saved, st.unknown = ebpFrame, 4, 4, true
			return
		}
		if n, ok := w.calleePops(code); ok && !known {
			st.depth -= n
			return
		}
	}
	if known {
		st.depth -= popped
		return
	}
	st.depth -= st.pending
}

// afterCall reads in the code behind a call who takes the arguments off: the
// caller, by add esp, or the callee, when compiled code that keeps room for
// arguments takes the room back by sub esp.
func afterCall(code []byte) (popped int, known bool) {
	for range 4 {
		in, err := x86asm.Decode(code, 32)
		if err != nil || in.Len == 0 || in.Len > len(code) {
			break
		}
		imm, isImm := in.Args[1].(x86asm.Imm)
		switch {
		case in.Op == x86asm.ADD && in.Args[0] == x86asm.ESP && isImm:
			return 0, true
		case in.Op == x86asm.SUB && in.Args[0] == x86asm.ESP && isImm:
			return int(imm), true
		case in.Op != x86asm.MOV && in.Op != x86asm.XOR && in.Op != x86asm.TEST:
			return 0, false
		}
		code = code[in.Len:]
	}
	return 0, false
}

// thunk86 follows the jumps of incremental linking.
func (w *Walker) thunk86(va uint64) uint64 {
	for range 2 {
		var b [5]byte
		if w.readCode(b[:], w.site(va), va) < 5 || b[0] != 0xe9 {
			break
		}
		va = (va + 5 + uint64(int64(int32(le32(b[1:]))))) & highestUser32
	}
	return va
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// isStackProbe recognises _chkstk: push ecx; lea ecx, [esp+4 or 8], or cmp eax,
// 1000h. It lowers esp by eax.
func isStackProbe(code []byte) bool {
	return len(code) >= 5 && (code[0] == 0x51 && code[1] == 0x8d && code[2] == 0x4c && code[3] == 0x24 ||
		code[0] == 0x3d && le32(code[1:]) == 0x1000)
}

// isSEHProlog recognises the helper that makes the frame of a function with
// structured exception handling: near its beginning, push fs:[0] and lea ebp,
// [esp+10h].
func isSEHProlog(code []byte) bool {
	head := string(code[:min(len(code), 48)])
	return strings.Contains(head, "\x64\xff\x35\x00\x00\x00\x00") && strings.Contains(head, "\x8d\x6c\x24\x10") ||
		strings.Contains(head, "\x64\xa1\x00\x00\x00\x00") && strings.Contains(head, "\x8d\x6c\x24\x10")
}

// calleePops finds the first return of a function and how many bytes of
// arguments it takes off.
func (w *Walker) calleePops(code []byte) (int, bool) {
	for len(code) > 0 && !w.tired86() {
		w.toil86(1)
		in, err := x86asm.Decode(code, 32)
		if err != nil || in.Op == 0 || in.Len == 0 || in.Len > len(code) || in.Op == x86asm.JMP || in.Op == x86asm.INT {
			return 0, false
		}
		if in.Op == x86asm.RET {
			n, ok := in.Args[0].(x86asm.Imm)
			if !ok {
				return 0, true
			}
			return int(n), n >= 0 && n < 1024
		}
		code = code[in.Len:]
	}
	return 0, false
}
