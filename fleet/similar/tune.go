package similar

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Example is a stack and the fault that it is known to show.
type Example struct {
	Group  string
	Frames []string
	Fault  string
}

// Quality is how well clusters agree with the truth: B-cubed precision, recall and
// their harmonic mean, from 0 to 1.
type Quality struct{ Precision, Recall, F1 float64 }

// Judge puts examples into clusters, in their order, and compares these with the
// faults.
func Judge(p Params, examples []Example) Quality { return quality(Assign(p, examples), examples) }

// Assign puts examples into clusters, in their order, and numbers the cluster that each is
// in at the end, when some have become parts of others. Faults are not looked at.
func Assign(p Params, examples []Example) []int {
	m := New(p)
	kinds := make([]string, len(examples))
	for i, e := range examples {
		kinds[i] = m.Place(strconv.Itoa(i), e.Group, e.Frames).Kind
	}
	of := map[string]int{}
	for n, c := range m.clusters {
		for _, r := range c.reps {
			of[r.stack.id] = n
		}
	}
	clusters := make([]int, len(examples))
	for i, k := range kinds {
		clusters[i] = of[k]
	}
	return clusters
}

func quality(clusters []int, examples []Example) (q Quality) {
	type cell struct {
		cluster int
		fault   string
	}
	both, inCluster, inFault := map[cell]float64{}, map[int]float64{}, map[string]float64{}
	for i, e := range examples {
		both[cell{clusters[i], e.Fault}]++
		inCluster[clusters[i]]++
		inFault[e.Fault]++
	}
	for i, e := range examples {
		n := both[cell{clusters[i], e.Fault}]
		q.Precision += n / inCluster[clusters[i]] / float64(len(examples))
		q.Recall += n / inFault[e.Fault] / float64(len(examples))
	}
	if q.Precision > 0 {
		q.F1 = 2 * q.Precision * q.Recall / (q.Precision + q.Recall)
	}
	return q
}

// What Tune tries: steps of one parameter at a time, so many times around all of them.
const tuneRounds = 3

// steps are by what a parameter is multiplied, or if it is 0, what is added.
var (
	tuneFactors = []float64{0.5, 0.8, 1.25, 2}
	tuneSums    = []float64{-1, -0.3, 0.3, 1}
)

// Tuned is a set of parameters and how well it did.
type Tuned struct {
	Params  Params
	Quality Quality
}

// Tune goes from some parameters to better ones, a step of one parameter after the other,
// as long as that helps. It returns those that it came by, the best first, at most n;
// where nothing was better, those that it began with. progress, when set, is told how many
// of at most how many sets were tried.
func Tune(begin Params, examples []Example, n int, progress func(done, total int)) []Tuned {
	best := Tuned{begin, Judge(begin, examples)}
	all := []Tuned{best}
	fields := reflect.TypeFor[Params]().NumField()
	done, total := 0, tuneRounds*fields*len(tuneFactors)
	for range tuneRounds {
		before := len(all)
		for field := range fields {
			for _, p := range neighbours(best.Params, field) {
				if q := Judge(p, examples); q.F1 > best.Quality.F1 {
					best = Tuned{p, q}
					all = append(all, best)
				}
				if done++; progress != nil {
					progress(done, total)
				}
			}
		}
		if len(all) == before {
			break
		}
	}
	slices.Reverse(all)
	return all[:min(n, len(all))]
}

// neighbours are the parameters a step of one of them away.
func neighbours(p Params, field int) []Params {
	var out []Params
	for i := range tuneFactors {
		q := p
		v := reflect.ValueOf(&q).Elem().Field(field)
		if f := v.Float(); f != 0 {
			v.SetFloat(f * tuneFactors[i])
		} else {
			v.SetFloat(tuneSums[i])
		}
		out = append(out, q)
	}
	return out
}

// Changes tells in what parameters differ from others, as "Top -1.2 -> -2.4".
func (p Params) Changes(from Params) string {
	var out []string
	a, b := reflect.ValueOf(from), reflect.ValueOf(p)
	for i := range a.NumField() {
		if x, y := a.Field(i).Float(), b.Field(i).Float(); x != y {
			out = append(out, fmt.Sprintf("%s %.3g -> %.3g", a.Type().Field(i).Name, x, y))
		}
	}
	return strings.Join(out, ", ")
}
