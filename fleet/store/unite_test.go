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

// A database of the second schema keeps its dumps and clusters; its parameters are of another
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

// A database of the third schema keeps its clusters and their names. Each stack is of the kind
// of the representative that it is itself, else of the leader's.
func TestSchemaBefore(t *testing.T) {
	newest := migrations
	migrations = newest[:3]
	s, path := create(t)
	_, err := s.db.Exec(`INSERT INTO meta VALUES ('params', '{"Position": 1, "Threshold": 0.9}');
		INSERT INTO stacks VALUES ('1', 'crash memory', '1', 1), ('2', 'crash memory', '1', 0.5), ('3', 'crash memory', '1', 0.7), ('4', 'crash memory', '4', 1);
		INSERT INTO frames VALUES ('1', 0, 'app!f0_0'), ('1', 1, 'app!f0_1'), ('1', 2, 'app!f0_2'), ('2', 0, 'app!f0_0'), ('3', 0, 'app!f0_0'), ('4', 0, 'app!x');
		INSERT INTO clusters VALUES ('1', 0, 'crash memory', 3), ('4', 1, 'crash memory', 1); INSERT INTO representatives VALUES ('1', 0, '1'), ('1', 1, '2'), ('4', 0, '4')`)
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
	got := map[string]string{}
	err = each(t.Context(), again.db, `SELECT stack, cluster || ' ' || nearest FROM stacks`, func(r *sql.Rows) error {
		var stack, is string
		err := r.Scan(&stack, &is)
		got[stack] = is
		return err
	})
	for stack, want := range map[string]string{"1": "1 1", "2": "1 2", "3": "1 1", "4": "4 4"} {
		if got[stack] != want {
			t.Errorf("stack %s is in %q, want %q", stack, got[stack], want)
		}
	}
	if _, _, clusters, countErr := again.Count(t.Context()); err != nil || countErr != nil || clusters != 2 || len(got) != 5 {
		t.Errorf("%d clusters, %d stacks, %v, %v: the new stack is not with those that it is like", clusters, len(got), err, countErr)
	}
}

// Kinds of stacks that leave a cluster do so in the database, with all stacks that are like
// them; the cluster keeps its name and the others.
func TestClusterComesApart(t *testing.T) {
	s, _ := create(t)
	n := 0
	with := func(frames ...string) {
		in := incident(0, n)
		in.Stack, in.Frames = fmt.Sprintf("%032x", n), frames
		n++
		add(t, s, in)
	}
	for i := range 40 {
		with(fmt.Sprint("a!other", i), fmt.Sprint("a!x", i), fmt.Sprint("a!y", i))
	}
	with("u!get", "a!one", "a!p", "a!q", "a!r1")
	with("u!get", "a!two", "a!s", "a!t", "a!r2")
	clusters := func() (out string) {
		err := each(t.Context(), s.db, `SELECT f.name, COUNT(DISTINCT s.cluster), MIN(s.cluster), COUNT(*) FROM stacks s JOIN frames f ON f.stack = s.stack
			WHERE f.name IN ('a!one', 'a!two') GROUP BY f.name ORDER BY f.name`, func(r *sql.Rows) error {
			var name, cluster string
			var distinct, stacks int
			err := r.Scan(&name, &distinct, &cluster, &stacks)
			out += fmt.Sprintf("%s %d %s %d\n", name, distinct, cluster[30:], stacks)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := clusters(); got != "a!one 1 28 1\na!two 1 28 1\n" {
		t.Fatalf("%s: they are not together to begin with: this test tests nothing", got)
	}
	for i := range 9 {
		with("u!get", fmt.Sprint("a!c", i), fmt.Sprint("a!d", i), fmt.Sprint("a!e", i))
	}
	for i := range 20 {
		with("u!get", "a!one", "a!p", "a!q", "a!r1", fmt.Sprint("a!v", i))
		with("u!get", "a!two", "a!s", "a!t", "a!r2", fmt.Sprint("a!w", i))
	}
	if got := clusters(); got != "a!one 1 28 21\na!two 1 29 21\n" {
		t.Errorf("%s", got)
	}
	var lost int
	err := s.db.QueryRow(`SELECT (SELECT COUNT(*) FROM stacks WHERE cluster NOT IN (SELECT cluster FROM clusters) OR nearest NOT IN (SELECT stack FROM representatives r WHERE r.cluster = stacks.cluster))
		+ (SELECT COUNT(*) FROM clusters c WHERE c.stacks <> (SELECT COUNT(*) FROM stacks s WHERE s.cluster = c.cluster))`).Scan(&lost)
	if err != nil || lost != 0 {
		t.Errorf("%d stacks or clusters do not agree, %v", lost, err)
	}
}
