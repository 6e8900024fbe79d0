package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// The generator makes the crashes of a program that does not exist, with the
// truth about them. It knows nothing of the methods that are compared.
//
// A program is a graph of calls between the functions of some modules, in
// layers; few functions are called from many places, as in life. A family is one
// bug. Of most, a function is at fault, and the ways that lead there differ; of
// the others a caller is at fault and the crash shows in a utility that it calls,
// which other families share. The dumps of a family are disturbed in the ways
// that are met in the field: see disturb.

// stack is a stack, innermost first, and the family that it belongs to.
type stack struct {
	frames []string
	family int
	class  string   // of the exception, which the dump tells and not the stack
	site   string   // the frames at the fault before they were disturbed, to tell faults that are in one place
	way    int      // of the family's ways
	done   []string // what disturbed it
}

// Frames of the system that real stacks begin and end with.
var (
	tops = [][]string{
		{"ntdll!RtlpAllocateHeapInternal", "ntdll!RtlAllocateHeap", "ucrtbase!_malloc_base"},
		{"ntdll!RtlpFreeHeap", "ntdll!RtlFreeHeap", "ucrtbase!_free_base"},
		{"vcruntime140!memcpy"},
		{"ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx"},
		{"kernelbase!RaiseException", "vcruntime140!_CxxThrowException"},
		{"ucrtbase!abort"},
		{"ntdll!RtlpWaitOnCriticalSection", "ntdll!RtlpEnterCriticalSectionContended", "ntdll!RtlEnterCriticalSection"},
	}
	bottoms = [][]string{
		{"user32!UserCallWinProcCheckWow", "user32!DispatchMessageWorker", "app!message_loop", "app!wWinMain", "app!__scrt_common_main_seh", "kernel32!BaseThreadInitThunk", "ntdll!RtlUserThreadStart"},
		{"ntdll!TppWorkpExecuteCallback", "ntdll!TppWorkerThread", "kernel32!BaseThreadInitThunk", "ntdll!RtlUserThreadStart"},
		{"core!worker_main", "ucrtbase!thread_start<unsigned int (__cdecl*)(void *),1>", "kernel32!BaseThreadInitThunk", "ntdll!RtlUserThreadStart"},
		{"net!io_thread", "ucrtbase!thread_start<unsigned int (__cdecl*)(void *),1>", "kernel32!BaseThreadInitThunk", "ntdll!RtlUserThreadStart"},
	}
	moduleNames = []string{"app", "ui", "plugin", "core", "net", "db", "gfx", "util"}
	words       = strings.Fields("Load Save Parse Update Draw Send Read Find Insert Remove Open Close Flush Apply Copy Check Build Resolve Notify Commit")
	things      = strings.Fields("Node Item Page Buffer Session Cache Index Table Shape Layer Token Header Event Record Handle Queue Style Image Field Row")
)

// program is the graph of calls: layer by layer, main's first.
type program struct {
	r       *rand.Rand
	layers  [][]int
	names   []string
	callers [][]int // by function: who calls it, in the layer above
}

const (
	layers   = 9
	perLayer = 60
	builds   = 5
)

func newProgram(r *rand.Rand) *program {
	p := &program{r: r}
	for l := range layers {
		var layer []int
		for range perLayer {
			id := len(p.names)
			module := moduleNames[min(len(moduleNames)-1, max(0, l+r.IntN(3)-1))]
			p.names = append(p.names, fmt.Sprintf("%s!%s%s_%d", module, words[r.IntN(len(words))], things[r.IntN(len(things))], id))
			p.callers = append(p.callers, nil)
			layer = append(layer, id)
		}
		p.layers = append(p.layers, layer)
	}
	for l := range layers - 1 {
		for _, f := range p.layers[l] {
			for range 2 + r.IntN(4) {
				callee := p.layers[l+1][zipf(r, perLayer, 0.7)]
				p.callers[callee] = append(p.callers[callee], f)
			}
		}
	}
	return p
}

// zipf picks from n, small numbers more often.
func zipf(r *rand.Rand, n int, s float64) int {
	return min(n-1, int(math.Pow(r.Float64(), 1/(1-s+1e-9))*float64(n)))
}

// path is a way from a function up to main, innermost first.
func (p *program) path(f int, r *rand.Rand) []string {
	var out []string
	for {
		out = append(out, p.names[f])
		c := p.callers[f]
		if len(c) == 0 {
			return append(out, bottoms[f%len(bottoms)]...)
		}
		f = c[r.IntN(len(c))]
	}
}

// bug is a family: the frames at its top and the ways that lead there.
type bug struct {
	class string
	top   []string
	ways  [][]string
}

// site is where the fault shows and what is at fault.
func (b *bug) site() string { return strings.Join(append(slices.Clone(b.top), b.ways[0][0]), " ") }

