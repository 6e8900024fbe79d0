package similar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Worked out by hand: clusters {a a b} and {b}, faults a (2) and b (2).
func TestQuality(t *testing.T) {
	ex := []Example{{Fault: "a"}, {Fault: "a"}, {Fault: "b"}, {Fault: "b"}}
	q := quality([]int{0, 0, 0, 1}, ex)
	p, r := (2/3.0+2/3.0+1/3.0+1)/4, (1+1+0.5+0.5)/4
	if math.Abs(q.Precision-p) > 1e-9 || math.Abs(q.Recall-r) > 1e-9 || math.Abs(q.F1-2*p*r/(p+r)) > 1e-9 {
		t.Errorf("%+v, want precision %v and recall %v", q, p, r)
	}
	if q := quality(nil, nil); q != (Quality{}) {
		t.Errorf("of nothing: %+v", q)
	}
}

func TestTuneFindsNothingWorse(t *testing.T) {
	var ex []Example
	for i, s := range random(rand.New(rand.NewPCG(7, 8)), 60) {
		ex = append(ex, Example{"g", s, fmt.Sprint(i % 6)})
	}
	best := Tune(ex, 3, nil)
	if len(best) != 3 || best[0].Quality.F1 < best[2].Quality.F1 || best[0].Quality != Judge(best[0].Params, ex) {
		t.Errorf("%+v", best)
	}
}
