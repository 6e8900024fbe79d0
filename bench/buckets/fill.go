package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"dumptriage/fleet/store"
)

// programs is how many programs the incidents of a filled database are of.
const programs = 20

// fill makes a database of n incidents of made programs, to measure how a large one
// answers, and prints how long one more takes: the mean of 200, each written by itself.
func fill(path string, n int) error {
	ctx := context.Background()
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	const more = 200
	all := incidents(n + more)
	begun := time.Now()
	for _, in := range all[:n] {
		if err := s.Add(ctx, in); err != nil {
			return err
		}
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	fmt.Printf("%d incidents added in %v\n", n, time.Since(begun).Round(time.Millisecond))
	var took []time.Duration
	for _, in := range all[n:] {
		begun = time.Now()
		if err := s.Add(ctx, in); err != nil {
			return err
		}
		if err := s.Flush(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	dumps, buckets, clusters, err := s.Count(ctx)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("one more, with its cluster: median %v, nine of ten under %v\n", took[len(took)/2].Round(time.Microsecond), took[len(took)*9/10].Round(time.Microsecond))
	fmt.Printf("%d dumps, %d buckets, %d clusters, %d MB\n", dumps, buckets, clusters, st.Size()>>20)
	return nil
}

// incidents makes n incidents in turn of the programs.
func incidents(n int) []store.Incident {
	var worlds [][]stack
	for p := range programs {
		var w []stack
		for seed := uint64(p) * 1000; len(w) < n/programs+1; seed++ {
			w = append(w, prepared(9_000_000+seed, 100, 400)...)
		}
		worlds = append(worlds, w)
	}
	out := make([]store.Incident, n)
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range out {
		p := i % programs
		st := worlds[p][i/programs]
		frames := make([]string, len(st.frames))
		for k, f := range st.frames {
			frames[k] = inProgram(f, p)
		}
		text := st.class + strings.TrimPrefix(signatureText(frames), "AV_READ")
		id := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
		out[i] = store.Incident{Key: id(fmt.Sprint("dump", i))[:32], Path: fmt.Sprintf("/dumps/%d/%d.dmp", p, i), Status: "OK", Captured: start.Add(time.Duration(i) * time.Minute),
			Process: fmt.Sprintf("app%d.exe", p), Version: fmt.Sprintf("1.%d.0.0", i*10/n), Arch: "amd64", OS: "10.0.19045", Threads: 20, Algorithm: "bkt1", Kind: "crash",
			Class: st.class, Text: text, Bucket: id(text)[:16], Stack: id(st.class + strings.Join(frames, "\n"))[:32], Frames: frames,
			Modules: []store.Module{{Name: fmt.Sprintf("app%d.exe", p), Version: "1.0.0.0", CodeID: "1"}}}
	}
	return out
}

// inProgram names a frame as one of a certain program, unless it is of the system.
func inProgram(frame string, program int) string {
	at := strings.IndexAny(frame, "!+")
	if slices.Contains(moduleNames, frame[:at]) {
		return fmt.Sprintf("%s%d%s", frame[:at], program, frame[at:])
	}
	return frame
}
