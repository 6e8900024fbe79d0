package unwind

import (
	"fmt"

	"dumptriage/dump"
)

// Scores of a return address that a scan found. A word that is preceded by a
// call to the very function that is to return there beats any call, a call of
// which the target is not known beats one to another function, and that beats
// an address of which no code is at hand.
const (
	scoreUnproven = 1 + iota
	scoreOther
	scoreCall
	scoreThis
	bestScore = scoreThis
)

// scan86 looks for the best return address near the top of the stack; of equal
// ones the nearest.
func (w *Walker) scan86(regs *dump.Registers, f *Frame, opt *Options, why Stop) (Stop, bool) {
	if w.unproven >= maxUnproven {
		return w.stopAtTrapFrame86(regs, opt, unprovenLimit(why))
	}
	runs := w.runs86(f.IP)
	var best uint64
	score := 0
	for at, words := f.SP, scanWords(f); words > 0 && score < bestScore && at+4 > at && opt.holds(at, 4); at, words = at+4, words-1 {
		if opt.atSeam() && at >= opt.TrapFrame {
			break
		}
		ip, ok := w.word(at)
		if !ok {
			if at == f.SP {
				return w.stopAtTrapFrame86(regs, opt, w.missing(at))
			}
			break
		}
		if t, ok := w.foundTrap86(at, opt); ok {
			if score == 0 {
				t.detail += "; " + why.Detail
				return w.stepTrap86(regs, f, &t)
			}
			break
		}
		if storedContext(f, ip) {
			continue
		}
		n := w.score86(ip, runs, opt)
		w.noteScanned86(at, ip, n, opt)
		if n > score {
			best, score = at, n
		}
		if (len(runs) == 0 || w.tired86()) && score == scoreCall {
			break // nothing can be better
		}
	}
	if score == 0 {
		return w.stopAtTrapFrame86(regs, opt, why)
	}
	ip, _ := w.word(best)
	g := guess{ip: ip, at: best, sp: best + 4, trust: TrustScan, method: MethodScan}
	g.detail = fmt.Sprintf("%s; score %d of %d: %s", why.Detail, score, bestScore, scoreText[score])
	if score == scoreUnproven {
		w.unproven++
	} else {
		w.unproven = 0
	}
	g.fp, g.hasFP = w.savedEBP(f, opt, best)
	w.noteGuess(g)
	w.left86(g.sp, false)
	w.guessed(regs, f, g)
	return Stop{}, true
}

var scoreText = [...]string{
	scoreUnproven: "unproven: no code bytes to check the call",
	scoreOther:    "a call to another function precedes it",
	scoreCall:     "a call precedes it",
	scoreThis:     "a call to this function precedes it",
}

// score86 ranks a word of the stack as the return address of the function that
// begins at one of the places that the runs began at; 0 means that it is none.
// A call to another place counts against it only when the start is certain.
func (w *Walker) score86(ip uint64, runs []sim86, opt *Options) int {
	switch w.candidate(ip, opt) {
	case proofUnknown:
		return scoreUnproven
	case proofNo:
		return 0
	}
	score := scoreCall
	if len(runs) == 0 || w.tired86() {
		return score
	}
	w.toil86(scoreToil)
	target := w.callTarget86(ip)
	if target != 0 {
		target = w.thunk86(target)
	}
	for _, r := range runs {
		switch called := w.called86(target, r.start); {
		case called == calledThis:
			return scoreThis
		case called == calledOther && r.certain:
			score = scoreOther
		}
	}
	return score
}
