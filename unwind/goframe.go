package unwind

import (
	"bytes"
	"fmt"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Go's assembler uses rbp for data, in hashes and ciphers, in functions whose
// unwind data says all the same that rbp is the frame pointer. Such a function
// moves rsp in its prolog and epilog only, so that the prolog's own code tells
// where the frame is: push rbp; mov rbp, rsp; sub rsp, n.

const maxGoProlog = 96 // bytes from a function's start: a stack check and the prolog

var goPrologCode = []byte{0x55, 0x48, 0x89, 0xe5} // push rbp; mov rbp, rsp

// fixedFrame finds a caller by the size of a frame of Go code, when rbp has led
// nowhere. A CALL must precede the return address found.
func (w *Walker) fixedFrame(f *Frame, opt *Options) (guess, bool) {
	s := w.resolved(f.Lookup)
	if s.kind != sitePdata || s.coarse || !buildsGoFrame(&s.rule) {
		return guess{}, false
	}
	size, ok := w.goFrameSize(s)
	slot := f.SP + size
	if !ok || slot < f.SP || !opt.holds(slot, 16) {
		return guess{}, false
	}
	fp, ok1 := w.word(slot)
	ip, ok2 := w.word(slot + 8)
	if !ok1 || !ok2 || w.candidate(ip, opt) != proofYes {
		w.reject(MethodPdata, fmt.Sprintf("the frame that the prolog makes, of %#x bytes, has no return address behind it", size))
		return guess{}, false
	}
	if w.tracing() {
		w.note(Note{Kind: NoteUndo, Op: undoNames[undoAlloc], Value: size, Known: true, SP: slot})
		w.note(Note{Kind: NoteUndo, Op: undoNames[undoPop], Reg: dump.RBP, Addr: slot, Value: fp, Known: true, SP: slot + 8})
		w.noteFound(MethodPdata, slot+8, ip)
	}
	return guess{ip: ip, sp: slot + 16, fp: fp, hasFP: fp == 0 || fp > slot && w.onStack(fp, opt), trust: TrustCFIScan, method: MethodPdata,
		detail: "the code here uses rbp for data; the frame's size is that of the prolog's code"}, true
}

// goFrameSize reads how much the prolog of the site's function takes from the
// stack behind mov rbp, rsp; nothing when the site is not behind it.
func (w *Walker) goFrameSize(s *site) (size uint64, ok bool) {
	begin := s.base + uint64(s.rf.Begin)
	var buf [maxGoProlog]byte
	code := buf[:w.readCode(buf[:min(maxGoProlog, s.addr-begin)], s, begin)]
	at := bytes.Index(code, goPrologCode)
	if at < 0 {
		return 0, false
	}
	c := cursor.New(code[at+len(goPrologCode):], "prolog", -1)
	switch b := peek(c, 7); {
	case b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xec && b[3] < 0x80: // sub rsp, imm8
		size = uint64(b[3])
		c.Skip(4)
	case b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xc4 && b[3] >= 0x80: // add rsp, -imm8
		size = -signExtend8(b[3])
		c.Skip(4)
	case b[0] == 0x48 && b[1] == 0x81 && b[2] == 0xec && b[6] < 0x80: // sub rsp, imm32
		size = signExtend32(b[3:])
		c.Skip(7)
	}
	return size, c.Err() == nil && size&7 == 0
}

// jumpsOn reports whether a site of Go code stands behind pop rbp at a jump
// through a register or memory. No REX.W tells there that it is a tail call, so
// that this is likely, not certain: pop rbp may be another instruction's end.
func (w *Walker) jumpsOn(s *site, code []byte) bool {
	var before [1]byte
	return len(code) > 1 && code[0] == 0xff && code[1]>>3&7 == 4 &&
		w.readCode(before[:], s, s.addr-1) == 1 && before[0] == 0x5d
}
