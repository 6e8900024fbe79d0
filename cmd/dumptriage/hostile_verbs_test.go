package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dumptriage/fixtures"
)

// The program of the dump with locks, from fixtures/locks.go.
const crowdBase, crowdSize, crowdStamp = 0x7ff6b5a40000, 0xa000, 0x7e57ab73

// mutexCrowd makes of the dump with locks one in which every one of n threads waits
// for a mutex that thread owner(i) owns. The function that waits keeps its handle in
// rdi. They share the stack of the thread that does so in the dump as it is; with
// returnTo each has one of its own, on which the wait returns to there.
func mutexCrowd(t *testing.T, n int, owner func(i int) int, returnTo func(i int) uint64) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "locks", "lockdemo-small.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	const pid, waits = 0x2e4c, 0x1130 // of the fixture, and its thread that waits for a mutex
	directory := map[uint32]int{}
	for i := range int(le.Uint32(b[8:])) {
		directory[le.Uint32(b[32+12*i:])] = 32 + 12*i
	}
	part := func(size, rva uint32) []byte { return slices.Clone(b[rva : rva+size]) }
	var thread, context, stack []byte
	list := int(le.Uint32(b[directory[3]+8:]))
	for i := range int(le.Uint32(b[list:])) {
		if at := list + 4 + 48*i; le.Uint32(b[at:]) == waits {
			thread = slices.Clone(b[at : at+48])
			stack = part(le.Uint32(thread[32:]), le.Uint32(thread[36:]))
			context = part(le.Uint32(thread[40:]), le.Uint32(thread[44:]))
		}
	}
	app := 0 // where the stack holds the address that the wait returns to
	for v := le.Uint64(stack); v < crowdBase || v >= crowdBase+crowdSize; v = le.Uint64(stack[app:]) {
		app += 8
	}
	stream := func(kind uint32, data []byte) {
		le.PutUint32(b[directory[kind]+4:], uint32(len(data)))
		le.PutUint32(b[directory[kind]+8:], uint32(len(b)))
		b = append(b, data...)
	}
	id := func(i int) uint32 { return uint32(0x10000 + 4*i) }
	handle := func(i int) uint64 { return uint64(0x100000 + 4*i) }
	threads := u32s(uint32(n))
	base, sp := le.Uint64(thread[24:]), le.Uint64(context[0x98:])
	for i := range n {
		le.PutUint32(thread, id(i))
		if returnTo != nil {
			le.PutUint64(stack[app:], returnTo(i))
			le.PutUint64(thread[24:], base+uint64(i)<<20)
			le.PutUint32(thread[36:], uint32(len(b)))
			b = append(b, stack...)
			le.PutUint64(context[0x98:], sp+uint64(i)<<20)
		}
		le.PutUint32(thread[44:], uint32(len(b)))
		le.PutUint64(context[0xb0:], handle(i)) // CONTEXT.Rdi
		b = append(b, context...)
		threads = append(threads, thread...)
	}
	stream(3, threads)
	kind := uint32(len(b))
	b = append(b, utf16String("Mutant")...)
	handles := u32s(16, 40, uint32(n), 0)
	for i := range n {
		info := uint32(len(b))
		b = append(b, u32s(0, 3, 8, pid, id(owner(i)))...) // MiniMutantInformation2
		handles = append(handles, u64s(handle(i))...)
		handles = append(handles, u32s(kind, 0, 0, 0, 1, 1, info, 0)...)
	}
	stream(12, handles)
	return b
}

// longFunction is an image in place of the fixture's program: all of it is one
// function, from 1000h on, with a call in every six bytes from 1010h on.
func longFunction() []byte {
	calls := bytes.Repeat([]byte{0x90, 0xe8, 0, 0, 0, 0}, 0x6f00/6)
	im := fixtures.Image{Name: "lockdemo.exe", Base: crowdBase, TimeDateStamp: crowdStamp, SizeOfImage: crowdSize, Exe: true, EntryPoint: 0x1000,
		Functions: []*fixtures.Function{{Name: "log_writer", RVA: 0x1000, Size: 0x6fe0, Prolog: fixtures.Steps(fixtures.Push(fixtures.RSI), fixtures.Alloc(0x20)),
			Patches: []fixtures.Patch{{Offset: 0x10, Bytes: calls}}}}}
	return im.File()
}

