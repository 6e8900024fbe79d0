package triage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/corpus"
	"dumptriage/pdata"
	"dumptriage/symbols"
	"dumptriage/unwind"
)

// codeAt is memory that holds a few bytes at a few addresses, and an image.
type codeAt struct {
	bytes map[uint64][]byte
	image *pdata.Image
	base  uint64
}

func (c *codeAt) ReadAt(p []byte, va uint64) (int, error) {
	b, ok := c.bytes[va]
	if !ok {
		return 0, dump.Errorf(dump.OutOfRange, "memory", "not in the dump")
	}
	return copy(p, b), nil
}

func (c *codeAt) Image(va uint64) (*pdata.Image, uint64) {
	if c.image == nil || va < c.base || va-c.base >= 0x10000 {
		return nil, 0
	}
	return c.image, c.base
}

// branch is a call (e8) or jump (e9) at an address.
func branch(opcode byte, from, to uint64) []byte {
	return append([]byte{opcode}, binary.LittleEndian.AppendUint32(nil, uint32(to-from-5))...)
}

// The modules of the stacks below.
var (
	proofApp      = &Module{Module: &dump.Module{Path: `C:\demo\app.exe`, Base: 0x140000000, Size: 0x10000}}
	proofKernel32 = &Module{Module: &dump.Module{Path: `C:\Windows\System32\KERNEL32.DLL`, Base: 0x7ff810000000, Size: 0x10000}}
	proofNtdll    = &Module{Module: &dump.Module{Path: `C:\Windows\System32\ntdll.dll`, Base: 0x7ff820000000, Size: 0x10000}}
)

// inFunction makes a frame that stands 20h behind a function's start.
func inFunction(m *Module, function string, start uint64, trust unwind.Trust) Frame {
	ip := m.Base + start + 0x20
	f := Frame{Frame: unwind.Frame{IP: ip, Lookup: ip - 1, Trust: trust}, Module: m}
	if function != "" {
		f.Name = symbols.Name{Function: function, Offset: 0x20, Source: symbols.SourcePDB}
	}
	return f
}

