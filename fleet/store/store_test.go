package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func create(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "with space?.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, path
}

func day(n int) time.Time { return time.Date(2023, 5, n, 8, 30, 0, 0, time.UTC) }

// incident n of a family: families share no frame but the last.
func incident(family, n int) Incident {
	frames := []string{}
	for i := range 8 {
		frames = append(frames, fmt.Sprintf("app!f%d_%d", family, i))
	}
	frames = append(frames[:7-n%3], "os!start")
	stack := fmt.Sprintf("%032x", family*1000+n%3)
	return Incident{
		Key: fmt.Sprintf("%032x", family*1_000_000+n), Path: fmt.Sprintf("/dumps/%d/%d.dmp", family, n), Status: "OK", Captured: day(1 + n%20),
		Process: "app.exe", Version: fmt.Sprintf("1.0.%d.0", n), Arch: "amd64", OS: "10.0.19045", Threads: 3, Algorithm: "bkt1", Kind: "crash",
		Class: "AV_READ", Text: fmt.Sprintf("AV_READ | app!f%d_0", family), Bucket: fmt.Sprintf("%016x", family), Stack: stack, Frames: frames,
		Modules: []Module{{"app.exe", "1.0.0.0", "K"}, {"lib.dll", fmt.Sprintf("2.%d", n), "L"}},
	}
}