type crowdAnswer struct {
	Analysis struct {
		Hang struct {
			Class      string
			Cycle      []struct{}
			Unresolved int
		}
	}
}

// TestMutexCrowds holds processes of thousands of threads that wait for each other
// to the promise of time, and to the truth.
func TestMutexCrowds(t *testing.T) {
	const n = 4500
	for _, c := range []struct {
		name  string
		owner func(i int) int
		class string
		cycle int
	}{
		{"one cycle of all", func(i int) int { return (i + 1) % n }, "deadlock", n},
		{"pairs", func(i int) int { return i ^ 1 }, "deadlock", 2},
		{"a chain to a thread that waits for itself", func(i int) int { return min(i+1, n-1) }, "self_deadlock", 1},
		{"all behind one that the dump lacks", func(int) int { return n }, "orphaned_lock", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAttack(t)
			a.large = true
			b := mutexCrowd(t, n, c.owner, nil)
			images := filepath.Join("..", "..", "fixtures", "locks", "images")
			got := a.judgeCrowd(t, images, b)
			if h := got.Analysis.Hang; h.Class != c.class || len(h.Cycle) != c.cycle || h.Unresolved != 0 {
				t.Errorf("%s, a cycle of %d, %d not resolved; want %s, %d, 0", h.Class, len(h.Cycle), h.Unresolved, c.class, c.cycle)
			}
		})
	}
}

