package unwind

import (
	"encoding/binary"
	"fmt"
	"strings"

	"dumptriage/dump"
)

// fallbackARM64 finds a caller without unwind data: by the chain of frame
// records (x29: the caller's x29, then the return address), else by a scan. A
// leaf function in frame 0 has no record, so its caller is then missing.
func (w *Walker) fallbackARM64(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	if w.tracing() {
		s := w.site(f.Lookup)
		w.resolveARM64(s)
		w.reject(s.ruleFor(), why.Detail)
	}
	g, stop := w.followFP64(f, opt, why)
	switch {
	case stop.Reason == "":
		w.unproven = 0
		w.noteGuess(g)
		w.guessed(regs, f, g)
		return Stop{}, true
	case stop.Reason == StopEndOfStack || stop.Reason == StopStackMissing:
		return stop, false
	}
	w.reject(MethodRBP, strings.TrimPrefix(stop.Detail, why.Detail+"; "))
	return w.scanARM64(regs, f, opt, stop)
}

// followFP64 takes one step along the chain.
func (w *Walker) followFP64(f *Frame, opt *Options, why Stop) (guess, Stop) {
	bad := func(format string, args ...any) (guess, Stop) {
		return guess{}, Stop{why.Reason, why.Detail + "; " + fmt.Sprintf(format, args...)}
	}
	switch {
	case !f.HasFP:
		return bad("x29 is not known")
	case f.FP == 0 && !f.exact():
		return guess{}, Stop{StopEndOfStack, "the chain of frame records ends"}
	case f.FP&7 != 0 || f.FP < f.SP || !opt.holds(f.FP, 16):
		return bad("x29 %#x is not on the stack above sp %#x", f.FP, f.SP)
	}
	next, ok1 := w.word(f.FP)
	lr, ok2 := w.word(f.FP + 8)
	if !ok1 || !ok2 {
		return guess{}, w.missing(f.FP)
	}
	ip := stripPAC(lr)
	switch {
	case ip == 0:
		return guess{}, Stop{StopEndOfStack, ""}
	case next != 0 && (next <= f.FP || next&7 != 0 || !opt.holds(next, 16)):
		return bad("the saved x29 %#x at %#x is not further up the stack", next, f.FP)
	case w.candidateARM64(ip, opt) == proofNo:
		return bad("%#x at %#x is no return address", ip, f.FP+8)
	}
	return guess{ip: ip, at: f.FP + 8, sp: f.FP + 16, fp: next, fpAt: f.FP, hasFP: true, trust: TrustFramePointer, method: MethodRBP, detail: why.Detail}, Stop{}
}

// scanARM64 looks for the next frame record or, failing that, return address
// that a call precedes. A record is believed first: two words that fit.
func (w *Walker) scanARM64(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	plain := guess{}
	for at, words := f.SP&^7, scanWords(f); words > 0 && at+16 > at && opt.holds(at, 16); at, words = at+8, words-1 {
		v, ok := w.word(at + 8)
		ip := stripPAC(v)
		if !ok {
			break
		}
		if ip == f.IP {
			continue
		}
		if p := w.candidateARM64(ip, opt); p != proofYes {
			w.notePassedARM64(at+8, ip, p, opt)
			continue
		}
		g := guess{ip: ip, at: at + 8, sp: at + 16, trust: TrustScan, method: MethodScan, detail: why.Detail}
		if next, _ := w.word(at); next > at && next&7 == 0 && opt.holds(next, 16) && w.onStack(next, opt) {
			g.fp, g.fpAt, g.hasFP = next, at, true
			g.detail += "; a frame record"
			w.noteGuess(g)
			w.guessed(regs, f, g)
			return Stop{}, true
		}
		if plain.ip == 0 {
			plain = g
		}
	}
	if plain.ip == 0 {
		return why, false
	}
	w.noteGuess(plain)
	w.guessed(regs, f, plain)
	return Stop{}, true
}

// candidateARM64 is candidate for ARM64 code.
func (w *Walker) candidateARM64(v uint64, opt *Options) proof {
	length := w.callLength(v)
	if !w.plausible(v, opt) || v%length != 0 || opt.inStack(v) {
		return proofNo
	}
	s := w.site(v - length)
	if s.notCode() || s.inHeaders() || !s.inModule() && !s.exec {
		return proofNo
	}
	p := w.callBefore(s, v)
	if p == proofUnknown && !s.inModule() {
		return proofNo
	}
	return p
}

// findCallARM64 looks at the instruction before ret: bl, blr, or one of the
// forms of blr that authenticate the target.
func (w *Walker) findCallARM64(s *site, ret uint64) proof {
	var b [arm64Word]byte
	if w.readCode(b[:], s, ret-arm64Word) < arm64Word {
		return proofUnknown
	}
	in := binary.LittleEndian.Uint32(b[:])
	if in>>26 == 0b100101 || in&0xfffffc1f == 0xd63f0000 || in&0xfefff800 == 0xd63f0800 {
		return proofYes
	}
	return proofNo
}