// classOf is the class of what shows in a routine of the system, or in the program
// itself.
func classOf(top []string) string {
	if len(top) > 0 {
		switch top[0] {
		case "kernelbase!RaiseException":
			return "CPP_EXCEPTION"
		case "ucrtbase!abort":
			return "FASTFAIL_7"
		case "ntdll!NtWaitForSingleObject", "ntdll!RtlpWaitOnCriticalSection":
			return "HANG"
		}
	}
	return "AV"
}

func (p *program) bug() bug {
	r := p.r
	var b bug
	at := 0
	if r.IntN(10) < 7 {
		// A function is at fault, itself or in what it gives to the system.
		at = p.layers[3+r.IntN(layers-3)][r.IntN(perLayer)]
		if r.IntN(2) == 0 {
			b.top = tops[r.IntN(len(tops))]
		}
	} else {
		// A caller is at fault; the crash shows in a utility.
		utility := p.layers[layers-1][zipf(r, perLayer, 0.7)]
		b.top = []string{p.names[utility]}
		if r.IntN(2) == 0 {
			b.top = append(slices.Clone(tops[r.IntN(3)]), b.top...)
		}
		at = p.layers[3+r.IntN(layers-4)][r.IntN(perLayer)]
	}
	b.class = classOf(b.top)
	for range 1 + r.IntN(3) {
		b.ways = append(b.ways, p.path(at, r))
	}
	return b
}

// generate makes the stacks of a number of families, in the order of their coming.
func generate(seed uint64, families, largest int) []stack {
	r := rand.New(rand.NewPCG(seed, 2024))
	p := newProgram(r)
	var all []stack
	sites := map[string]bool{}
	for f := range families {
		b := p.bug()
		for sites[b.site()] { // two faults of one place: nobody could tell their dumps apart
			b = p.bug()
		}
		sites[b.site()] = true
		n := 1 + int(math.Pow(r.Float64(), 3)*float64(largest))
		if f == 0 {
			n = 2 * largest
		}
		for range n {
			way := zipf(r, len(b.ways), 0.6)
			frames, done := p.disturb(slices.Concat(b.top, b.ways[way]))
			all = append(all, stack{frames, f, b.class, b.site(), way, done})
		}
	}
	r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// disturb does to a stack what happens in the field.
func (p *program) disturb(s []string) ([]string, []string) {
	r := p.r
	var done []string
	did := func(what string) {
		if !slices.Contains(done, what) {
			done = append(done, what)
		}
	}
	chance := func(percent int) bool { return r.IntN(100) < percent }
	if chance(20) {
		did("top") // the top differs: another variant of the routine, another depth in it
		switch r.IntN(3) {
		case 0:
			s = slices.Insert(s, 0, "ntdll!KiUserExceptionDispatch")
		case 1:
			s[0] += "_variant"
		case 2:
			if len(s) > 6 {
				s = s[1:]
			}
		}
	}
	for range r.IntN(3) { // a wrapper, a hook
		if chance(40) {
			did("wrapper")
			s = slices.Insert(s, 1+r.IntN(len(s)-1), []string{"hook!Detour", "core!ScopedTrace", "app!InvokeGuarded", "util!std::invoke<T>"}[r.IntN(4)])
		}
	}
	for range r.IntN(3) { // inlined, or left by a tail call
		if at := 1 + r.IntN(len(s)-1); chance(50) && len(s) > 6 {
			did("inlined")
			s = slices.Delete(s, at, at+1)
		}
	}
	if chance(10) { // recursion
		did("recursion")
		at, n := r.IntN(len(s)-2), 1+r.IntN(2)
		for range 1 + r.IntN(20) {
			s = slices.Insert(s, at, slices.Clone(s[at:at+n])...)
		}
	}
	if chance(10) && len(s) > 6 { // the bottom is missing
		did("cut off")
		s = s[:4+r.IntN(len(s)-5)]
	}
	if chance(10) { // what a scan of the stack picked up
		did("guesses")
		for range 1 + r.IntN(3) {
			s = slices.Insert(s, 1+r.IntN(len(s)-1), p.names[r.IntN(len(p.names))])
		}
	}
	if chance(25) { // modules without symbols, in some build
		did("no symbols")
		build := r.IntN(builds)
		for range 1 + r.IntN(2) {
			m := moduleNames[r.IntN(len(moduleNames))] + "!"
			for i, f := range s {
				if strings.HasPrefix(f, m) {
					s[i] = fmt.Sprintf("%s+%x", m[:len(m)-1], hashOf(f, build))
				}
			}
		}
	}
	return s, done
}

// hashOf is where a function lies in a build.
func hashOf(name string, build int) uint32 {
	h := uint32(2166136261 + build*977)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h & 0xffffff
}

// collapse leaves one of frames, and of pairs of frames, that repeat: all methods
// get stacks without recursion.
func collapse(s []string) []string {
	var out []string
	for _, f := range s {
		out = append(out, f)
		for p := 1; p <= 2; p++ {
			if n := len(out); n >= 2*p && slices.Equal(out[n-p:], out[n-2*p:n-p]) {
				out = out[:n-p]
				break
			}
		}
	}
	return out
}
