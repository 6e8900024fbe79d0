package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/unwind"
)

// Frames are the frame records of an x86 image, as unwind.FrameSpace has them.
type Frames interface {
	FrameRecords(va uint64) []unwind.FrameRecord
	FunctionStart(va uint64) (uint64, bool)
}

// X86Result is what came of executing an x86 image. Calls are executed, not
// stepped over, so every boundary's whole stack is known.
type X86Result struct {
	Boundaries int
	Frames     int      // compared
	Wrong      int      // frames with trust cfi that are none of the stack, or whose registers are wrong
	Marked     int      // others that are wrong, and say that they are guesses
	ByRecord   int      // right, by a frame record
	Failures   []string // the first of Wrong
}

// Where an emulated 32-bit process keeps things.
const (
	stack32     = 0x0020_0000
	stack32Size = 0x4_0000
	data32      = 0x1000_0000
	data32Size  = 0x1_0000
	entry32     = stack32 + stack32Size - 0x800
	frame32     = entry32 + 0x400 // the caller's ebp
)

var preserved32 = []dump.Reg{dump.RBX, dump.RSI, dump.RDI, dump.RBP}

// process32 is the emulated memory, as a Space. Without code it stands for a
// dump of which no image is at hand.
type process32 struct {
	Frames
	pe          *pdata.Image
	base        uint64
	module      dump.Module
	code        []byte
	stack, data []byte
	withoutCode bool
}

func (p *process32) ReadAt(b []byte, va uint64) (int, error) {
	n := 0
	if off := va - stack32; off < uint64(len(p.stack)) {
		n = copy(b, p.stack[off:])
	} else if off := va - p.base; off < uint64(len(p.code)) && !p.withoutCode {
		n = copy(b, p.code[off:])
	}
	if n < len(b) {
		return n, &dump.MemoryError{VA: va + uint64(n), Size: len(b) - n}
	}
	return n, nil
}

func (p *process32) Module(va uint64) (*dump.Module, bool) { return &p.module, p.module.Contains(va) }

func (p *process32) Image(va uint64) (*pdata.Image, uint64) {
	if p.withoutCode || !p.module.Contains(va) {
		return nil, 0
	}
	return p.pe, p.base
}

func (p *process32) Executable(va uint64) (executable, known bool) {
	if p.module.Contains(va) {
		return true, false
	}
	return false, true
}

// call32 is a call that is under way.
type call32 struct {
	ret, slot uint64
	regs      [17]uint64 // of the caller
}

// x86Run executes an image.
type x86Run struct {
	p     *process32
	m     *machine
	regs  *[17]uint64
	rng   *rand.Rand
	calls []call32 // outermost first
	sites map[uint64][]uint64
	w     *unwind.Walker
	res   *X86Result
}

// RunX86 executes the functions that begin at the RVAs, up to steps instructions
// each, and unwinds at every instruction. With withoutCode the unwinder sees
// neither image nor code, only records.
func RunX86(path string, frames Frames, starts []uint32, steps int, withoutCode bool) (*X86Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pe, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), path)
	if err != nil {
		return nil, err
	}
	if dump.ArchOfMachine(pe.Identity().Machine) != dump.X86 {
		return nil, fmt.Errorf("%s is no x86 image", path)
	}
	m, err := newMachine(dump.X86)
	if err != nil {
		return nil, err
	}
	p, err := newProcess32(m, pe, frames)
	if err != nil {
		return nil, err
	}
	p.withoutCode = withoutCode
	r := &x86Run{p: p, m: m, regs: m.gprs(), w: unwind.New(p, dump.X86), res: &X86Result{}, sites: callSites(p)}
	for _, start := range starts {
		r.rng = rand.New(rand.NewPCG(uint64(start), 1))
		r.run(start, steps)
	}
	return r.res, nil
}

