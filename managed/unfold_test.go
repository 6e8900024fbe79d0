package managed

import (
	"testing"

	"dumptriage/dump"
)

// TestExceptionsThatUnfold: threads that share exceptions do not multiply them without
// end, and what is left out is said.
func TestExceptionsThatUnfold(t *testing.T) {
	const count = maxExceptions + 10
	mem, r := process(t, 1)
	threads(mem)
	if _, err := r.Threads(); err != nil || r.Exhausted() != nil {
		t.Fatal(err, r.Exhausted())
	}
	// Threads 8 bytes apart in one piece of memory: each points to the next, and to one handle.
	const base = 0x1000_0000
	th := r.l.types["Thread"].fields
	th["LinkNext"], th["LastThrownObject"], th["ExceptionTracker"] = 0, 0x4_0000, 0x8_0000
	th["Id"], th["OSId"], th["State"] = 0x8_0000, 0x8_0000, 0x8_0000
	b := make([]byte, 0x10_0000)
	for i := range count {
		next := uint64(base + 8*(i+1))
		if i == count-1 {
			next = 0
		}
		put(b, 8*i, next)
		put(b, 0x4_0000+8*i, objectsVA+0x800)
	}
	mem[base] = b
	put(mem[threadsVA+0x100], 64, base)
	all, err := r.Threads()
	if err != nil || len(all) != count {
		t.Fatalf("%d threads, %v", len(all), err)
	}
	told := 0
	for _, th := range all {
		if e := th.Exception; e != nil && e.Type != "" {
			told += 1 + len(e.Inner)
		}
	}
	if last := all[count-1].Exception; told > maxExceptions || told < maxExceptions-2 || last == nil || last.Note == "" {
		t.Errorf("%d exceptions are told; the last: %+v", told, last)
	}
	if err := r.Exhausted(); dump.AsError(err).Code != dump.Limit {
		t.Errorf("nothing says so: %v", err)
	}
}

// TestTracesThatUnfold: exceptions that share a stack trace do not multiply its frames
// without end.
func TestTracesThatUnfold(t *testing.T) {
	_, r := process(t, 1)
	r.toTell.frames = 3
	b := make([]byte, 16+32*8)
	put(b, 0, 8)
	mem := r.mem.(memory)
	for i := range 8 {
		put(b, 16+32*i, codeVA+0x50, 1, methodsVA+24+0x20, 0)
	}
	array := traceArray(mem, b)
	r.types[array.mt] = typeName{name: "System.Byte[]"}
	if n := len(r.trace(array.va)); n != 3 {
		t.Errorf("%d frames of the 3 that are left", n)
	}
	if n := len(r.trace(array.va)); n != 0 || dump.AsError(r.Exhausted()).Code != dump.Limit {
		t.Errorf("%d frames when none are left, %v", n, r.Exhausted())
	}
}

type array struct{ va, mt uint64 }

// traceArray puts an array with the bytes of a trace into the process.
func traceArray(mem memory, b []byte) array {
	a := array{va: 0x3000_0000, mt: 0x3100_0000}
	head := make([]byte, 16)
	put(head, 0, a.mt)
	put32(head, 8, uint32(len(b)))
	mem[a.va] = append(head, b...)
	return a
}

// TestBasesThatUnfold: names of types count too, which forged ones have long.
func TestBasesThatUnfold(t *testing.T) {
	mem, r := process(t, 1)
	threads(mem)
	put(mem[typesVA], 0x40+16, typesVA+0x80) // of the type of the exception object
	e := r.exception(objectsVA)
	if e.Type == "" || len(e.Bases) != 1 || r.toTell.text != maxExceptionText-len(e.Type)-len(e.Bases[0])-len(e.Message) {
		t.Errorf("%+v, %d bytes left", e, r.toTell.text)
	}
	r.toTell.text = 0
	if e := r.exception(objectsVA); e.Type == "" || len(e.Bases) != 0 || dump.AsError(r.Exhausted()).Code != dump.Limit {
		t.Errorf("%+v, %v", e, r.Exhausted())
	}
}