func (a *attack) judgeCrowd(t *testing.T, images string, b []byte) (got crowdAnswer) {
	t.Helper()
	_, out := a.verb(t, len(b), "triage", "--json", "-i", images, a.write(t, "crowd.dmp", b))
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestOtherPairs compares dumps in which thousands of threads wait in pairs, in each
// dump in others.
func TestOtherPairs(t *testing.T) {
	const n = 4000
	a := newAttack(t)
	a.large = true
	images := filepath.Join("..", "..", "fixtures", "locks", "images")
	first, second := mutexCrowd(t, n, func(i int) int { return i ^ 1 }, nil), mutexCrowd(t, n, func(i int) int { return ((i + 1) ^ 1 - 1 + n) % n }, nil)
	_, out := a.verb(t, len(first)+len(second), "compare", "--json", "-i", images, a.write(t, "1.dmp", first), a.write(t, "2.dmp", second))
	var got struct {
		Comparison struct {
			Class string
			Cycle []uint32
			Dumps []struct{ Class string }
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	c := got.Comparison
	if c.Class != "unknown" || c.Cycle != nil || len(c.Dumps) != 2 || c.Dumps[0].Class != "deadlock" || c.Dumps[1].Class != "deadlock" {
		t.Errorf("%+v: each dump has deadlocks, no two the same, and both are of one moment", c)
	}
}

// TestLongFunction has each thread wait in another place of one function of 28 KB,
// whose code tells what it waits for: decoding it for each took minutes, and kept
// gigabytes. What is not looked for is counted.
func TestLongFunction(t *testing.T) {
	const n, calls = 4096, 0x6f00 / 6
	a := newAttack(t)
	a.large = true
	images, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "locks", "images", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range images {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		a.write(t, filepath.Join("images", filepath.Base(name)), b)
	}
	a.write(t, filepath.Join("images", "lockdemo.exe"), longFunction())
	b := mutexCrowd(t, n, func(i int) int { return (i + 1) % n }, func(i int) uint64 { return crowdBase + 0x1010 + 6*uint64(calls-i) })
	if h := a.judgeCrowd(t, a.path("images"), b).Analysis.Hang; h.Unresolved == 0 || h.Unresolved == n {
		t.Errorf("%d of %d threads not resolved", h.Unresolved, n)
	}
}

// manyModules is a ModuleList of n modules with names of their own.
func manyModules(n int) func(at uint32) []byte {
	return func(at uint32) []byte {
		name := func(i int) []byte { return utf16String(fmt.Sprintf("module%05x.dll", i)) }
		names := at + 4 + 108*uint32(n)
		list, texts := u32s(uint32(n)), []byte(nil)
		for i := range n {
			m := make([]byte, 108)
			le.PutUint64(m, hostileCode&^0xffff+uint64(i)<<16)
			le.PutUint32(m[8:], 0x10000) // SizeOfImage
			le.PutUint32(m[20:], names+uint32(len(texts)))
			list, texts = append(list, m...), append(texts, name(i)...)
		}
		return append(list, texts...)
	}
}

// overflow is an exception of thread 1, a stack overflow, on the stack that threads
// writes.
func overflow(at uint32) []byte {
	const contextSize = 0x4d0
	b := make([]byte, 168+contextSize)
	le.PutUint32(b, 1)
	le.PutUint32(b[8:], 0xc00000fd)
	le.PutUint64(b[24:], hostileCode)
	le.PutUint32(b[160:], contextSize)
	le.PutUint32(b[164:], at+168)
	c := b[168:]
	le.PutUint32(c[0x30:], 0x10000b) // ContextFlags: control, integer, floating point
	le.PutUint64(c[0x98:], hostileStack)
	le.PutUint64(c[0xa0:], hostileStack) // rbp
	le.PutUint64(c[0xf8:], hostileCode)
	return b
}

// regions is a MemoryInfoList of n pages, each with a gap behind it.
func regions(n int) func(at uint32) []byte {
	return func(uint32) []byte {
		b := slices.Concat(u32s(16, 48), u64s(uint64(n)))
		for i := range n {
			va := uint64(0x10000 + i*0x2000)
			b = append(b, slices.Concat(u64s(va, va), u32s(4, 0), u64s(0x1000), u32s(0x1000, 4, 0x20000, 0))...)
		}
		return b
	}
}

// TestCrowds runs the verbs on dumps that hold very many of one thing.
func TestCrowds(t *testing.T) {
	n := 1
	if testing.Short() {
		n = 8
	}
	for _, c := range []struct {
		name    string
		streams map[uint32]func(uint32) []byte
	}{
		{"modules", map[uint32]func(uint32) []byte{3: threads(100, 10), 4: manyModules(16384 / n), 6: overflow}},
		{"handles", map[uint32]func(uint32) []byte{3: threads(100, 10), 4: modules, 12: handles(20000 / n)}},
		{"recursion", map[uint32]func(uint32) []byte{3: threads(1, 100_000/n), 4: modules, 6: overflow}},
		{"regions", map[uint32]func(uint32) []byte{3: threads(100, 10), 4: modules, 6: overflow, 16: regions(100_000 / n)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hostile{}
			h.add(7, system)
			for _, kind := range []uint32{3, 4, 6, 12, 16} {
				if w := c.streams[kind]; w != nil {
					h.add(kind, w)
				}
			}
			a, b := newAttack(t), h.bytes()
			a.large = true
			path := a.write(t, "crowd.dmp", b)
			a.verbs(t, len(b), path, path, a.dir)
		})
	}
}

// TestScrubAtTheTop puts a stack that lies in no thread's bounds at the end of the
// address space, where sums overflow: its words go all the same.
func TestScrubAtTheTop(t *testing.T) {
	const va, contextSize, secret = ^uint64(0) - 0xfff, 0x4d0, "SECRET!!"
	h := &hostile{}
	h.add(7, system)
	h.add(4, modules)
	h.add(3, func(at uint32) []byte {
		b := slices.Concat(u32s(1, 4, 0, 0, 0), u64s(0, 0x5000), u32s(0x10, at+52+contextSize, contextSize, at+52))
		c := make([]byte, contextSize)
		le.PutUint32(c[0x30:], 0x10000b) // ContextFlags: control, integer, floating point
		le.PutUint64(c[0x98:], va)
		le.PutUint64(c[0xf8:], hostileCode)
		b = append(b, c...)
		for range 0x1000 / 32 {
			b = append(slices.Concat(b, []byte(secret), u64s(hostileCode+1)), secret+secret...)
		}
		return b
	})
	h.add(5, func(at uint32) []byte { return slices.Concat(u32s(1), u64s(va), u32s(0x1000, at-0x1000)) })
	a := newAttack(t)
	in, out := a.write(t, "top.dmp", h.bytes()), a.path("out.dmp")
	if status, _ := a.verb(t, 0x1000, "scrub", in, out); status != 0 {
		t.Fatalf("exit %d", status)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, u64s(hostileCode+1)) || bytes.Contains(b, []byte(secret)) {
		t.Error("the frames are gone, or words that are none of them are there")
	}
}
