package unwind

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
	"dumptriage/pdata"
)

// cfaRow is one row of DWARF call frame information: from an address on, the
// caller's esp (CFA) is a register plus an offset.
type cfaRow struct {
	at  uint64
	reg string
	off int
}

type cfaFunction struct {
	begin, end uint64
	rows       []cfaRow
}

var (
	fdeLine = regexp.MustCompile(`FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.\.([0-9a-f]+)`)
	rowLine = regexp.MustCompile(`^  0x([0-9a-f]+): CFA=([A-Za-z_]+)([+-][0-9]+)?`)
)

// readCFA lists the functions of an image with DWARF call frame information.
func readCFA(t *testing.T, path string) []cfaFunction {
	t.Helper()
	tool, err := exec.LookPath("llvm-dwarfdump-19")
	if err != nil {
		t.Skip("no llvm-dwarfdump-19 here")
	}
	out, err := exec.Command(tool, "--eh-frame", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []cfaFunction
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := fdeLine.FindStringSubmatch(lines.Text()); m != nil {
			begin, _ := strconv.ParseUint(m[1], 16, 64)
			end, _ := strconv.ParseUint(m[2], 16, 64)
			list = append(list, cfaFunction{begin: begin, end: end})
		}
		if m := rowLine.FindStringSubmatch(lines.Text()); m != nil && len(list) > 0 {
			at, _ := strconv.ParseUint(m[1], 16, 64)
			off, _ := strconv.Atoi(m[3])
			f := &list[len(list)-1]
			f.rows = append(f.rows, cfaRow{at, m[2], off})
		}
	}
	return list
}

// imageSpace is a Space of one image and no memory.
type imageSpace struct {
	im   *pdata.Image
	base uint64
	mod  dump.Module
}

func (s *imageSpace) ReadAt(p []byte, va uint64) (int, error) {
	return 0, &dump.MemoryError{VA: va, Size: len(p)}
}

func (s *imageSpace) Module(va uint64) (*dump.Module, bool) { return &s.mod, s.mod.Contains(va) }

func (s *imageSpace) Image(va uint64) (*pdata.Image, uint64) {
	if s.mod.Contains(va) {
		return s.im, s.base
	}
	return nil, 0
}

func (s *imageSpace) Executable(va uint64) (bool, bool) { return s.mod.Contains(va), true }

func openX86(t *testing.T, path string) *imageSpace {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(im.Identity().SizeOfImage)
	return &imageSpace{im, 0x400000, dump.Module{Base: 0x400000, Size: size, Path: path}}
}

// tally counts what a simulation said.
type tally struct{ right, wrong, declined int }

func (n *tally) add(st stack86, complete bool, row cfaRow) {
	switch {
	case !complete, row.reg != "ESP" && row.reg != "EBP", row.reg == "ESP" && st.unknown:
		n.declined++
	case row.reg == "ESP" && st.depth+4 == row.off, row.reg == "EBP" && st.ebp == ebpFrame && st.frame+4 == row.off:
		n.right++
	case row.reg == "EBP" && st.ebp != ebpFrame && st.unknown:
		n.declined++
	default:
		n.wrong++
	}
}

// Running a function's code tells where its return address lies as DWARF call
// frame information does, at every instruction of programs that were compiled
// with and without frame pointers.
func TestSimulateAgainstDWARF(t *testing.T) {
	for _, name := range []string{"t32-clang-fpo.exe", "t32-clang-fp.exe"} {
		path := corpus.Need(t, "wine/x86/"+name)
		s := openX86(t, path)
		w := New(s, dump.X86)
		var known, found tally
		for _, f := range readCFA(t, path) {
			code := make([]byte, f.end-f.begin)
			if n, _ := s.im.ReadRVA(code, uint32(f.begin-s.base)); n < len(code) {
				t.Fatalf("%#x: %d bytes", f.begin, n)
			}
			row := 0
			if len(code) > 800 || len(f.rows) == 0 || f.rows[0].off != 4 {
				continue // the work grows with the square of the length; parts moved away have no entry
			}
			dead := false
			for off, i := 0, 0; off < len(code); i++ {
				at := f.begin + uint64(off)
				in, err := x86asm.Decode(code[off:], 32)
				if err != nil || in.Len == 0 {
					break
				}
				off += in.Len
				// Clang's rows leave out epilogs, and filler behind a jump or
				// return is never run.
				filler := dead && (in.Op == x86asm.NOP || in.Op == x86asm.LEA || in.Op == x86asm.XCHG)
				dead = in.Op == x86asm.RET || in.Op == x86asm.JMP || filler
				if filler || in.Op == x86asm.POP || in.Op == x86asm.RET || i%11 != 0 {
					continue
				}
				for row+1 < len(f.rows) && f.rows[row+1].at <= at {
					row++
				}
				w.x86.effort, w.x86.spent = walkEffort, 0
				r := w.simulate(code, f.begin, at)
				known.add(r.at, r.complete, f.rows[row])
				if at > f.begin {
					verified := sim86{}
					for _, g := range w.runs86(at) {
						if g.start == f.begin {
							verified = g
						}
					}
					found.add(verified.at, verified.complete, f.rows[row])
				}
			}
		}
		t.Logf("%s: start known %+v; start looked for and verified %+v", name, known, found)
		// What is wrong is calls of pointers to functions that leave their
		// arguments on the stack, and switches.
		if known.right < 1000 || known.wrong*100 > known.right || found.right < 500 || found.wrong*100 > found.right {
			t.Errorf("%s: more than 1 in 100 wrong", name)
		}
	}
}

