package similar

import (
	"slices"
	"strconv"
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
func Judge(p Params, examples []Example) Quality {
	m := New(p)
	ids := map[string]int{}
	clusters := make([]int, len(examples))
	for i, e := range examples {
		id := m.Place(strconv.Itoa(i), e.Group, e.Frames).Cluster
		if _, ok := ids[id]; !ok {
			ids[id] = len(ids)
		}
		clusters[i] = ids[id]
	}
	return quality(clusters, examples)
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

// What Tune tries.
var (
	tunePosition  = []float64{0.1, 0.3, 0.6, 1}
	tuneFrequency = []float64{1, 3, 10, 30}
	tuneShift     = []float64{0.05, 0.1, 0.3}
	tuneThreshold = []float64{-0.4, -0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4}
)

// Tuned is a set of parameters and how well it did.
type Tuned struct {
	Params  Params
	Quality Quality
}

// Tune tries many parameters and returns those that did best, best first, at most
// n. progress, when set, is told how many of how many were tried.
func Tune(examples []Example, n int, progress func(done, total int)) []Tuned {
	var all []Tuned
	total := len(tunePosition) * len(tuneFrequency) * len(tuneShift) * len(tuneThreshold)
	for _, position := range tunePosition {
		for _, frequency := range tuneFrequency {
			for _, shift := range tuneShift {
				for _, threshold := range tuneThreshold {
					p := Params{position, frequency, shift, threshold, DefaultParams.Far}
					all = append(all, Tuned{p, Judge(p, examples)})
					if progress != nil {
						progress(len(all), total)
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Tuned) int {
		switch {
		case a.Quality.F1 > b.Quality.F1:
			return -1
		case a.Quality.F1 < b.Quality.F1:
			return 1
		}
		return 0
	})
	return all[:min(n, len(all))]
}