// Stacks with a scan in them, innermost first, and what becomes of each frame. A
// call is written before a frame's return address: to the function of the frame
// above (this), elsewhere (other), through a register (pointer), or it is not in
// the dump.
func TestProof(t *testing.T) {
	const scan, cfi, context = unwind.TrustScan, unwind.TrustCFI, unwind.TrustContext
	const none, proven, unproven, refuted = ProofNotNeeded, Proven, Unproven, Refuted
	type row struct {
		m     *Module
		trust unwind.Trust
		call  string
		want  Proof
	}
	ended := unwind.Stop{Reason: unwind.StopEndOfStack}
	lost := unwind.Stop{Reason: unwind.StopNoUnwindData}
	for name, c := range map[string]struct {
		stop unwind.Stop
		rows []row
	}{
		"no scan": {ended, []row{{proofApp, context, "", none}, {proofApp, cfi, "other", none}, {proofNtdll, cfi, "", none}}},
		"every call went where it had to": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", proven}, {proofApp, cfi, "this", proven}, {proofApp, cfi, "this", proven}}},
		"a pointer says nothing against it": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", proven}, {proofApp, cfi, "pointer", proven}, {proofApp, cfi, "this", proven}}},
		// The second and third frame are of a call that is over: the fourth made it,
		// and has called something else since.
		"a call that is over": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", refuted}, {proofApp, cfi, "this", refuted}, {proofApp, cfi, "other", proven}, {proofApp, cfi, "this", proven}}},
		"over, and what it meets is not known to be there either": {lost, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", refuted}, {proofApp, cfi, "other", unproven}, {proofNtdll, cfi, "", unproven}}},
		"unwinding leads nowhere": {lost, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", unproven}, {proofApp, cfi, "this", unproven}, {proofNtdll, cfi, "", unproven}}},
		"a scan behind which nothing follows": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", unproven}}},
		// Two runs: what the first scan leads to is lost in a module without an image,
		// what the second leads to is the thread's begin.
		"each scan begins anew": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", unproven}, {proofApp, cfi, "this", unproven}, {proofNtdll, scan, "", unproven},
			{proofApp, scan, "pointer", proven}, {proofApp, cfi, "this", proven}}},
		"a scan that finds the very call goes on": {ended, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", proven}, {proofApp, cfi, "this", proven}, {proofApp, scan, "this", proven}, {proofApp, cfi, "this", proven}}},
		"a scan that finds the call of a frame that is certain": {lost, []row{
			{proofApp, context, "", none}, {proofApp, scan, "this", proven}, {proofApp, cfi, "other", proven}}},
		"where threads begin": {lost, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", proven}, {proofApp, cfi, "this", proven}, {proofKernel32, cfi, "", proven}, {proofNtdll, scan, "", unproven}}},
		// A callback of kernel32's: the program's own frames follow.
		"kernel32 in the middle": {lost, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", unproven}, {proofApp, cfi, "this", unproven}, {proofKernel32, cfi, "", unproven}, {proofApp, scan, "", unproven}}},
		// A worker of a pool that waits for work, over the remains of a callback:
		// ntdll had called it, and kernel32 is met by a scan of its own.
		"a worker's callback that is over": {lost, []row{
			{proofNtdll, context, "", none}, {proofApp, scan, "", unproven}, {proofApp, cfi, "this", unproven}, {proofNtdll, cfi, "", unproven},
			{proofNtdll, scan, "", unproven}, {proofKernel32, scan, "", unproven}, {proofNtdll, scan, "", unproven}}},
	} {
		frames, code := []Frame(nil), &codeAt{bytes: map[uint64][]byte{}}
		for i, r := range c.rows {
			f := inFunction(r.m, fmt.Sprintf("f%d", i), uint64(0x100*(i+1)), r.trust)
			if r.trust == context {
				f.Lookup = f.IP
			}
			switch call := f.IP - 5; r.call {
			case "this":
				code.bytes[call] = branch(0xe8, call, frames[i-1].IP-0x20)
			case "other":
				code.bytes[call] = branch(0xe8, call, r.m.Base+0x4000)
			case "pointer":
				code.bytes[call] = []byte{0x48, 0x90, 0x90, 0xff, 0xd0} // call rax
			}
			frames = append(frames, f)
		}
		p := prover{frames: frames, arch: dump.AMD64, code: code, stop: c.stop}
		p.prove()
		for i, r := range c.rows {
			if frames[i].Proof != r.want {
				t.Errorf("%s: frame %d is %q, want %q", name, i, frames[i].Proof, r.want)
			}
			if frames[i].Certain() != (r.trust != scan && (r.want == none || r.want == proven)) {
				t.Errorf("%s: frame %d: certain is %v", name, i, frames[i].Certain())
			}
		}
	}
}

// Where calls lead, by the encodings of the manuals.
func TestCallTargets(t *testing.T) {
	const at, to, thunk = 0x140001000, 0x140002000, 0x140003000
	for name, c := range map[string]struct {
		arch dump.Arch
		code map[uint64][]byte
		want called
	}{
		"call":                 {dump.AMD64, map[uint64][]byte{at: branch(0xe8, at, to)}, calledAbove},
		"call through a jump":  {dump.AMD64, map[uint64][]byte{at: branch(0xe8, at, thunk), thunk: branch(0xe9, thunk, to)}, calledAbove},
		"call elsewhere":       {dump.AMD64, map[uint64][]byte{at: branch(0xe8, at, thunk)}, calledOther},
		"no code":              {dump.AMD64, nil, calledUnknown},
		"call eax":             {dump.AMD64, map[uint64][]byte{at + 3: {0xff, 0xd0}}, calledUnknown},
		"32-bit, wraps around": {dump.X86, map[uint64][]byte{0x40001000: branch(0xe8, 0x40001000, 0x40002000)}, calledAbove},
		"bl":                   {dump.ARM64, map[uint64][]byte{at + 1: {0xff, 0x03, 0x00, 0x94}}, calledAbove}, // to +ffch
		"bl backwards":         {dump.ARM64, map[uint64][]byte{at + 1: {0x00, 0x00, 0x00, 0x96}}, calledOther}, // by 128 MB
		"blr x8":               {dump.ARM64, map[uint64][]byte{at + 1: {0x00, 0x01, 0x3f, 0xd6}}, calledUnknown},
	} {
		above := Frame{Frame: unwind.Frame{IP: to + 8, Lookup: to + 7}, Module: proofApp, Name: symbols.Name{Function: "f", Offset: 8, Source: symbols.SourcePDB}}
		ret := uint64(at + 5)
		if c.arch == dump.X86 {
			above.IP, above.Lookup, ret = 0x40002008, 0x40002007, 0x40001005
		}
		if c.arch == dump.ARM64 { // bl stands at the return address less 4
			above.IP = at + 1 + 0xffc + 8
		}
		p := prover{frames: []Frame{above, {Frame: unwind.Frame{IP: ret, Lookup: ret - 1}, Module: proofApp}}, arch: c.arch, code: &codeAt{bytes: c.code}}
		if got := p.call(1); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A call through the table of imported functions leads out of the image.
func TestImportedCall(t *testing.T) {
	const base, ret, thunk, slot = 0x140000000, 0x140001026, 0x140001800, 0x140004010
	file := (&fixtures.Image{Name: "app.exe", Base: base, SizeOfImage: 0x10000, EntryPoint: 0x1000, Exe: true,
		Functions: []*fixtures.Function{{Name: "main", RVA: 0x1000, Size: 0x40}, {Name: "other", RVA: 0x1100, Size: 0x40}}}).File()
	header := binary.LittleEndian.Uint32(file[0x3c:]) // e_lfanew
	table := file[header+24+112+12*8:]                // the directory of index 12
	binary.LittleEndian.PutUint32(table, 0x4000)
	binary.LittleEndian.PutUint32(table[4:], 0x20)
	im, err := pdata.OpenFile(bytes.NewReader(file), int64(len(file)), "app.exe")
	if err != nil {
		t.Fatal(err)
	}
	through := func(modRM byte, from uint64) []byte {
		return append([]byte{0xff, modRM}, binary.LittleEndian.AppendUint32(nil, uint32(slot-from-6))...)
	}
	for name, c := range map[string]struct {
		code  map[uint64][]byte
		above *Module
		want  called
	}{
		"call [slot], to the same image":    {map[uint64][]byte{ret - 6: through(0x15, ret-6)}, proofApp, calledOther},
		"call [slot], to another":           {map[uint64][]byte{ret - 6: through(0x15, ret-6)}, proofNtdll, calledUnknown},
		"call of jmp [slot]":                {map[uint64][]byte{ret - 5: branch(0xe8, ret-5, thunk), thunk: through(0x25, thunk)}, proofApp, calledOther},
		"call [what lies behind the table]": {map[uint64][]byte{ret - 6: {0xff, 0x15, 0x00, 0x30, 0x00, 0x00}}, proofApp, calledUnknown},
	} {
		p := prover{arch: dump.AMD64, code: &codeAt{c.code, im, base},
			frames: []Frame{inFunction(c.above, "other", 0x1100, unwind.TrustScan), {Frame: unwind.Frame{IP: ret, Lookup: ret - 1}, Module: proofApp}}}
		if got := p.call(1); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// The program's entry, though nothing tells how the walk went on from it.
	p := prover{arch: dump.AMD64, code: &codeAt{nil, im, base}, stop: unwind.Stop{Reason: unwind.StopNoUnwindData},
		frames: []Frame{inFunction(proofApp, "other", 0x1100, unwind.TrustScan), inFunction(proofApp, "main", 0x1000, unwind.TrustCFI)}}
	if p.prove(); p.frames[1].Proof != Proven {
		t.Errorf("the program's entry is %v", p.frames[1].Proof)
	}
}

// Dumps whose stacks another tool has walked, with the system's images, read
// without them: what is certain behind a scan is on those stacks.
func TestProofAgainstTruth(t *testing.T) {
	dir := corpus.Need(t, "wine/t64-clang-O1")
	for _, name := range []string{"hang_threads", "hang_deadlock", "hang_sleep", "hang_readfile", "hang_spin"} {
		truth := walkedBy64(t, dir+"/"+name+".txt")
		d, err := Open(dir + "/" + name + ".dmp")
		if err != nil {
			t.Fatal(err)
		}
		inc := analyze(t, d, nil, Options{Images: []string{dir}, NotBeside: true})
		proved := 0
		for i := range inc.Threads {
			th := &inc.Threads[i]
			for k := range th.User.Frames {
				f := &th.User.Frames[k]
				if f.Proof == Proven && f.Certain() {
					proved++
				}
				if f.Proof == ProofNotNeeded || !f.Certain() && f.Proof != Refuted || len(truth[th.ID]) == 0 {
					continue
				}
				if live := truth[th.ID][[2]uint64{f.IP, f.SP}]; live != (f.Proof == Proven) {
					t.Errorf("%s, thread %d, frame %d %s+%#x is %v; on the stack: %v", name, th.ID, k, f.Name.Function, f.Name.Offset, f.Proof, live)
				}
			}
		}
		if proved == 0 && name != "hang_spin" {
			t.Errorf("%s: nothing is proved", name)
		}
		d.Close()
	}
}

// walkedBy64 reads the frames that StackWalk64 gave, by thread: (pc, sp).
func walkedBy64(t *testing.T, file string) map[uint32]map[[2]uint64]bool {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[uint32]map[[2]uint64]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var id, frame uint32
		var pc, sp uint64
		if !strings.HasPrefix(lines.Text(), "SW ") {
			continue
		}
		if n, _ := fmt.Sscanf(lines.Text(), "SW tid=%d frame=%d pc=%x sp=%x", &id, &frame, &pc, &sp); n != 4 {
			continue
		}
		if out[id] == nil {
			out[id] = map[[2]uint64]bool{}
		}
		out[id][[2]uint64{pc, sp}] = true
	}
	return out
}
