package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dumptriage/internal/corpus"
)

// Buckets of real dumps that share a cluster, each list with the reason why that is right, or
// why stacks alone do not tell better. All other buckets must have clusters of their own.
var together = []string{
	// One program made to stop at the end of one chain of calls, in different ways: waits of an
	// untaken snapshot, where the wait itself says little.
	"SNAPSHOT | t64-clang-o1!end_deadlock; SNAPSHOT | t64-clang-o1!end_sleep; SNAPSHOT | t64-clang-o1!end_threads; SNAPSHOT | t64-clang-o1!shape_tail",
	// One chain of calls again: of the one that the heap stopped the last function left no frame.
	"AV_READ | ntdll+2a110 | t64-clang-o1!shape_tail; AV_WRITE_NULL | t64-clang-o1!end_av",
	// The same program, dumped twice at about the same place.
	"SNAPSHOT | kernelbase!ReadFile | mini-x64-o2!c3; SNAPSHOT | mini-x64-o2!c2",
}

func TestUnrelatedDumpsShareNoCluster(t *testing.T) {
	dir := corpus.Need(t, "")
	db := filepath.Join(t.TempDir(), "buckets.db")
	var stdout, stderr bytes.Buffer
	run([]string{"batch", "--db", db, "--out", filepath.Join(t.TempDir(), "out.jsonl"), dir}, &stdout, &stderr)
	stdout.Reset()
	if status := run([]string{"buckets", "export", "--db", db}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	texts, buckets := map[string][]string{}, 0
	for lines := bufio.NewScanner(&stdout); lines.Scan(); buckets++ {
		var b struct {
			Text     string   `json:"text"`
			Clusters []string `json:"clusters"`
		}
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			t.Fatal(err)
		}
		if b.Text == "" {
			t.Fatalf("a bucket without a text: %.300s", lines.Bytes())
		}
		for _, c := range b.Clusters {
			texts[c] = append(texts[c], b.Text)
		}
	}
	var got []string
	for _, list := range texts {
		slices.Sort(list)
		if list = slices.Compact(list); len(list) > 1 {
			got = append(got, strings.Join(list, "; "))
		}
	}
	for _, g := range got {
		if !slices.Contains(together, g) {
			t.Errorf("share a cluster: %s", g)
		}
	}
	if buckets < 30 || len(got) == 0 {
		t.Errorf("%d buckets, %d clusters of several: this test tests little", buckets, len(got))
	}
}
