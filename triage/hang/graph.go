package hang

import "slices"

// graph is who waits for whom, by index of thread.
type graph struct {
	out, in [][]int
}

func newGraph(waits []Wait) *graph {
	g := &graph{make([][]int, len(waits)), make([][]int, len(waits))}
	for i := range waits {
		for _, o := range waits[i].owners() {
			if o.Index >= 0 && o.Index < len(waits) && !slices.Contains(g.out[i], o.Index) {
				g.out[i] = append(g.out[i], o.Index)
				g.in[o.Index] = append(g.in[o.Index], i)
			}
		}
	}
	return g
}

// owners lists the threads that all have to let go before a thread goes on. Of
// several handles any one may be enough, unless all are waited for.
func (w *Wait) owners() []*Owner {
	var out []*Owner
	if w.Owner != nil {
		out = append(out, w.Owner)
	}
	if w.Object.WaitAll {
		for i := range w.Object.Handles {
			if o := w.Object.Handles[i].Owner; o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// components are the strongly connected components in which threads wait for
// each other or a thread for itself, by Tarjan's algorithm without recursion.
func (g *graph) components() [][]int {
	n := len(g.out)
	index, low, next := make([]int, n), make([]int, n), make([]int, n)
	on := make([]bool, n)
	var stack, path []int
	var out [][]int
	count := 0
	for root := range n {
		if index[root] != 0 {
			continue
		}
		path = append(path[:0], root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				count++
				index[v], low[v] = count, count
				stack, on[v] = append(stack, v), true
			}
			if next[v] < len(g.out[v]) {
				u := g.out[v][next[v]]
				next[v]++
				if index[u] == 0 {
					path = append(path, u)
				} else if on[u] {
					low[v] = min(low[v], index[u])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				p := path[len(path)-1]
				low[p] = min(low[p], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != v {
				at--
			}
			c := slices.Clone(stack[at:])
			stack = stack[:at]
			for _, u := range c {
				on[u] = false
			}
			if len(c) > 1 || slices.Contains(g.out[v], v) {
				out = append(out, c)
			}
		}
	}
	return out
}

// maxStarts caps the threads of a component that a shortest cycle is looked for
// from.
const maxStarts = 256

// shortestCycle finds the shortest cycle of a component; each thread in it waits
// for the next, the last for the first. id orders it: it begins with the lowest.
func (g *graph) shortestCycle(component []int, id func(int) uint32) []int {
	member := map[int]bool{}
	for _, v := range component {
		member[v] = true
	}
	slices.SortFunc(component, func(a, b int) int { return compare(id(a), id(b), a, b) })
	var best []int
	for _, start := range component[:min(len(component), maxStarts)] {
		if c := g.cycleThrough(start, member); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	first := 0
	for i := range best {
		if compare(id(best[i]), id(best[first]), best[i], best[first]) < 0 {
			first = i
		}
	}
	return append(slices.Clone(best[first:]), best[:first]...)
}

// cycleThrough is the shortest way from a thread back to itself.
func (g *graph) cycleThrough(start int, member map[int]bool) []int {
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, u := range g.out[v] {
			if u == start {
				cycle := []int{v}
				for v != start {
					v = from[v]
					cycle = append(cycle, v)
				}
				slices.Reverse(cycle)
				return cycle
			}
			if _, seen := from[u]; !seen && member[u] {
				from[u] = v
				queue = append(queue, u)
			}
		}
	}
	return nil
}

// waiters are the threads that wait for one, directly or through others, in order.
func (g *graph) waiters(root int) []int {
	seen := map[int]bool{root: true}
	queue := []int{root}
	var out []int
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, u := range g.in[v] {
			if !seen[u] {
				seen[u] = true
				queue, out = append(queue, u), append(out, u)
			}
		}
	}
	slices.Sort(out)
	return out
}

// maxChain caps the threads of a chain.
const maxChain = 256

// chain follows who a thread waits for until somebody waits for nobody in the
// dump or the chain returns to where it was.
func (g *graph) chain(start int) []int {
	seen := map[int]bool{}
	var out []int
	for v := start; !seen[v] && len(out) < maxChain; v = g.out[v][0] {
		seen[v] = true
		out = append(out, v)
		if len(g.out[v]) == 0 {
			break
		}
	}
	return out
}

func compare(a, b uint32, i, j int) int {
	switch {
	case a != b && a < b, a == b && i < j:
		return -1
	case a == b && i == j:
		return 0
	}
	return 1
}
