package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"dumptriage/report"
)

// The test binary is the worker process too.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("FLEET_TEST_WORKER"); mode {
	case "":
		os.Exit(m.Run())
	case "die":
		_ = Serve(&dying{}, Limits{}, os.Stdin, os.Stdout)
	case "junk":
		os.Stdout.WriteString("no answer\n")
	case "hungry":
		_ = Serve(&hungry{}, Limits{Memory: hungryLimit}, os.Stdin, os.Stdout)
	}
}

const (
	hungryLimit = 96 << 20
	hungryBytes = 256 << 20
)

// eat takes memory in the way that a dump's name asks for.
var eat = map[string]func(dump string){
	"heap.dmp": func(string) {
		eaten = make([]byte, hungryBytes)
		for i := 0; i < len(eaten); i += 4096 {
			eaten[i] = 1
		}
	},
}

var eaten []byte

// hungry is a worker that first takes much memory.
type hungry struct{ Analyzer }

func (h *hungry) Do(ctx context.Context, j Job) Record {
	if take := eat[filepath.Base(j.Path)]; take != nil {
		take(j.Path)
	}
	return h.Analyzer.Do(ctx, j)
}

// feed gives dumps of these names to a worker that takes memory as they ask, and returns
// what became of them.
func feed(t *testing.T, names ...string) map[string]Record {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "fixtures", "crash", "crashdemo.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	dir, out := t.TempDir(), map[string]Record{}
	p := worker("hungry", Limits{Memory: hungryLimit})
	defer p.Close()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		out[name] = p.Do(t.Context(), Job{Path: path})
	}
	return out
}

// TestMemoryLimit: what the program takes for a dump costs that dump alone.
func TestMemoryLimit(t *testing.T) {
	got := feed(t, "modest.dmp", "heap.dmp", "after.dmp")
	for name, status := range map[string]string{"modest.dmp": report.StatusOK, "heap.dmp": report.StatusError, "after.dmp": report.StatusOK} {
		if r := got[name]; r.Status != status || (status == report.StatusError) != strings.Contains(string(r.Line), "bytes of memory") {
			t.Errorf("%s: %s %.300s", name, r.Status, r.Line)
		}
	}
}

// dying is a worker whose process ends in the way that a dump's name asks for.
type dying struct{ Analyzer }

func (d *dying) Do(ctx context.Context, j Job) Record {
	self, _ := os.FindProcess(os.Getpid())
	switch {
	case strings.Contains(j.Path, "killed"):
		_ = self.Kill() // as the system does when memory is short
		select {}
	case strings.Contains(j.Path, "sleeps"):
		select {}
	case strings.Contains(j.Path, "exits"):
		os.Stderr.WriteString("last words\n")
		os.Exit(3)
	}
	return d.Analyzer.Do(ctx, j)
}

func worker(mode string, l Limits) *Process {
	return &Process{Limits: l, Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FLEET_TEST_WORKER="+mode)
		return cmd
	}}
}

