package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// facts is what users see of a database: each bucket with all that is known of it.
func facts(t *testing.T, s *Store) string {
	t.Helper()
	list, err := s.Buckets(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, one := range list {
		whole := bucket(t, s, one.ID)
		whole.Clusters = nil // the order in which stacks come has a say in their names
		fmt.Fprintf(&b, "%+v\n", whole)
	}
	dumps, buckets, _, err := s.Count(t.Context())
	fmt.Fprintln(&b, dumps, buckets, err)
	return b.String()
}

// Shares of many machines come to what one run does.
func TestJoinShares(t *testing.T) {
	whole, _ := create(t)
	joined, _ := create(t)
	var shares []*Store
	for range 3 {
		s, _ := create(t)
		shares = append(shares, s)
	}
	for n := range 40 {
		in := incident(n%5, n)
		if n%7 == 0 {
			in.Captured = time.Time{}
		}
		if n%11 == 0 { // one that failed
			in = Incident{Key: in.Key, Path: in.Path, Status: "ERROR", Reason: "no"}
		}
		add(t, whole, in)
		add(t, shares[n%3], in)
		if n%4 == 0 { // a machine that has a dump of another's, under another name
			in.Path += ".copy"
			add(t, whole, in)
			add(t, shares[(n+1)%3], in)
		}
	}
	for _, s := range shares {
		if _, err := joined.Join(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := facts(t, whole), facts(t, joined); a != b {
		t.Errorf("one run:\n%s\njoined:\n%s", a, b)
	}
	before := dumpAll(t, joined)
	for _, s := range shares {
		if j, err := joined.Join(t.Context(), s); err != nil || j.Added != 0 || j.Dumps == 0 || len(j.Conflicts) != 0 {
			t.Errorf("again: %+v, %v", j, err)
		}
	}
	if after := dumpAll(t, joined); after != before && withoutGeneration(after) != withoutGeneration(before) {
		t.Error("joining again changed the database")
	}
}

func withoutGeneration(dump string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(dump, "\n"), func(l string) bool { return strings.Contains(l, "generation") }), "\n")
}

func say(t *testing.T, s *Store, id string, state State, version, note string) {
	t.Helper()
	if err := s.Set(t.Context(), id, Change{State: &state, FixedVersion: &version, Note: &note}); err != nil {
		t.Fatal(err)
	}
}

// What people said is taken over where nothing is said, and held against the dumps that
// were known here alone; where both say something, what is here stays and is told.
func TestJoinStates(t *testing.T) {
	one, two, three := incident(1, 0).Bucket, incident(2, 0).Bucket, incident(3, 0).Bucket
	here, _ := create(t)
	there, _ := create(t)
	add(t, here, incident(1, 9), incident(2, 1), incident(3, 1), incident(4, 1))
	add(t, there, incident(1, 8), incident(2, 2), incident(3, 2), incident(4, 2), incident(5, 1))
	say(t, there, one, StateFixed, "1.0.5.0", "") // its own dump of 1.0.8.0 was known when it was said
	say(t, there, two, StateFixed, "1.0.5.0", "ours")
	say(t, here, three, StateKnown, "", "mine")
	say(t, there, three, StateFixed, "9", "yours")
	if err := there.Merge(t.Context(), incident(5, 0).Bucket, incident(4, 0).Bucket); err != nil {
		t.Fatal(err)
	}
	j, err := here.Join(t.Context(), there)
	if err != nil || j.Dumps != 5 || j.Added != 5 {
		t.Fatalf("%+v, %v", j, err)
	}
	if b := bucket(t, here, one); b.State != StateRegressed || b.RegressedVersion != "1.0.9.0" || b.Dumps != 2 {
		t.Errorf("a later version here: %+v", b)
	}
	if b := bucket(t, here, two); b.State != StateFixed || b.Note != "ours" {
		t.Errorf("%+v", b)
	}
	if b := bucket(t, here, three); b.State != StateKnown || b.Note != "mine" {
		t.Errorf("%+v", b)
	}
	want := []Conflict{{three, "note", "mine", "yours"}, {three, "state", "known", "fixed, fixed in  9"}}
	if !slices.Equal(j.Conflicts, want) {
		t.Errorf("%+v", j.Conflicts)
	}
	if b := bucket(t, here, incident(4, 0).Bucket); b.Dumps != 3 {
		t.Errorf("a merged bucket: %+v", b)
	}
	if r := here.Regressions(); len(r) != 1 || r[0].Bucket != one {
		t.Errorf("%+v", r)
	}
	// What is fixed here is back by a dump from there.
	say(t, here, two, StateFixed, "1.0.5.0", "ours")
	add(t, there, incident(2, 7))
	if _, err := here.Join(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if b := bucket(t, here, two); b.State != StateRegressed || b.RegressedVersion != "1.0.7.0" {
		t.Errorf("%+v", b)
	}
}

// What is fixed on one side is held against the dumps of the other one that count as the
// fixed bucket's, whichever side says that they do, and whatever the buckets' ids.
func TestJoinFixedAndMerged(t *testing.T) {
	for _, ids := range [][2]int{{1, 2}, {2, 1}} {
		part, whole := incident(ids[0], 0).Bucket, incident(ids[1], 0).Bucket
		for _, c := range []struct {
			name         string
			here, there  int // version of the merged bucket's dump, 0 none
			fixed, merge string
			want         string
		}{
			{"fixed and merged there, a later dump here", 9, 2, "there", "there", "1.0.9.0"},
			{"fixed and merged there, a later dump there", 2, 9, "there", "there", ""}, // known when it was said
			{"fixed here and merged there, a later dump there", 0, 9, "here", "there", "1.0.9.0"},
			{"fixed here and merged there, an earlier dump there", 0, 2, "here", "there", ""},
			{"fixed here and merged there, a later dump here", 9, 2, "here", "there", ""},
			{"fixed there and merged here, a later dump here", 9, 0, "there", "here", "1.0.9.0"},
			{"fixed and merged here, a later dump there", 2, 9, "here", "here", "1.0.9.0"},
		} {
			here, _ := create(t)
			there, _ := create(t)
			stores := map[string]*Store{"here": here, "there": there}
			add(t, here, incident(ids[1], 1))
			add(t, there, incident(ids[1], 2))
			for s, n := range map[*Store]int{here: c.here, there: c.there} {
				if n > 0 {
					add(t, s, incident(ids[0], n))
				}
			}
			if err := stores[c.merge].Merge(t.Context(), part, whole); err != nil {
				t.Fatal(err)
			}
			say(t, stores[c.fixed], whole, StateFixed, "1.0.5.0", "")
			for range 2 {
				if j, err := here.Join(t.Context(), there); err != nil || len(j.Conflicts) != 0 {
					t.Fatalf("%s: %+v, %v", c.name, j, err)
				}
				if b := bucket(t, here, whole); b.RegressedVersion != c.want || (b.State == StateRegressed) != (c.want != "") {
					t.Errorf("%s, %s into %s: %s, back in %q, want %q", c.name, part, whole, b.State, b.RegressedVersion, c.want)
				}
			}
		}
	}
}

// An error of joining says whose it is.
func TestJoinErrors(t *testing.T) {
	for damage, others := range map[string]bool{`DROP TABLE dump_modules`: false, `DROP TABLE dump_paths`: true, `DROP TABLE frames`: true, `DELETE FROM buckets`: true, `DELETE FROM dump_paths`: true} {
		here, _ := create(t)
		there, _ := create(t)
		add(t, there, incident(1, 1))
		damaged := here
		if others {
			damaged = there
		}
		if _, err := damaged.db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		_, err := here.Join(t.Context(), there)
		var other *OtherError
		if err == nil || errors.As(err, &other) != others {
			t.Errorf("%s: %v, of the other one: %v", damage, err, other != nil)
		}
	}
}

// What was added is whole: a database whose tables do not agree is an error.
func TestJoinDamaged(t *testing.T) {
	for _, damage := range []string{`DELETE FROM buckets`, `DELETE FROM dump_paths`} {
		here, _ := create(t)
		there, _ := create(t)
		add(t, there, incident(1, 1))
		if _, err := there.db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Join(t.Context(), there); err == nil || !strings.Contains(err.Error(), ErrDamaged.Error()) {
			t.Errorf("%s: %v", damage, err)
		}
	}
}

// Texts of a dump are bounded, and say that they are; a second time changes nothing.
func TestLongTexts(t *testing.T) {
	s, _ := create(t)
	long := strings.Repeat("\u00e9", 3<<20)
	in := incident(1, 1)
	in.Text, in.Class, in.Version = long, long, long
	in.Frames, in.Modules = []string{long, "a!b"}, []Module{{long, long, long}}
	failed := Incident{Key: "f", Path: "x", Status: "ERROR", Reason: long}
	add(t, s, in, failed)
	other, _ := create(t)
	if _, err := other.Join(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, other} {
		if n := len(dumpAll(t, s)); n > 20*maxText {
			t.Errorf("%d bytes are kept", n)
		}
		b := bucket(t, s, in.Bucket)
		if !strings.HasSuffix(b.Text, " bytes more)") || len(b.Text) > maxText || !strings.HasPrefix(b.Text, "\u00e9\u00e9") {
			t.Errorf("%d bytes: ...%s", len(b.Text), b.Text[len(b.Text)-40:])
		}
	}
	if a, b := dumpAll(t, s), dumpAll(t, other); a != b {
		t.Error("texts were cut again")
	}
	// What something else wrote is bounded when it is read.
	if _, err := s.db.Exec(`UPDATE buckets SET note = $1, text = $1`, long); err != nil {
		t.Fatal(err)
	}
	if b := bucket(t, s, in.Bucket); len(b.Text) > maxText || len(b.Note) > maxText {
		t.Errorf("%d and %d bytes", len(b.Text), len(b.Note))
	}
}
