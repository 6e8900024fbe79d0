package similar

import (
	"fmt"
	"math"
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

// Two faults in one utility, each with its own callers, and parameters that take what
// follows the topmost frame for nothing: a step of one of them tells the two apart.
func TestTuneFindsBetter(t *testing.T) {
	var ex []Example
	for i := range 40 {
		fault := i % 2
		ex = append(ex, Example{"g", frames(fmt.Sprintf("util!u app!f%d app!g%d app!h%d app!start%d", fault, fault, fault, i%5)), fmt.Sprint(fault)})
	}
	p := DefaultParams
	p.Threshold = 0.1
	p.TopWay = -1
	before := Judge(p, ex)
	total := 0
	best := Tune(p, ex, 3, func(_, n int) { total = n })
	if before.F1 > 0.99 || best[0].Quality.F1 < 0.999 || best[0].Quality != Judge(best[0].Params, ex) || total == 0 {
		t.Errorf("before %+v, after %+v, of %d", before, best, total)
	}
	if c := best[0].Params.Changes(p); c == "" || p.Changes(p) != "" {
		t.Errorf("changes %q", c)
	}
	if again := Tune(best[0].Params, ex, 3, nil); len(again) != 1 || again[0] != best[0] {
		t.Errorf("better than all right: %+v", again)
	}
}

// Clusters that became one are judged as one, whatever became a part of what.
func TestJudgeFollowsUnions(t *testing.T) {
	ex := twoWays()
	if q := Judge(DefaultParams, ex); q.Recall < 0.999 {
		t.Errorf("%+v", q)
	}
	apart := DefaultParams
	apart.Unite = 90
	if q := Judge(apart, ex); q.Recall > 0.9 {
		t.Errorf("without unions: %+v", q)
	}
}