// A worker's death is a record of that dump alone.
func TestWorkersDie(t *testing.T) {
	dir := collection(t)
	good := filepath.Join(dir, "b", "crashdemo.dmp")
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"killed.dmp", "exits.dmp", "sleeps.dmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := worker("die", Limits{Time: 20 * time.Second})
	defer p.Close()
	for _, c := range []struct{ name, status, reason string }{
		{"b/crashdemo.dmp", report.StatusOK, ""},
		{"killed.dmp", report.StatusError, "the worker process ended"},
		{"b/crashdemo.dmp", report.StatusOK, ""},
		{"exits.dmp", report.StatusError, "last words"},
		{"b/crashdemo.dmp", report.StatusOK, ""},
	} {
		r := p.Do(t.Context(), Job{Path: filepath.Join(dir, filepath.FromSlash(c.name))})
		f := facts(t, r.Line)[0]
		if r.Status != c.status || f.Status != c.status || !strings.Contains(f.Reason, c.reason) || f.Key == "" {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	slow := worker("die", Limits{Time: 200 * time.Millisecond})
	defer slow.Close()
	if f := facts(t, slow.Do(t.Context(), Job{Path: filepath.Join(dir, "sleeps.dmp")}).Line)[0]; !strings.Contains(f.Reason, "took longer than 200ms") {
		t.Errorf("a worker that hangs: %+v", f)
	}
	junk := worker("junk", Limits{})
	defer junk.Close()
	if f := facts(t, junk.Do(t.Context(), Job{Path: good}).Line)[0]; f.Status != report.StatusError || !strings.Contains(f.Reason, "worker process") {
		t.Errorf("a worker that answers nonsense: %+v", f)
	}
}

// What something else wrote is left as it is.
func TestResumeLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.dmp")
	for _, content := range []string{"MDMP and no newline", "MDMP\nmore", `{"schema":"other"`, "{\"schema\":\"dumptriage/1\"}\n", "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(path, nil); err == nil || !strings.Contains(err.Error(), "is this the right file?") {
			t.Errorf("%q: %v", content, err)
		}
		if got, _ := os.ReadFile(path); string(got) != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func TestTwoRunsOnOneFile(t *testing.T) {
	if runtime.GOOS == "plan9" || runtime.GOOS == "js" || runtime.GOOS == "solaris" || runtime.GOOS == "illumos" || runtime.GOOS == "aix" {
		t.Skip("no locks on " + runtime.GOOS)
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	f, _, err := Resume(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Resume(path, nil); err == nil || !strings.Contains(err.Error(), "another run is writing to it") {
		t.Errorf("a second run: %v", err)
	}
	f.Close()
	f, _, err = Resume(path, nil)
	if err != nil {
		t.Errorf("after the first: %v", err)
	}
	f.Close()
}

// Paths that look the same in the records, redacted or for what is no UTF-8 in them,
// are told apart by content, and equal ones are counted.
func TestResumeByShownPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) Job {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Skip("no such names here: ", err)
		}
		return Job{Path: path}
	}
	jobs := []Job{write("a/x.dmp", "one"), write("b/x.dmp", "two"), write("c/x.dmp", "one"), write("bad\xffname.dmp", "three"), write("bad\xfename.dmp", "four")}
	var lines bytes.Buffer
	record := func(j Job, shown string) {
		key, _ := Key(j)
		b, _ := json.Marshal(map[string]any{"schema": "dumptriage/1", "inputs": []map[string]string{{"path": shown}}, "batch": map[string]string{"key": key}})
		// As a record begins.
		lines.WriteString(`{"schema":"dumptriage/1",` + strings.TrimPrefix(strings.Replace(string(b), `,"schema":"dumptriage/1"`, "", 1), "{") + "\n")
	}
	record(jobs[0], "x.dmp")
	record(jobs[1], "x.dmp")
	record(jobs[3], filepath.Base(jobs[3].Path))
	path := filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(path, lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	f, done, err := Resume(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done.Shown = filepath.Base
	want := []bool{true, true, false, true, false}
	for i, j := range jobs {
		if got := done.Has(j); got != want[i] {
			t.Errorf("%q: done is %v", j.Path, got)
		}
	}
}

func TestNamesThatAreNoUTF8ReachWorkers(t *testing.T) {
	for _, name := range []string{"a\xffb", "a\nb", `a"b`, "", "é\u2028"} {
		b, err := json.Marshal(requestOf(Job{3, name, name}))
		var r request
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil || r.job() != (Job{3, name, name}) || bytes.Contains(b, []byte("\n")) {
			t.Errorf("%q became %+v, %v", name, r.job(), err)
		}
	}
}

func TestListsOfAllKinds(t *testing.T) {
	dir := t.TempDir()
	text := "# dumps\r\ndumps/ä.dmp\r\n  dumps/𝄞.dmp  \r\n\r\n"
	long := strings.Repeat("#", 511) + "ä\nx.dmp\n" // a character across the end of what is looked at
	wide := func(order func([]byte, uint16) []byte) []byte {
		var b []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
			b = order(b, u)
		}
		return b
	}
	little := wide(func(b []byte, u uint16) []byte { return append(b, byte(u), byte(u>>8)) })
	want := []string{"dumps/ä.dmp", "dumps/𝄞.dmp"}
	for name, c := range map[string]struct {
		content []byte
		want    []string
	}{
		"utf-8":        {[]byte(text), want},
		"marked":       {[]byte("\ufeff" + text), want},
		"utf-16":       {little, want},
		"big endian":   {wide(func(b []byte, u uint16) []byte { return append(b, byte(u>>8), byte(u)) }), want},
		"odd":          {append(little, 'x'), want},
		"long":         {[]byte(long), []string{"x.dmp"}},
		"no text":      {[]byte("a\x00b"), nil},
		"not UTF-8":    {[]byte("a\xffb\n"), nil},
		"a dump":       {[]byte("MDMP text"), nil},
		"UTF-16 alone": {[]byte("\xff\xfe"), nil},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.content, 0o666); err != nil {
			t.Fatal(err)
		}
		if c.want == nil {
			c.want = []string{path} // it stands for itself
		}
		jobs, err := Inputs([]string{path}, true, nil, nil)
		var got []string
		for _, j := range jobs {
			got = append(got, j.Path)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// What is no file is a record, and is never waited for; a folder that cannot be listed
// is told.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop.dmp")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	os.Symlink(dir, filepath.Join(dir, "folder.dmp"))
	os.Symlink(os.DevNull, filepath.Join(dir, "device.dmp"))
	fifo := filepath.Join(dir, "fifo.dmp")
	if err := exec.Command("mkfifo", fifo).Run(); err == nil {
		os.Symlink(fifo, filepath.Join(dir, "pipe.dmp"))
	}
	jobs, err := Inputs([]string{dir}, false, nil, nil)
	if err != nil || len(jobs) < 3 {
		t.Fatalf("%v, %v", jobs, err)
	}
	a := &Analyzer{}
	defer a.Close()
	for _, j := range append(jobs, Job{Path: fifo}) {
		done := make(chan Record, 1)
		go func() { done <- a.Do(t.Context(), j) }()
		select {
		case r := <-done:
			if f := facts(t, r.Line)[0]; f.Status != report.StatusError || f.Reason == "" {
				t.Errorf("%s: %s", j.Path, r.Line)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is waited for", j.Path)
		}
	}
}

func TestFoldersThatCannotBeListed(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(closed); err == nil {
		t.Skip("everything can be listed by this user")
	}
	var told []error
	if _, err := Inputs([]string{dir}, false, nil, func(err error) { told = append(told, err) }); err != nil || len(told) != 1 || !strings.Contains(told[0].Error(), "closed") {
		t.Errorf("%v, %v", told, err)
	}
}
