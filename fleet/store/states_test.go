package store

import (
	"errors"
	"testing"
)

func TestRegression(t *testing.T) {
	s, _ := create(t)
	add(t, s, incident(1, 1))
	id := incident(1, 1).Bucket
	fixed, version, note := StateFixed, "1.0.5.0", "ticket 12"
	if err := s.Set(t.Context(), id, Change{State: &fixed, FixedVersion: &version, Note: &note}); err != nil {
		t.Fatal(err)
	}
	add(t, s, incident(1, 4))
	if b := bucket(t, s, id); b.State != StateFixed || b.Note != note || len(s.Regressions()) != 0 {
		t.Errorf("an older version made it %+v", b)
	}
	add(t, s, incident(1, 10), incident(1, 6)) // 1.0.10.0 is after 1.0.6.0
	if b := bucket(t, s, id); b.State != StateRegressed || b.RegressedVersion != "1.0.6.0" {
		t.Errorf("%+v", b)
	}
	if r := s.Regressions(); len(r) != 2 || r[0].Version != "1.0.10.0" || r[0].Fixed != version {
		t.Errorf("%+v", r)
	}
	// In another module, whose version counts then.
	module, version := "LIB.dll", "2.20"
	if err := s.Set(t.Context(), id, Change{State: &fixed, FixedModule: &module, FixedVersion: &version}); err != nil {
		t.Fatal(err)
	}
	add(t, s, incident(1, 19))
	if b := bucket(t, s, id); b.State != StateFixed || b.RegressedVersion != "" {
		t.Errorf("%+v", b)
	}
	add(t, s, incident(1, 21))
	if b := bucket(t, s, id); b.State != StateRegressed || b.RegressedVersion != "2.21" {
		t.Errorf("%+v", b)
	}
	for _, c := range []struct {
		module, version string
		want            int
	}{{"", "1.0.6", 4}, {"APP.EXE", "1.0.6.1", 3}, {"lib.dll", "2.19", 2}, {"none.dll", "0", 0}, {"", "2", 0}} {
		if n, err := s.From(t.Context(), id, c.module, c.version); n != c.want || err != nil {
			t.Errorf("%s %s: %d, %v", c.module, c.version, n, err)
		}
	}
	if err := s.Set(t.Context(), "ffff", Change{State: &fixed}); !errors.Is(err, ErrNoBucket) {
		t.Errorf("%v", err)
	}
}

func TestMerge(t *testing.T) {
	s, _ := create(t)
	add(t, s, incident(1, 0), incident(2, 1), incident(2, 2), incident(3, 9))
	one, two, three := incident(1, 0).Bucket, incident(2, 0).Bucket, incident(3, 0).Bucket
	if err := s.Merge(t.Context(), three, two); err != nil {
		t.Fatal(err)
	}
	if err := s.Merge(t.Context(), two, one); err != nil {
		t.Fatal(err)
	}
	add(t, s, incident(3, 10))
	list, err := s.Buckets(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Dumps != 5 || !list[0].LastSeen.Equal(day(11)) || !list[0].FirstSeen.Equal(day(1)) {
		t.Errorf("%+v, %v", list, err)
	}
	if b := bucket(t, s, one); b.Dumps != 5 || len(b.Examples) != 5 || len(b.Clusters) != 3 {
		t.Errorf("%+v", b)
	}
	for _, c := range [][2]string{{one, one}, {one, two}, {"ffff", one}, {one, "ffff"}} {
		if err := s.Merge(t.Context(), c[0], c[1]); err == nil {
			t.Errorf("merging %s into %s is no error", c[0], c[1])
		}
	}
}

// A bucket that was fixed is back too when a dump of one comes that is merged into it.
func TestRegressionOfAMergedBucket(t *testing.T) {
	s, _ := create(t)
	add(t, s, incident(1, 1), incident(2, 1))
	one, two := incident(1, 1).Bucket, incident(2, 1).Bucket
	if err := s.Merge(t.Context(), two, one); err != nil {
		t.Fatal(err)
	}
	fixed, version := StateFixed, "1.0.5.0"
	if err := s.Set(t.Context(), one, Change{State: &fixed, FixedVersion: &version}); err != nil {
		t.Fatal(err)
	}
	add(t, s, incident(2, 4))
	if b := bucket(t, s, one); b.State != StateFixed {
		t.Errorf("an older version: %+v", b)
	}
	add(t, s, incident(2, 9))
	if b := bucket(t, s, one); b.State != StateRegressed || b.RegressedVersion != "1.0.9.0" {
		t.Errorf("%+v", b)
	}
	if r := s.Regressions(); len(r) != 1 || r[0].Bucket != one {
		t.Errorf("%+v", r)
	}
}

// Known, fixed, back, and again: what each step leaves.
func TestStates(t *testing.T) {
	s, _ := create(t)
	add(t, s, incident(1, 1))
	id := incident(1, 1).Bucket
	set := func(state State, version string) {
		t.Helper()
		c := Change{State: &state}
		if version != "" {
			c.FixedVersion = &version
		}
		if err := s.Set(t.Context(), id, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		do   func()
		want State
	}{
		{func() {}, StateNew},
		{func() { add(t, s, incident(1, 2)) }, StateNew},
		{func() { set(StateKnown, "") }, StateKnown},
		{func() { add(t, s, incident(1, 3)) }, StateKnown},
		{func() { set(StateFixed, "") }, StateFixed},
		{func() { add(t, s, incident(1, 4)) }, StateFixed}, // in no version that is known: nothing can come back
		{func() { set(StateFixed, "1.0.6") }, StateFixed},
		{func() { add(t, s, incident(1, 5)) }, StateFixed},
		{func() { add(t, s, incident(1, 6)) }, StateRegressed},
		{func() { add(t, s, incident(1, 5)) }, StateRegressed},
		{func() { set(StateFixed, "1.0.8") }, StateFixed},
		{func() { add(t, s, incident(1, 7)) }, StateFixed},
		{func() { add(t, s, incident(1, 8)) }, StateRegressed},
		{func() { set(StateNew, "") }, StateNew},
		{func() { add(t, s, incident(1, 9)) }, StateNew},
	} {
		step.do()
		if b := bucket(t, s, id); b.State != step.want || (b.RegressedVersion != "") != (b.State == StateRegressed) {
			t.Fatalf("%+v, want state %s", b, step.want)
		}
	}
}