// fpo is a process with a function at 0x1300 that keeps no frame: push esi; sub
// esp, 16; nop; xor eax, eax. It was called from before 0x1540, and ebp is
// another function's.
func fpo() (s *space, ret uint64) {
	s = space86()
	s.put(0x1300, 0x56, 0x83, 0xec, 0x10, 0x90, 0x31, 0xc0, 0x90)
	rel := int32(0x1300 - 0x1540)
	s.put(0x153b, 0xe8, byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24))
	s.poke32(esp0+0x14, uint32(s.base+0x1540))
	s.poke32(esp0+0x40, esp0+0x80, uint32(s.callAt(0x1580))) // where the EBP chain leads
	return s, s.base + 0x1540
}

// The chain would pass over the caller; the function's code tells where its
// return address is: 4 bytes of push and 16 of sub above esp.
func TestSimulatedStep(t *testing.T) {
	s, ret := fpo()
	f, stop, ok := step86(s, regs86(exeBase+0x1305, esp0, esp0+0x40))
	if !ok || f.IP != ret || f.SP != esp0+0x18 || f.FP != esp0+0x40 || f.Method != MethodFPO || f.Trust != TrustFramePointer {
		t.Errorf("%+v %+v", f, stop)
	}
}

// A call to another function before the word there means that it is stale, or
// that the start is not the function's; the chain then serves.
func TestSimulatedStepNeedsTheCall(t *testing.T) {
	s, _ := fpo()
	s.put(0x153c, 0, 0, 0, 0)
	if f, stop, ok := step86(s, regs86(exeBase+0x1305, esp0, esp0+0x40)); !ok || f.IP != exeBase+0x1580 || f.Method != MethodEBP {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Of the words near the top of the stack a scan takes the one behind a call to
// the function that stands there, though another call's lies nearer.
func TestScan86PrefersTheCallToTheFunction(t *testing.T) {
	s, ret := fpo()
	s.put(0x1304, 0x83, 0xe4, 0xf0) // and esp, -16: where esp was is lost
	s.poke32(esp0+8, uint32(s.callAt(0x15c0)))
	f, stop, ok := step86(s, regs86(exeBase+0x1307, esp0, 0))
	if !ok || f.IP != ret || f.Method != MethodScan || !strings.Contains(f.Detail, "score 4 of 4") {
		t.Errorf("%+v %+v", f, stop)
	}
}

// Who takes the arguments of a call off, by the code of the callee and behind
// the call. The depth is that behind push 1; push 2; call.
func TestSimulatedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		callee, after []byte
		depth         int
	}{
		"ret 8":                            {[]byte{0x31, 0xc0, 0xc2, 8, 0}, []byte{0x90}, 0},
		"ret, then add esp, 8":             {[]byte{0xc3}, []byte{0x83, 0xc4, 8}, 8},
		"not seen; add esp behind a move":  {[]byte{0xe9, 0, 0, 0, 0}, []byte{0x89, 0xc6, 0x83, 0xc4, 8}, 8},
		"not seen: what was pushed":        {[]byte{0xeb, 0}, []byte{0x90}, 0},
		"mov eax, 4096 is before no probe": {[]byte{0xc3}, []byte{0x90}, 8},
	} {
		s := space86()
		code := append([]byte{0x6a, 1, 0x6a, 2, 0xe8, 0xf7, 0, 0, 0}, c.after...) // call 0x1400
		s.put(0x1300, code...)
		s.put(0x1400, c.callee...)
		w := s.walkerFor(dump.X86)
		w.x86.effort = walkEffort
		r := w.simulate(code, s.base+0x1300, s.base+0x1309)
		if !r.complete || r.at.depth != c.depth || !r.hasCall || r.call.depth != 8 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// _chkstk lowers esp by eax, __SEH_prolog4 makes a frame.
func TestSimulatedHelpers(t *testing.T) {
	s := space86()
	s.put(0x1400, 0x51, 0x8d, 0x4c, 0x24, 0x04, 0x2b, 0xc8)                                                                               // push ecx; lea ecx, [esp+4]; sub ecx, eax
	s.put(0x1480, 0x68, 0, 0, 0, 0, 0x64, 0xff, 0x35, 0, 0, 0, 0, 0x8b, 0x44, 0x24, 0x10, 0x89, 0x6c, 0x24, 0x10, 0x8d, 0x6c, 0x24, 0x10) // push handler; push fs:[0]; ...; lea ebp, [esp+10h]
	w := s.walkerFor(dump.X86)
	w.x86.effort = walkEffort
	probe := []byte{0xb8, 0, 0x20, 0, 0, 0xe8, 0xf6, 0, 0, 0}
	if r := w.simulate(probe, s.base+0x1300, s.base+0x130a); !r.complete || r.at.depth != 0x2000 {
		t.Errorf("%+v", r)
	}
	seh := []byte{0x6a, 0x10, 0x68, 0, 0, 0, 0, 0xe8, 0x74, 1, 0, 0}
	if r := w.simulate(seh, s.base+0x1300, s.base+0x130c); !r.complete || r.at.ebp != ebpFrame || r.at.frame != 4 || r.at.saved != 4 {
		t.Errorf("%+v", r)
	}
}

// Code that is nothing but calls, under a stack that breaks the chain at every
// frame, ends soon.
func TestHostileCode86(t *testing.T) {
	s := newSpace(0x8000)
	s.base, s.modules = exeBase, []dump.Module{{Base: exeBase, Size: 0x10000, Path: "app.exe"}}
	for rva := uint32(0x1000); rva+16 < 0x9000; rva += 16 {
		s.put(rva, 0x55, 0x8b, 0xec, 0xe8, 0, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0x90, 0x90, 0xcc)
	}
	for off := uint64(0); off < 0x2000; off += 4 {
		s.poke32(esp0+off, uint32(exeBase+0x1008+16*(off/4%0x700)))
	}
	w := s.walkerFor(dump.X86)
	start := time.Now()
	for i := range uint64(100) {
		w.Walk(regs86(exeBase+0x1103+i, esp0+4*i, 3), stackBounds)
	}
	if w.x86.spent > walkerEffort+10*maxSimulated {
		t.Errorf("%d instructions", w.x86.spent)
	}
	t.Logf("%d instructions, %v", w.x86.spent, time.Since(start))
}

// TestSavedByMove: a function that makes room with one instruction and moves the
// registers there, as KiSwapContext does; ebp is not known where it stands.
func TestSavedByMove(t *testing.T) {
	s := space86()
	s.put(0x1300, 0x83, 0xec, 0x10, // sub esp, 16
		0x89, 0x5c, 0x24, 0x0c, // mov [esp+12], ebx
		0x89, 0x74, 0x24, 0x08, // mov [esp+8], esi
		0x89, 0x7c, 0x24, 0x04, // mov [esp+4], edi
		0x89, 0x2c, 0x24, // mov [esp], ebp
		0x90, 0x90, 0x90)
	rel := int32(0x1300 - 0x1540)
	s.put(0x153b, 0xe8, byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24))
	s.poke32(esp0, esp0+0x80, 0xd1, 0x51, 0xb0, uint32(s.base+0x1540))
	s.poke32(esp0+0x80, 0, uint32(s.callAt(0x1580)))
	regs := dump.Registers{Arch: dump.X86}
	regs.SetPC(s.base + 0x1313)
	regs.SetSP(esp0)
	frames := s.walkerFor(dump.X86).Walk(regs, stackBounds).Frames
	if len(frames) < 3 {
		t.Fatalf("%d frames: %+v", len(frames), frames)
	}
	if f := frames[1]; f.IP != s.base+0x1540 || f.SP != esp0+0x14 || f.Method != MethodFPO || !f.HasFP || f.FP != esp0+0x80 {
		t.Errorf("frame 1 %+v", f)
	}
	if f := frames[2]; f.IP != s.base+0x1580 || f.Method != MethodEBP {
		t.Errorf("frame 2 %+v", f)
	}
}