func newProcess32(m *machine, pe *pdata.Image, frames Frames) (*process32, error) {
	head := make([]byte, pageSize)
	n, _ := pe.ReadRVA(head, 0)
	if head = head[:n]; n < 0x40 {
		return nil, errors.New("headers are cut short")
	}
	optional := int(binary.LittleEndian.Uint32(head[0x3c:])) + 24
	if optional < 0 || optional+32 > len(head) {
		return nil, errors.New("headers are longer than a page")
	}
	size := int(pe.Identity().SizeOfImage+pageSize-1) &^ (pageSize - 1)
	p := &process32{Frames: frames, pe: pe, base: uint64(binary.LittleEndian.Uint32(head[optional+28:]))}
	p.module = dump.Module{Base: p.base, Size: uint64(size), Path: "image"}
	for _, r := range []struct {
		b    *[]byte
		va   uint64
		size int
	}{{&p.code, p.base, size}, {&p.stack, stack32, stack32Size}, {&p.data, data32, data32Size}} {
		b, err := m.mapMemory(r.va, r.size)
		if err != nil {
			return nil, err
		}
		*r.b = b
	}
	return p, m.watch(stack32, stack32Size, data32+data32Size/2|(data32+data32Size/2)<<32)
}

// callSites lists the return addresses of the direct calls to each address: a
// function is entered as if from one of them.
func callSites(p *process32) map[uint64][]uint64 {
	p.load()
	sites := map[uint64][]uint64{}
	for i := 0; i+5 <= len(p.code); i++ {
		if p.code[i] == 0xe8 && p.pe.Executable(uint32(i)) {
			ret := p.base + uint64(i) + 5
			to := (ret + uint64(int64(int32(binary.LittleEndian.Uint32(p.code[i+1:]))))) & 0xffffffff
			sites[to] = append(sites[to], ret)
		}
	}
	return sites
}

// load maps the image anew.
func (p *process32) load() {
	for rva := 0; rva < len(p.code); rva += pageSize {
		clear(p.code[rva : rva+pageSize])
		_, _ = p.pe.ReadRVA(p.code[rva:rva+pageSize], uint32(rva))
	}
}

func (p *process32) put(va uint64, v uint32) {
	binary.LittleEndian.PutUint32(p.stack[va-stack32:], v)
}

func (p *process32) word(va uint64) uint64 {
	if va-stack32 > uint64(len(p.stack)-4) {
		return 0
	}
	return uint64(binary.LittleEndian.Uint32(p.stack[va-stack32:]))
}

// enter makes the state that the function is called in. Below its caller's frame
// the EBP chain ends.
func (r *x86Run) enter(start uint32) bool {
	sites := r.sites[r.p.base+uint64(start)]
	if len(sites) == 0 {
		return false // nothing calls it, so that no return address would prove itself
	}
	ret := sites[r.rng.IntN(len(sites))]
	r.p.load()
	r.m.reset(0)
	clear(r.p.stack)
	for i := 0; i < data32Size; i += 4 {
		binary.LittleEndian.PutUint32(r.p.data[i:], data32+data32Size/2)
	}
	for va := uint64(entry32); va < frame32; va += 4 {
		r.p.put(va, data32+data32Size/2) // arguments
	}
	*r.regs = [17]uint64{dump.RAX: data32 + data32Size/2, dump.RCX: data32 + data32Size/2, dump.RDX: data32 + data32Size/2,
		dump.RBX: 0x0b0b0000 | r.rng.Uint64N(0xffff), dump.RSI: 0x0e510000 | r.rng.Uint64N(0xffff), dump.RDI: 0x0d1d0000 | r.rng.Uint64N(0xffff),
		dump.RBP: frame32, dump.RSP: entry32, dump.RIP: r.p.base + uint64(start)}
	r.p.put(entry32, uint32(ret))
	r.p.put(frame32, 0)
	r.calls = append(r.calls[:0], call32{ret, entry32, *r.regs})
	r.m.load()
	return true
}

