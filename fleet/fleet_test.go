package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/report"
)

// collection is a folder of fixtures: a pair, a lone dump, a broken one, and a
// file that is no dump.
func collection(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range map[string]string{
		"a/ConsoleApp1.dmp":        "readline/ConsoleApp1.dmp",
		"a/ConsoleApp1.Kernel.dmp": "readline/ConsoleApp1.Kernel.dmp",
		"b/crashdemo.dmp":          "crash/crashdemo.dmp",
		"b/copy.mdmp":              "crash/crashdemo.dmp",
		"c/faulty.dmp":             "bugcheck/faulty.dmp",
		"c/broken.dmp":             "README.md",
		"c/notes.md":               "README.md",
	} {
		b, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(from)))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(dir string, jobs []Job) (out []string) {
	for i, j := range jobs {
		if j.Index != i {
			out = append(out, fmt.Sprintf("index %d at %d", j.Index, i))
		}
		s := strings.TrimPrefix(filepath.ToSlash(j.Path), filepath.ToSlash(dir)+"/")
		if j.Kernel != "" {
			s += "+" + filepath.Base(j.Kernel)
		}
		out = append(out, s)
	}
	return out
}

func TestInputs(t *testing.T) {
	dir := collection(t)
	all := []string{"a/ConsoleApp1.dmp+ConsoleApp1.Kernel.dmp", "b/copy.mdmp", "b/crashdemo.dmp", "c/broken.dmp", "c/faulty.dmp"}
	list := filepath.Join(dir, "list.txt")
	text := "# mine\n" + filepath.Join(dir, "b", "crashdemo.dmp") + "\r\n\n" + filepath.Join(dir, "a", "ConsoleApp1.Kernel.dmp") + "\n"
	if err := os.WriteFile(list, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args  []string
		alone bool
		stdin string
		want  []string
	}{
		"folder":           {args: []string{dir}, want: all},
		"pattern":          {args: []string{filepath.Join(dir, "*", "*.dmp")}, want: slices.Delete(slices.Clone(all), 1, 2)},
		"list":             {args: []string{list}, want: []string{"b/crashdemo.dmp", "a/ConsoleApp1.Kernel.dmp"}},
		"standard input":   {args: []string{"-"}, stdin: text, want: []string{"b/crashdemo.dmp", "a/ConsoleApp1.Kernel.dmp"}},
		"twice named":      {args: []string{filepath.Join(dir, "b"), dir}, want: []string{"b/copy.mdmp", "b/crashdemo.dmp", all[0], "c/broken.dmp", "c/faulty.dmp"}},
		"alone":            {args: []string{filepath.Join(dir, "a")}, alone: true, want: []string{"a/ConsoleApp1.Kernel.dmp", "a/ConsoleApp1.dmp"}},
		"whatever is said": {args: []string{filepath.Join(dir, "c", "broken.dmp")}, want: []string{"c/broken.dmp"}},
	} {
		jobs, err := Inputs(c.args, c.alone, strings.NewReader(c.stdin), nil)
		if got := names(dir, jobs); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	_, err := Inputs([]string{"-"}, false, strings.NewReader("a.dmp\n\n"+strings.Repeat("x", maxLine+1)), nil)
	if err == nil || !strings.Contains(err.Error(), "standard input:3: a line of more than") {
		t.Errorf("a line that is no path: %v", err)
	}
	if _, err := Inputs([]string{filepath.Join(dir, "nothing*")}, false, nil, nil); err == nil {
		t.Error("a pattern that matches nothing is no error")
	}
}

func TestShardsAreTheWhole(t *testing.T) {
	for i := range 20 {
		n := 0
		for s := 1; s <= 3; s++ {
			if (Shard{s, 3}).Take(i) {
				n++
			}
		}
		if n != 1 || !(Shard{}).Take(i) {
			t.Errorf("place %d is in %d shards", i, n)
		}
	}
}

// runAll triages a folder and returns the lines.
func runAll(t *testing.T, dir string, workers int, skip func(Job) bool) []byte {
	t.Helper()
	jobs, err := Inputs([]string{dir}, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = Run(t.Context(), Config{Queue: NewMemory(jobs), Workers: workers, Skip: skip,
		New:  func() (Worker, error) { return &Analyzer{Tool: report.Tool{Name: "test"}}, nil },
		Emit: func(r Record) error { _, err := out.Write(r.Line); return err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func facts(t *testing.T, lines []byte) (out []Facts) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		f, err := FactsOf(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func TestBatch(t *testing.T) {
	dir := collection(t)
	one := runAll(t, dir, 1, nil)
	if four := runAll(t, dir, 4, nil); !bytes.Equal(one, four) {
		t.Error("the lines depend on the number of workers")
	}
	all := facts(t, one)
	if len(all) != 5 {
		t.Fatalf("%d records, want 5", len(all))
	}
	for i, want := range []struct{ status, process, text string }{
		{report.StatusOK, "ConsoleApp1.exe", "SNAPSHOT"}, {report.StatusOK, "crashdemo.exe", "AV_READ_NULL"}, {report.StatusOK, "crashdemo.exe", "AV_READ_NULL"},
		{report.StatusError, "", ""}, {report.StatusOK, "", "BUGCHECK_0xD1"},
	} {
		f := all[i]
		if f.Status != want.status || want.process != "" && f.Process != want.process || !strings.HasPrefix(f.Signature.Text, want.text) || (f.Reason != "") != (want.status == report.StatusError) {
			t.Errorf("record %d: %+v", i, f)
		}
	}
	if all[1].Key != all[2].Key || all[0].Key == all[1].Key || len(all[3].Key) != 32 {
		t.Error("a key is that of the content")
	}
	if all[1].Captured.IsZero() || all[1].Captured.Location() != time.UTC {
		t.Errorf("captured %v", all[1].Captured)
	}
}

// Wherever a run is ended, another one completes its file to the very bytes of one
// that was not ended.
func TestResumeLosesAndDoublesNothing(t *testing.T) {
	dir := collection(t)
	whole := runAll(t, dir, 2, nil)
	path := filepath.Join(t.TempDir(), "out.jsonl")
	first := bytes.IndexByte(whole, '\n') + 1
	for _, cut := range []int{0, 1, first - 1, first, first + 1, len(whole) / 2, len(whole) - 1, len(whole)} {
		if err := os.WriteFile(path, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		visited := 0
		f, done, err := Resume(path, func([]byte) error { visited++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Count(whole[:cut], []byte("\n")); visited != want || done.Len() != want {
			t.Errorf("cut at %d: %d lines visited, %d done, want %d", cut, visited, done.Len(), want)
		}
		if st, err := f.Stat(); err != nil || st.Size() != int64(bytes.LastIndexByte(whole[:cut], '\n')+1) {
			t.Errorf("cut at %d: what was cut off is not taken away: %v, %v", cut, st.Size(), err)
		}
		f.Write(runAll(t, dir, 2, done.Has))
		f.Close()
		if got, _ := os.ReadFile(path); !bytes.Equal(got, whole) {
			t.Errorf("cut at %d: the file differs from that of one run", cut)
		}
	}
	// A dump that has changed is another.
	f, done, err := Resume(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	changed := filepath.Join(dir, "c", "broken.dmp")
	if !done.Has(Job{Path: changed}) {
		t.Error("a failure is not remembered")
	}
	os.WriteFile(changed, []byte("other"), 0o666)
	if done.Has(Job{Path: changed}) {
		t.Error("a changed file is taken for done")
	}
	os.WriteFile(path, []byte("{\"no\":1}\n"), 0o666)
	if _, _, err := Resume(path, nil); err == nil || !strings.Contains(err.Error(), ":1:") {
		t.Errorf("a file that is something else: %v", err)
	}
}

func TestPanicIsARecord(t *testing.T) {
	dir := collection(t)
	a := &Analyzer{}
	a.Triage.Progress = func(int, int) { panic("boom") }
	r := a.Do(t.Context(), Job{Path: filepath.Join(dir, "b", "crashdemo.dmp")})
	f := facts(t, r.Line)[0]
	if f.Status != report.StatusError || !strings.Contains(f.Reason, "boom") || f.Key == "" || r.Status != f.Status {
		t.Errorf("record %+v", f)
	}
	a.Triage.Progress = nil
	if r := a.Do(t.Context(), Job{Path: filepath.Join(dir, "b", "crashdemo.dmp")}); r.Status != report.StatusOK {
		t.Errorf("afterwards: %s", r.Line)
	}
}

// sleeper answers the first job last.
type sleeper struct{ ahead *atomic.Int32 }

func (s sleeper) Do(_ context.Context, j Job) Record {
	s.ahead.Add(1)
	if j.Index == 0 {
		time.Sleep(50 * time.Millisecond)
	}
	return Record{Job: j}
}
func (sleeper) Close() error { return nil }

func TestOrderAndWindow(t *testing.T) {
	jobs := make([]Job, 500)
	for i := range jobs {
		jobs[i].Index = i
	}
	var ahead atomic.Int32
	next := 0
	// A run that does not get on is a failure, not a test that hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := Run(ctx, Config{Queue: NewMemory(jobs), Workers: 3, New: func() (Worker, error) { return sleeper{&ahead}, nil },
		Skip: func(j Job) bool { return j.Index%7 == 3 },
		Emit: func(r Record) error {
			if next%7 == 3 {
				next++
			}
			if r.Job.Index != next {
				t.Errorf("job %d came in place of %d", r.Job.Index, next)
			}
			if next == 0 && ahead.Load() > 3*window {
				t.Errorf("%d jobs were done while the first was not", ahead.Load())
			}
			next++
			return nil
		}})
	if err != nil || next != 500 {
		t.Errorf("%d jobs, %v", next, err)
	}
}

func TestRunEndsWithTheFirstError(t *testing.T) {
	var ahead atomic.Int32
	full := errors.New("disk full")
	err := Run(t.Context(), Config{Queue: NewMemory(make([]Job, 1000)), Workers: 2, New: func() (Worker, error) { return sleeper{&ahead}, nil },
		Emit: func(Record) error { return full }})
	if !errors.Is(err, full) || ahead.Load() > 100 {
		t.Errorf("%v after %d jobs", err, ahead.Load())
	}
	err = Run(t.Context(), Config{Queue: NewMemory(make([]Job, 9)), Workers: 2, New: func() (Worker, error) { return nil, full }})
	if !errors.Is(err, full) {
		t.Errorf("a worker that cannot be made: %v", err)
	}
}

// counting counts what is closed, and the jobs that are reported as finished.
type counting struct {
	sleeper
	*Memory
	closed, finished *atomic.Int32
}

func (c counting) Close() error { c.closed.Add(1); return nil }
func (c counting) Finish(Job)   { c.finished.Add(1) }

func TestRunEndsItsWorkers(t *testing.T) {
	for _, workers := range []int{0, 1, 4} { // none asked for is one
		c := counting{sleeper{new(atomic.Int32)}, NewMemory(slices.Repeat([]Job{{Index: 1}}, 40)), new(atomic.Int32), new(atomic.Int32)}
		emitted := 0
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := Run(ctx, Config{Queue: c, Workers: workers, New: func() (Worker, error) { return c, nil },
			Skip: func(Job) bool { return false }, Emit: func(Record) error { emitted++; return nil }})
		cancel()
		if err != nil || emitted != 40 || c.finished.Load() != 40 || int(c.closed.Load()) != max(workers, 1) {
			t.Errorf("%d workers: %d records, %d finished, %d closed, %v", workers, emitted, c.finished.Load(), c.closed.Load(), err)
		}
	}
	// After an error nothing is emitted, and nothing is finished.
	c := counting{sleeper{new(atomic.Int32)}, NewMemory(slices.Repeat([]Job{{Index: 1}}, 40)), new(atomic.Int32), new(atomic.Int32)}
	emitted := 0
	err := Run(t.Context(), Config{Queue: c, Workers: 4, New: func() (Worker, error) { return c, nil }, Emit: func(Record) error { emitted++; return io.ErrShortWrite }})
	if !errors.Is(err, io.ErrShortWrite) || emitted != 1 || c.finished.Load() != 0 || c.closed.Load() != 4 {
		t.Errorf("%d records, %d finished, %d closed, %v", emitted, c.finished.Load(), c.closed.Load(), err)
	}
	// A run that is given up says so.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Config{Queue: NewMemory(make([]Job, 3)), Workers: 1, New: func() (Worker, error) { return c, nil }, Emit: func(Record) error { return nil }}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestServe(t *testing.T) {
	dir := collection(t)
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, name := range []string{"b/crashdemo.dmp", "missing.dmp"} {
		enc.Encode(requestOf(Job{Path: filepath.Join(dir, filepath.FromSlash(name))}))
	}
	if err := Serve(&Analyzer{}, Limits{}, &in, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{report.StatusOK, report.StatusError} {
		head, _ := out.ReadBytes('\n')
		var a answer
		if err := json.Unmarshal(head, &a); err != nil || a.Status != want {
			t.Fatalf("%s: %v", head, err)
		}
		line := make([]byte, a.Size)
		io.ReadFull(&out, line)
		if f := facts(t, line)[0]; f.Status != want || f.Key != a.Key {
			t.Errorf("%+v", f)
		}
	}
	if out.Len() != 0 {
		t.Errorf("%d bytes too many", out.Len())
	}
}

func TestKeyOfLargeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.dmp")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(wholeHash + 12345)
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	before, err := Key(Job{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte{1}, size-1)
	if after, _ := Key(Job{Path: path}); after == before {
		t.Error("the last byte is not looked at")
	}
	before, _ = Key(Job{Path: path})
	f.WriteAt([]byte{1}, (size-sampleSize)/(samples-1)*3) // the fourth sample's first
	if after, _ := Key(Job{Path: path}); after == before {
		t.Error("the middle is not looked at")
	}
	if _, err := Key(Job{Path: path + "x"}); err == nil {
		t.Error("a missing file has a key")
	}
}

func FuzzFactsOf(f *testing.F) {
	f.Add([]byte(`{"status":"OK","inputs":[{"path":"a"}],"signature":{"text":"x","id":"y","stack":["a!b"]},"modules":[{"filename":"A.EXE","kind":"user"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, err := FactsOf(line); err != nil {
			if e, ok := err.(*dump.Error); !ok || e.Code != dump.BadRecord {
				t.Errorf("error %v", err)
			}
		}
	})
}
