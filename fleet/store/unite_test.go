package store

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"dumptriage/fleet/similar"
)

// twoWays are incidents of a fault that is reached in two ways, which look like two faults
// until many others are known.
func twoWays() (out []Incident) {
	with := func(frames ...string) {
		in := incident(0, len(out))
		in.Stack, in.Frames = fmt.Sprintf("%032x", len(out)), frames
		out = append(out, in)
	}
	way := func(i, n int) {
		with("a!fault", fmt.Sprint("a!way", i), fmt.Sprint("a!on", i), fmt.Sprint("a!end", i, "_", n))
	}
	way(1, 0)
	way(2, 0)
	for i := range 60 {
		with(fmt.Sprint("a!other", i), fmt.Sprint("a!x", i), fmt.Sprint("a!y", i))
	}
	for n := range 8 {
		way(1, n+1)
		way(2, n+1)
	}
	return out
}

// Clusters that become one do so in the database, and a model that is read from it goes on as
// one that was there all the time.
func TestClustersBecomeOne(t *testing.T) {
	whole, _ := create(t)
	parts, path := create(t)
	for _, in := range twoWays() {
		add(t, whole, in)
		again, err := OpenExisting(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		add(t, again, in)
		again.Close(t.Context())
	}
	if a, b := dumpAll(t, whole), dumpAll(t, parts); a != b {
		t.Errorf("%d and %d bytes differ", len(a), len(b))
	}
	var clusters, stacks, reps int
	err := whole.db.QueryRow(`SELECT COUNT(DISTINCT s.cluster), COUNT(*), (SELECT COUNT(*) FROM representatives r WHERE r.cluster = MIN(s.cluster))
		FROM stacks s JOIN frames f ON f.stack = s.stack WHERE f.name = 'a!fault'`).Scan(&clusters, &stacks, &reps)
	if err != nil || clusters != 1 || stacks != 18 || reps < 2 {
		t.Errorf("%d stacks of the fault in %d clusters, %d representatives, %v; want all 18 in one", stacks, clusters, reps, err)
	}
	if _, _, n, _ := whole.Count(t.Context()); n != 61 {
		t.Errorf("%d clusters, want 61", n)
	}
}

// A database of the schema before keeps its dumps and clusters; its parameters are of another
// measure and are forgotten.
func TestOlderSchema(t *testing.T) {
	newest := migrations
	migrations = newest[:2]
	s, path := create(t)
	_, err := s.db.Exec(`INSERT INTO meta VALUES ('params', '{"Position": 1, "Threshold": 0.9}');
		INSERT INTO meta VALUES ('stacks', '1'); INSERT INTO frequencies VALUES ('app!f0_0', 1, 1);
		INSERT INTO stacks VALUES ('1', 'crash memory', '1', 1); INSERT INTO frames VALUES ('1', 0, 'app!f0_0'), ('1', 1, 'app!f0_1'), ('1', 2, 'app!f0_2');
		INSERT INTO clusters VALUES ('1', 0, 'crash memory', 1); INSERT INTO representatives VALUES ('1', 0, '1')`)
	migrations = newest
	if err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	again, err := OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.Background())
	if again.Params() != similar.DefaultParams {
		t.Errorf("parameters %+v", again.Params())
	}
	add(t, again, incident(0, 0))
	if _, _, clusters, err := again.Count(t.Context()); err != nil || clusters != 1 {
		t.Errorf("%d clusters, %v: the stack is not with the one that it is like", clusters, err)
	}
	err = each(t.Context(), again.db, `SELECT name FROM frequencies`, func(*sql.Rows) error { return nil })
	if err == nil {
		t.Error("the table of frequencies is still there")
	}
}
