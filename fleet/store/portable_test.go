package store

import (
	"context"
	"sync"
	"testing"
)

// Several processes add at once: nothing is lost, counted twice or refused.
func TestManyAddAtOnce(t *testing.T) {
	s, path := create(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			one, err := OpenExisting(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer one.Close(context.Background())
			for n := range 30 {
				if err := one.Add(t.Context(), incident(n%3, n+w*20)); err != nil { // 10 of them are also the next one's
					t.Error(err)
				}
				if n%4 == 0 {
					if err := one.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	want := map[string]bool{}
	for w := range 4 {
		for n := range 30 {
			want[incident(n%3, n+w*20).Key] = true
		}
	}
	dumps, buckets, clusters, err := s.Count(t.Context())
	if err != nil || dumps != len(want) || buckets != 3 || clusters != 3 {
		t.Errorf("%d dumps of %d, %d buckets, %d clusters, %v", dumps, len(want), buckets, clusters, err)
	}
	list, err := s.Buckets(t.Context(), "")
	total := 0
	for _, b := range list {
		total += b.Dumps
	}
	if err != nil || total != len(want) {
		t.Errorf("the buckets have %d dumps of %d, %v", total, len(want), err)
	}
}

// Texts out of dumps are no UTF-8, have zeros and quotes in them: they are kept as far as
// texts can be.
func TestHostileTexts(t *testing.T) {
	s, _ := create(t)
	evil := "a\x00b\xff'\"; DROP TABLE dumps; --%_\\\n\U0001f4a3"
	in := incident(1, 1)
	in.Path, in.Process, in.Version, in.Text, in.Class, in.Arch, in.OS = evil, evil, evil, evil, evil, evil, evil
	in.Frames, in.Modules = []string{evil, evil}, []Module{{evil, evil, evil}}
	add(t, s, in, Incident{Key: "failed", Path: evil, Status: "ERROR", Reason: evil})
	note := evil
	if err := s.Set(t.Context(), in.Bucket, Change{Note: &note}); err != nil {
		t.Fatal(err)
	}
	const want = "a\ufffdb\ufffd'\"; DROP TABLE dumps; --%_\\\n\U0001f4a3"
	b := bucket(t, s, in.Bucket)
	if b.Text != want || b.Note != want || len(b.Examples) != 1 || b.Examples[0] != want || len(b.Versions) != 1 || b.Versions[0].Value != want+" "+want {
		t.Errorf("%+v", b)
	}
	if note != evil {
		t.Error("the caller's text was changed")
	}
}

// Who only looks reads what others have written until then, and writes nothing.
func TestReading(t *testing.T) {
	s, path := create(t)
	add(t, s, incident(1, 1), incident(2, 2))
	r, err := OpenReading(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if a, b := facts(t, s), facts(t, r); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if err := r.Merge(t.Context(), incident(1, 1).Bucket, incident(2, 2).Bucket); err == nil {
		t.Error("it can be written")
	}
}