func add(t *testing.T, s *Store, list ...Incident) {
	t.Helper()
	for _, in := range list {
		if err := s.Add(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func bucket(t *testing.T, s *Store, id string) Bucket {
	t.Helper()
	b, err := s.Bucket(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBuckets(t *testing.T) {
	s, _ := create(t)
	for n := range 5 {
		add(t, s, incident(1, 4-n), incident(2, n+10))
	}
	add(t, s, incident(1, 7), Incident{Key: "", Path: "unreadable"}, Incident{Key: "failed", Path: "x", Status: "ERROR", Reason: "no"})
	// Known dumps, one of them under another name: nothing new but the name.
	again := incident(1, 2)
	again.Path = "/copy.dmp"
	add(t, s, again, incident(2, 10))

	list, err := s.Buckets(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Dumps != 6 || list[1].Dumps != 5 || list[0].Text != "AV_READ | app!f1_0" {
		t.Fatalf("%+v, %v", list, err)
	}
	if b := list[0]; !b.FirstSeen.Equal(day(1)) || !b.LastSeen.Equal(day(8)) || b.State != StateNew {
		t.Errorf("seen %v to %v, state %s", b.FirstSeen, b.LastSeen, b.State)
	}
	b := bucket(t, s, list[0].ID)
	if len(b.Clusters) != 1 || len(b.Versions) != 6 || len(b.Examples) != 7 || !slices.Contains(b.Examples, "/copy.dmp") {
		t.Errorf("%+v", b)
	}
	dumps, buckets, clusters, err := s.Count(t.Context())
	if err != nil || dumps != 12 || buckets != 2 || clusters != 2 {
		t.Errorf("%d dumps, %d buckets, %d clusters, %v", dumps, buckets, clusters, err)
	}
}

func TestResolve(t *testing.T) {
	s, _ := create(t)
	add(t, s, incident(1, 0), incident(2, 0), incident(0xabc, 0))
	if id, err := s.Resolve(t.Context(), "0000000000000a"); err != nil || id != "0000000000000abc" {
		t.Errorf("%s, %v", id, err)
	}
	for _, wrong := range []string{"", "%", "f", "xyz"} {
		if _, err := s.Resolve(t.Context(), wrong); !errors.Is(err, ErrNoBucket) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := s.Resolve(t.Context(), "00"); err == nil || !strings.Contains(err.Error(), "several") {
		t.Errorf("an ambiguous id: %v", err)
	}
}

func TestRelated(t *testing.T) {
	s, _ := create(t)
	twin := incident(1, 1)
	twin.Key, twin.Bucket, twin.Stack = "twin", "00000000000000ff", "twin"
	twin.Frames = append([]string{"hook!Detour"}, twin.Frames...)
	add(t, s, incident(1, 1), incident(2, 1), twin)
	if got, err := s.Related(t.Context(), incident(1, 1).Bucket); err != nil || !slices.Equal(got, []string{twin.Bucket}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBefore(t *testing.T) {
	s, _ := create(t)
	timeless := incident(3, 5)
	timeless.Captured = time.Time{}
	add(t, s, incident(1, 1), incident(1, 4), incident(1, 9), incident(2, 3), incident(2, 12), timeless)
	if err := s.Merge(t.Context(), incident(2, 0).Bucket, incident(1, 0).Bucket); err != nil {
		t.Fatal(err)
	}
	// Days 2, 5, 10; 4, 13: before the fifth are the first and the fourth.
	got, err := s.Before(t.Context(), time.Date(2023, 5, 5, 0, 0, 0, 0, time.UTC))
	if err != nil || len(got) != 2 || got[incident(1, 0).Bucket].Dumps != 2 || got[timeless.Bucket].Dumps != 1 ||
		!got[incident(1, 0).Bucket].LastSeen.Equal(day(4)) || !got[timeless.Bucket].LastSeen.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
}

func TestGroups(t *testing.T) {
	group := func(kind, class string) string { return (&Incident{Kind: kind, Class: class}).group() }
	if group("crash", "AV_READ_NULL") != group("crash", "HEAP_CORRUPTION") || group("crash", "AV_READ") == group("crash", "CPP_EXCEPTION") ||
		group("crash", "AV_READ") == group("hang", "AV_READ") || group("hang", "HANG_A") == group("hang", "HANG_B") {
		t.Error("groups do not follow kind and class")
	}
}

// Files that something else made are refused and left as they are.
func TestOtherFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"garbage": "not a database", "text": "not a database", "foreign": "something else", "schemaless": "something else"} {
		path := filepath.Join(dir, name)
		switch name {
		case "garbage":
			os.WriteFile(path, bytes.Repeat([]byte{0xa5, 1}, 4096), 0o666)
		case "text":
			os.WriteFile(path, []byte(strings.Repeat("{\"a\":1}\n", 99)), 0o666)
		default:
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			db.Exec(`CREATE TABLE other (x TEXT)`)
			if name == "schemaless" {
				db.Exec(`CREATE TABLE meta (name TEXT, value TEXT)`)
			}
			db.Close()
		}
		before, _ := os.ReadFile(path)
		if s, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				s.Close(t.Context())
			}
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestMissingTables: a database that lacks any table is refused when it is opened, not
// taken for one that knows of nothing there. A view is no table.
func TestMissingTables(t *testing.T) {
	s, path := create(t)
	add(t, s, incident(1, 0))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := s.db
	var tables []string
	if err := each(t.Context(), db, s.dialect.tables, func(r *sql.Rows) error {
		tables = append(tables, "")
		return r.Scan(&tables[len(tables)-1])
	}); err != nil || len(tables) < 9 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		exec := func(q string) {
			if _, err := db.Exec(q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
		for _, instead := range []string{"", `CREATE VIEW ` + name + ` AS SELECT 1`} {
			exec(`ALTER TABLE ` + name + ` RENAME TO kept_aside`)
			if instead != "" {
				exec(instead)
			}
			s, err := OpenExisting(t.Context(), path)
			if err == nil || !strings.Contains(err.Error(), path) || name != "meta" && !strings.HasSuffix(err.Error(), "no table "+name) {
				t.Errorf("%s, instead %q: %v", name, instead, err)
			}
			if err == nil {
				s.Close(t.Context())
			}
			if instead != "" {
				exec(`DROP VIEW ` + name)
			}
			exec(`ALTER TABLE kept_aside RENAME TO ` + name)
		}
	}
	again, err := OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close(t.Context())
}

// TestDumpsThatCountNowhere: buckets that are merged into themselves, into each other
// or into none are an error, no empty list.
func TestDumpsThatCountNowhere(t *testing.T) {
	one, two := incident(1, 0).Bucket, incident(2, 0).Bucket
	for _, into := range [][2]string{{one, ""}, {two, one}, {"ffff", ""}} {
		s, _ := create(t)
		add(t, s, incident(1, 0), incident(2, 1))
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, b := range []string{one, two} {
			if into[i] == "" {
				continue
			}
			if _, err := s.db.Exec(`UPDATE buckets SET merged_into = $1 WHERE bucket = $2`, into[i], b); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := s.Buckets(t.Context(), ""); err == nil || !strings.Contains(err.Error(), one) {
			t.Errorf("%v: %d buckets, %v", into, len(list), err)
		}
	}
}

// Who looks does not wait for who adds.
func TestReadersDoNotWait(t *testing.T) {
	s, path := create(t)
	add(t, s, incident(1, 1))
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`UPDATE buckets SET note = 'held'`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	other, err := OpenExisting(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if list, err := other.Buckets(ctx, ""); err != nil || len(list) != 1 || list[0].Note != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"1.2.3.4", "1.2.3.4", 0}, {"1.10", "1.9", 1}, {"1", "1.0.0.0", 0}, {"1.0.0.1", "1", 1}, {"0.9", "1", -1}} {
		if got := CompareVersions(c.a, c.b); got != c.want {
			t.Errorf("CompareVersions(%s, %s) = %d", c.a, c.b, got)
		}
	}
}

// dumpAll is the whole content, to compare databases.
func dumpAll(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{"dumps", "dump_paths", "buckets", "stacks", "frames", "clusters", "representatives", "dump_modules"} {
		err := each(t.Context(), s.db, "SELECT * FROM "+table+" ORDER BY 1, 2", func(r *sql.Rows) error {
			columns, err := r.Columns()
			if err != nil {
				return err
			}
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new(any)
			}
			if err := r.Scan(row...); err != nil {
				return err
			}
			fmt.Fprint(&out, table)
			for _, v := range row {
				fmt.Fprint(&out, "|", *v.(*any))
			}
			fmt.Fprintln(&out)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// Whether one process adds everything, or several after and beside each other.
func TestClustersDoNotDependOnWhoAdds(t *testing.T) {
	whole, _ := create(t)
	parts, path := create(t)
	other, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for i := range 120 {
		in := incident(i%17, i)
		in.Stack = fmt.Sprintf("%032x", i)
		in.Frames = slices.Insert(in.Frames, 1, fmt.Sprintf("app!between%d", i%5))
		add(t, whole, in)
		switch i % 3 {
		case 0:
			add(t, parts, in)
		case 1:
			add(t, other, in)
		case 2:
			again, err := OpenExisting(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			add(t, again, in)
			again.Close(t.Context())
		}
	}
	if a, b := dumpAll(t, whole), dumpAll(t, parts); a != b {
		t.Errorf("%d and %d bytes differ", len(a), len(b))
	}
	if _, _, clusters, _ := whole.Count(t.Context()); clusters < 10 || clusters > 60 {
		t.Errorf("%d clusters of 120 stacks of 17 families", clusters)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	s, path := create(t)
	if _, err := s.db.Exec(`UPDATE meta SET value = '99' WHERE name = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("%v", err)
	}
	if _, err := OpenExisting(t.Context(), path+"x"); err == nil {
		t.Error("a database that is not there was opened")
	}
}

func TestRecluster(t *testing.T) {
	s, path := create(t)
	for i := range 60 {
		in := incident(i%6, i)
		in.Stack = fmt.Sprintf("%032x", i)
		in.Frames = slices.Insert(in.Frames, 1, fmt.Sprintf("app!between%d", i%5))
		add(t, s, in)
	}
	labels, err := s.Labels(t.Context(), func(_, path, _ string) string { return strings.Split(path, "/")[2] })
	if err != nil || len(labels) != 60 || labels[0].Fault == "" || len(labels[0].Frames) < 5 {
		t.Fatalf("%d labels, %v", len(labels), err)
	}
	p := s.Params()
	p.Threshold = 100 // nothing is ever like anything
	if err := s.Recluster(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, _, clusters, _ := s.Count(t.Context()); clusters != 60 {
		t.Errorf("%d clusters, want one for each of 60 stacks", clusters)
	}
	again, err := OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.Background())
	if again.Params() != p {
		t.Errorf("the parameters were not kept: %+v", again.Params())
	}
	more := incident(1, 99)
	more.Stack = "99"
	add(t, again, more)
	add(t, s, incident(2, 1)) // whose store must see that the other has changed the clusters
	if _, _, clusters, _ := s.Count(t.Context()); clusters != 62 {
		t.Errorf("%d clusters after two stacks more, want 62", clusters)
	}
}