// run executes one function and what it calls until it returns, calls a system
// function, or has had its steps.
func (r *x86Run) run(start uint32, steps int) {
	if !r.enter(start) {
		return
	}
	called := false
	for range steps {
		ip, sp := r.regs[dump.RIP], r.regs[dump.RSP]
		for len(r.calls) > 0 && (sp > r.top().slot || !called && ip == r.top().ret) {
			r.calls = r.calls[:len(r.calls)-1]
		}
		if len(r.calls) == 0 || !r.p.pe.Executable(uint32(ip-r.p.base)) || ip < r.p.base || sp < stack32+0x1000 {
			return
		}
		r.boundary()
		code := r.p.code[ip-r.p.base:]
		d := decode(code)
		isCall := code[0] == 0xe8 || code[0] == 0xff && code[1]>>3&7 == 2
		before := *r.regs
		if d.size == 0 && !isCall || !r.m.step(ip) {
			return
		}
		called = isCall
		if isCall {
			slot := r.regs[dump.RSP]
			r.calls = append(r.calls, call32{r.p.word(slot), slot, before})
		}
	}
}

func (r *x86Run) top() *call32 { return &r.calls[len(r.calls)-1] }

// boundary unwinds from where the processor stands and compares every frame.
func (r *x86Run) boundary() {
	r.res.Boundaries++
	regs := dump.Registers{Arch: dump.X86}
	for i, v := range r.regs[:8] {
		regs.Set(dump.Reg(i), v)
	}
	regs.SetPC(r.regs[dump.RIP])
	f := unwind.Frame{IP: r.regs[dump.RIP], Lookup: r.regs[dump.RIP], SP: r.regs[dump.RSP], FP: r.regs[dump.RBP], HasFP: true, Trust: unwind.TrustContext, Method: unwind.MethodContext}
	opt := unwind.Options{StackLimit: stack32, StackBase: stack32 + stack32Size}
	r.w.DiscardMemory()
	for i := len(r.calls) - 1; i >= 0; i-- {
		want := &r.calls[i]
		if r.p.word(want.slot) != want.ret {
			return // overwritten, on a path that no real run takes
		}
		stop, ok := r.w.Step(&regs, &f, &opt)
		r.res.Frames++
		wrong := want.differs(&regs, &f, stop, ok)
		switch {
		case wrong == "" && f.Method == unwind.MethodFPO && f.Trust == unwind.TrustCFI:
			r.res.ByRecord++
		case wrong == "":
		case f.Trust == unwind.TrustCFI:
			r.res.Wrong++
			if len(r.res.Failures) < maxFailures {
				r.res.Failures = append(r.res.Failures, fmt.Sprintf("%#x, frame %d: %s (%s %s)", r.regs[dump.RIP], len(r.calls)-i, wrong, f.Method, f.Detail))
			}
			return
		default:
			r.res.Marked++
			return
		}
	}
}

// differs compares a frame with the caller's state. Registers that are not known
// are no fault. esp may be above the arguments when a return takes them off.
func (c *call32) differs(regs *dump.Registers, f *unwind.Frame, stop unwind.Stop, ok bool) string {
	switch {
	case !ok:
		f.Trust = unwind.TrustNone
		return fmt.Sprintf("no caller: %s: %s", stop.Reason, stop.Detail)
	case f.IP != c.ret:
		return fmt.Sprintf("eip %#x, want %#x", f.IP, c.ret)
	case f.SP < c.slot+4 || f.SP > c.slot+4+0x40:
		return fmt.Sprintf("esp off by %d", int64(f.SP-c.slot-4))
	}
	for _, reg := range preserved32 {
		if v, known := regs.Get(reg); known && v != c.regs[reg] {
			return fmt.Sprintf("%s %#x, want %#x", dump.X86.RegName(reg), v, c.regs[reg])
		}
	}
	return ""
}
