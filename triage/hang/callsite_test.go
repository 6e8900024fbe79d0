package hang

import (
	"encoding/hex"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

const siteStart = 0x140001000

// argumentOf evaluates a register at the call that ends code, given in
// hexadecimal. The frame's registers are rbx 0x1111, rdi 0x2222, rsi with its
// upper half in use, rsp 0x5000 and memory at 0x5030 holds 0x77.
func argumentOf(t testing.TB, code string, reg dump.Reg) (uint64, bool) {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	s := siteIn(b, siteStart, new([]instruction))
	if s == nil {
		return 0, false
	}
	m := memory32{0x5030: 0x77, 0x5034: 0, 0x5038: 0x99}
	a := &analysis{inc: incident(), space: triage.NewView(m, nil, nil), sites: map[siteKey]*callSite{}}
	regs := dump.Registers{Arch: dump.AMD64}
	regs.Set(dump.RBX, 0x1111)
	regs.Set(dump.RDI, 0x2222)
	regs.Set(dump.RSI, 0x7ff600003333)
	regs.Set(dump.RSP, 0x5000)
	h := half("ntdll!f", "app!g")
	e := evaluation{a: a, h: h, regs: []dump.Registers{{}, regs}, frame: 1, site: s, depth: 1}
	return e.register(len(s.code), reg, maxSteps)
}

// Call sites assembled by hand. E8 is call rel32, whose target does not matter.
func TestArguments(t *testing.T) {
	const call = " e8 00000000"
	for _, c := range []struct {
		what, code string
		reg        dump.Reg
		want       uint64
		ok         bool
	}{
		{"mov rcx, rdi", "488bcf" + call, dump.RCX, 0x2222, true},
		{"mov ecx, edi", "8bcf" + call, dump.RCX, 0x2222, true},
		{"mov ecx, esi: the lower half", "8bce" + call, dump.RCX, 0x3333, true},
		{"lea ecx, [rsi+1]: the lower half", "8d4e01" + call, dump.RCX, 0x3334, true},
		{"lea rcx, [rbx+10h]", "488d4b10" + call, dump.RCX, 0x1121, true},
		{"lea rcx, [rip+100h]", "488d0d00010000" + call, dump.RCX, siteStart + 7 + 0x100, true},
		{"mov ecx, 1c4h", "b9c4010000" + call, dump.RCX, 0x1c4, true},
		{"mov rcx, -1", "48c7c1ffffffff" + call, dump.RCX, ^uint64(0), true},
		{"xor r8d, r8d", "4533c0" + call, dump.R8, 0, true},
		{"mov rdx, [rsp+30h]", "488b542430" + call, dump.RDX, 0x77, true},
		{"mov edx, [rsp+38h]", "8b542438" + call, dump.RDX, 0x99, true},
		{"mov rdx, [rsp+40h]: not in memory", "488b542440" + call, dump.RDX, 0, false},
		{"mov rax, rbx; mov rcx, rax", "488bc3 488bc8" + call, dump.RCX, 0x1111, true},
		{"sub rsp, 20h before: rsp is what it is at the call", "4883ec20 488b542430" + call, dump.RDX, 0x77, true},
		{"mov rcx, rbx; mov rbx, rax: rbx was another", "488bcb 488bd8" + call, dump.RCX, 0, false},
		{"mov rbx, rax; mov rcx, rbx: rbx is the frame's", "488bd8 488bcb" + call, dump.RCX, 0x1111, true},
		{"mov cl, 1: a part", "b101" + call, dump.RCX, 0, false},
		{"mov rcx, rdi, then a call", "488bcf" + call + call, dump.RCX, 0, false},
		{"cmove rcx, rdi", "480f44cf" + call, dump.RCX, 0, false},
		{"add rcx, rdi", "4803cf" + call, dump.RCX, 0, false},
		{"mov rcx, gs:[30h]", "65488b0c2530000000" + call, dump.RCX, 0, false},
		{"je +3 to the call passes mov rcx, rdi by", "7403 488bcf" + call, dump.RCX, 0, false},
		{"je +2 to behind nothing of it", "7402 6690 488bcf" + call, dump.RCX, 0x2222, true},
		{"jmp +0 before", "488bcf eb00" + call, dump.RCX, 0, false},
		{"nothing sets it", "90" + call, dump.R9, 0, false},
		{"vzeroupper is not decoded", "c5f877 488bcf" + call, dump.RCX, 0, false},
		{"ends in no call", "488bcf 90", dump.RCX, 0, false},
		{"cut in an instruction", "488bcf e80000", dump.RCX, 0, false},
		{"nothing", "", dump.RCX, 0, false},
	} {
		if got, ok := argumentOf(t, c.code, c.reg); got != c.want || ok != c.ok {
			t.Errorf("%s: %#x %v, want %#x %v", c.what, got, ok, c.want, c.ok)
		}
	}
}

// Threads of a small dump, each behind a call by the pointer at rip+disp with a
// lock's address in rcx.
func smallDump(t *testing.T, codes ...string) *analysis {
	t.Helper()
	a := &analysis{inc: incident(), rules: builtinRules(t), sites: map[siteKey]*callSite{}}
	for i, code := range codes {
		b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		th := thread(uint32(100+4*i), "ntdll!NtWaitForAlertByThreadId", "ntdll!RtlEnterCriticalSection", "app!f")
		ret := uint64(0x9000 + i)
		th.User.Frames[2].IP = ret
		key := siteKey{a.space, ret}
		if a.sites[key] = siteIn(b, siteStart, new([]instruction)); a.sites[key] == nil {
			t.Fatalf("code %d does not end in a call", i)
		}
		a.inc.Threads = append(a.inc.Threads, th)
	}
	return a
}

const ( // all functions begin at one address here; a call's pointer is at 0x140002000
	takes   = "488d0dd9020000" // at 0: lea rcx, [0x1400012e0]
	enter6  = "ff15f30f0000"   // at 7: call [0x140002000]
	waits13 = "488d0dec030000" // at 13: lea rcx, [0x140001400]
	enter20 = "ff15e60f0000"   // at 20: call [0x140002000]
)

func TestOwnersInferredFromCode(t *testing.T) {
	wait := func(a *analysis, i int, lock uint64) {
		for len(a.waits) <= i {
			a.waits = append(a.waits, Wait{Class: ClassSleep})
		}
		a.waits[i] = Wait{Class: ClassCritical, Frame: 1, Object: Object{Kind: KindCritical, Value: lock}}
	}
	const held, wanted = 0x1400012e0, 0x140001400
	holder := takes + enter6 + waits13 + enter20
	owner := func(a *analysis) *Owner { a.heldByCode(); return a.waits[0].Owner }

	a := smallDump(t, waits13[:0]+"488d0df9030000ff15f30f0000", holder) // the first waits for what the second took
	wait(a, 0, held)
	wait(a, 1, wanted)
	if o := owner(a); o == nil || o.Index != 1 || o.Confidence != Low || o.Evidence[0].Source != FromCode {
		t.Errorf("owner %+v", o)
	}

	// Two that might have it: not known.
	a = smallDump(t, "488d0df9030000ff15f30f0000", holder, holder)
	wait(a, 0, held)
	wait(a, 1, wanted)
	wait(a, 2, wanted)
	if o := owner(a); o != nil {
		t.Errorf("owner %+v of two", o)
	}

	// Passed to another function since, which may have given it back:
	// lea rcx, [0x1400012e0]; call [0x140002008] in between.
	released := takes + enter6 + "488d0dcc020000" + "ff15ee0f0000" + "488d0ddf030000" + "ff15d90f0000"
	a = smallDump(t, "488d0df9030000ff15f30f0000", released)
	wait(a, 0, held)
	wait(a, 1, wanted)
	if o := owner(a); o != nil {
		t.Errorf("owner %+v of a lock that was passed on", o)
	}

	// A slim lock does not let its owner in again; a critical section does.
	again := takes + enter6 + "488d0dcc020000" + enter20
	for class, want := range map[Class]bool{ClassSRW: true, ClassCritical: false} {
		a = smallDump(t, again)
		wait(a, 0, held)
		a.waits[0].Class = class
		if o := owner(a); (o != nil && o.Index == 0) != want {
			t.Errorf("%s taken twice: owner %+v", class, o)
		}
	}
}

// Any code and any lock: an answer, no panic, in bounded time.
func FuzzCallSite(f *testing.F) {
	for _, s := range []string{"488bcfe800000000", "488d0d00010000ff15000000004883c420ffd6", "7403488bcfe800000000", "c5f877e800000000"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, r := range argRegs {
			argumentOf(t, hex.EncodeToString(code), r)
		}
		siteIn(code, siteStart, new([]instruction))
	})
}

func FuzzCriticalSection(f *testing.F) {
	f.Add([]byte{0x00, 0x80, 0x29, 0, 0xfa, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0x4c, 0x1a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		m := memory32{}
		for i := 0; i+4 <= len(b) && i < 64; i += 4 {
			m.put(lock32+uint32(i), uint32(b[i])|uint32(b[i+1])<<8|uint32(b[i+2])<<16|uint32(b[i+3])<<24)
		}
		arch := dump.X86
		if wide {
			arch = dump.AMD64
		}
		a := &analysis{inc: incident(), space: triage.NewView(m, nil, nil)}
		if c := a.readCritical(lock32, arch); c != nil && c.plausible() && c.Locked() && c.OwningThread&3 != 0 {
			t.Errorf("%+v", c)
		}
	})
}
