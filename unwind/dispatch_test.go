package unwind

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
)

// dispatcherSpace says that the function at RVA 0x1100 is a dispatcher.
type dispatcherSpace struct {
	*space
	kind Dispatcher
}

func (s dispatcherSpace) Dispatcher(va uint64) Dispatcher {
	if va >= imageBase+0x1100 && va < imageBase+0x1200 {
		return s.kind
	}
	return NoDispatcher
}

const (
	dispatchSP = sp0 + 0x100
	faultSP    = dispatchSP + 0x700
	faultIP    = imageBase + 0x1777
)

// dispatchScene is a handler called by a dispatcher of whose CONTEXT the unwind
// data says nothing: it claims a frame of 0x28 bytes.
func dispatchScene(kind Dispatcher) (dispatcherSpace, func() Stack) {
	s := newSpace(0x1000)
	s.function(0x1100, 0x1200, []byte{1, 4, 1, 0, 4, 0x42}, nil)
	s.function(0x1500, 0x1600, []byte{1, 4, 1, 0, 4, 0x42}, nil)
	s.function(0x1700, 0x1800, []byte{1, 0, 0, 0}, nil)
	s.poke(dispatchSP-8, s.callAt(0x1150))
	ctx := s.bytesAt[stackLow][dispatchSP-stackLow:]
	binary.LittleEndian.PutUint32(ctx[0x30:], 0x0010001f) // CONTEXT_ALL of AMD64
	binary.LittleEndian.PutUint16(ctx[0x38:], 0x33)       // SegCs
	s.poke(dispatchSP+0x90, 0xbb, faultSP)                // Rbx, Rsp
	s.poke(dispatchSP+0x78, 0xaa)                         // Rax
	s.poke(dispatchSP+0xf8, faultIP)                      // Rip
	s.poke(dispatchSP+0x4f0, 0xc0000005, 0, faultIP)      // EXCEPTION_RECORD
	s.poke(faultSP, s.callAt(0x1580), 0, 0, 0, 0, 0, 0)   // its caller
	d := dispatcherSpace{s, kind}
	return d, func() Stack {
		w := newWalker(d, dump.AMD64, s.walker().find)
		return w.Walk(at(imageBase+0x1510, dispatchSP-8-0x28), stackBounds)
	}
}

// The walk goes on from the CONTEXT: all registers are known again, and the
// frame stands at an instruction, not behind a call.
func TestExceptionDispatcher(t *testing.T) {
	_, walk := dispatchScene(ExceptionDispatcher)
	st := walk()
	if len(st.Frames) != 4 {
		t.Fatalf("%+v", st)
	}
	if f := st.Frames[1]; f.IP != imageBase+0x1150 || f.SP != dispatchSP || f.Trust != TrustCFI {
		t.Errorf("the dispatcher: %+v", f)
	}
	if f := st.Frames[2]; f.IP != faultIP || f.Lookup != faultIP || f.SP != faultSP || f.Method != MethodException || f.Trust != TrustContext {
		t.Errorf("what it interrupted: %+v", f)
	}
	if f := st.Frames[3]; f.IP != imageBase+0x1580 || f.SP != faultSP+8 {
		t.Errorf("its caller: %+v", f)
	}
}

// The registers are the CONTEXT's, volatile ones too.
func TestExceptionDispatcherRegisters(t *testing.T) {
	d, _ := dispatchScene(ExceptionDispatcher)
	w := newWalker(d, dump.AMD64, d.walker().find)
	regs, opt := at(imageBase+0x1150, dispatchSP), stackBounds
	f := Frame{IP: imageBase + 0x1150, Lookup: imageBase + 0x114f, SP: dispatchSP}
	if stop, ok := w.Step(&regs, &f, &opt); !ok || f.IP != faultIP {
		t.Fatalf("%+v %+v", f, stop)
	}
	wantReg(t, &regs, dump.RAX, 0xaa)
	wantReg(t, &regs, dump.RBX, 0xbb)
}

// What does not prove itself is not used.
func TestDispatcherNotBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Dispatcher
		spoil func(d dispatcherSpace)
	}{
		"another function":               {NoDispatcher, func(dispatcherSpace) {}},
		"an APC, whose record is none":   {APCDispatcher, func(dispatcherSpace) {}},
		"no CONTEXT of this machine":     {ExceptionDispatcher, func(d dispatcherSpace) { d.poke32(dispatchSP+0x30, 0x1001f) }},
		"registers missing":              {ExceptionDispatcher, func(d dispatcherSpace) { d.poke32(dispatchSP+0x30, 0x100001) }},
		"kernel mode":                    {ExceptionDispatcher, func(d dispatcherSpace) { d.poke32(dispatchSP+0x38, 0x10) }},
		"a stack pointer that goes down": {ExceptionDispatcher, func(d dispatcherSpace) { d.poke(dispatchSP+0x98, sp0) }},
		"a stack pointer off the stack":  {ExceptionDispatcher, func(d dispatcherSpace) { d.poke(dispatchSP+0x98, stackHigh+8) }},
		"the record of another place":    {ExceptionDispatcher, func(d dispatcherSpace) { d.poke(dispatchSP+0x500, faultIP+4) }},
	} {
		d, walk := dispatchScene(c.kind)
		c.spoil(d)
		for _, f := range walk().Frames {
			if f.Method == MethodException {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// An APC's CONTEXT is used when the unwind data leads to the same place.
func TestAPCDispatcher(t *testing.T) {
	d, walk := dispatchScene(APCDispatcher)
	// The dispatcher's data now says: a machine frame behind 0x588 bytes.
	d.image.infos[0x8000] = []byte{1, 0, 3, 0, 0, 0x01, 0xb1, 0, 0, 0x0a, 0, 0}
	d.poke(dispatchSP+0x588, faultIP, 0x33, 0x246, faultSP, 0x2b)
	st := walk()
	if len(st.Frames) != 4 || st.Frames[2].Method != MethodException || st.Frames[2].SP != faultSP {
		t.Errorf("%+v", st)
	}
	d.poke(dispatchSP+0xf8, faultIP-1) // now they disagree, and the unwind data counts
	st = walk()
	if len(st.Frames) != 4 || st.Frames[2].Method != MethodMachineFrame || st.Frames[2].IP != faultIP {
		t.Errorf("%+v", st)
	}
}
