package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dumptriage/dump"
	"dumptriage/report"
)

// Limits are what one dump may take. Zero is no limit.
type Limits struct {
	Time   time.Duration
	Memory int64 // bytes
}

// exitMemory is the exit status of a worker that took more than its memory.
const exitMemory = 86

// Process is a worker in a process of its own, which can be ended. One is started
// when a job needs it, and again after one was ended.
type Process struct {
	Options report.Options // of the records of jobs that a process did not end
	Limits  Limits
	// Command makes the command of a process that calls Serve.
	Command func() *exec.Cmd

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
}

// request is a job as a worker process gets it: names need not be UTF-8, which
// JSON's texts must be.
type request struct {
	Index        int
	Path, Kernel []byte
}

func requestOf(j Job) request { return request{j.Index, []byte(j.Path), []byte(j.Kernel)} }

func (r *request) job() Job {
	return Job{Index: r.Index, Path: string(r.Path), Kernel: string(r.Kernel)}
}

// answer is the line before a record's own.
type answer struct {
	Key    string `json:"key"`
	Status string `json:"status"`
	Size   int    `json:"size"`
}

// Do implements Worker.
func (p *Process) Do(ctx context.Context, j Job) Record {
	if err := p.start(); err != nil {
		return Failed(p.Options, j, dump.Internal, "no worker process: "+err.Error())
	}
	if p.Limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Limits.Time)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	r, err := p.ask(j)
	if stop() && err == nil {
		return r
	}
	// Killed, or ended by itself: another job gets another process.
	werr := p.end()
	opt := p.Options
	opt.BatchKey, _ = Key(j)
	switch {
	case err == nil:
		return r
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Failed(opt, j, dump.Limit, fmt.Sprintf("took longer than %v", p.Limits.Time))
	case isExit(werr, exitMemory):
		return Failed(opt, j, dump.Limit, fmt.Sprintf("took more than %d bytes of memory", p.Limits.Memory))
	}
	return Failed(opt, j, dump.Internal, strings.TrimSpace(fmt.Sprintf("the worker process ended: %v\n%s", werr, p.stderr.String())))
}

func isExit(err error, status int) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == status
}

func (p *Process) start() error {
	if p.cmd != nil {
		return nil
	}
	cmd := p.Command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.stderr.reset()
	cmd.Stderr = &p.stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out = cmd, in, bufio.NewReaderSize(out, 1<<16)
	return nil
}

// ask sends a job and reads its record.
func (p *Process) ask(j Job) (Record, error) {
	b, err := json.Marshal(requestOf(j))
	if err != nil {
		return Record{}, err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return Record{}, err
	}
	head, err := p.out.ReadBytes('\n')
	if err != nil {
		return Record{}, err
	}
	var a answer
	if err := json.Unmarshal(head, &a); err != nil {
		return Record{}, err
	}
	var line bytes.Buffer
	if _, err := io.CopyN(&line, p.out, int64(a.Size)); err != nil {
		return Record{}, err
	}
	return Record{Job: j, Key: a.Key, Status: a.Status, Line: line.Bytes()}, nil
}

// end ends the process and returns how it ended.
func (p *Process) end() error {
	if p.cmd == nil {
		return nil
	}
	p.in.Close()
	done := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	done.Stop()
	p.cmd = nil
	return err
}

// Close implements Worker.
func (p *Process) Close() error {
	_ = p.end() // how an idle worker ends tells nothing
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = nil
}

// Serve is the other end of Process: it reads jobs and writes records until its
// input ends. With a limit of memory it ends the process when a job passes that.
func Serve(w Worker, limits Limits, in io.Reader, out io.Writer) error {
	var guard memoryGuard
	if limits.Memory > 0 {
		debug.SetMemoryLimit(limits.Memory / 10 * 8)
		guard.limit = uint64(limits.Memory)
		go guard.watch()
	}
	dec := json.NewDecoder(in)
	bw := bufio.NewWriterSize(out, 1<<16)
	for {
		var req request
		if err := dec.Decode(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		guard.busy.Store(true)
		r := w.Do(context.Background(), req.job())
		guard.check()
		guard.busy.Store(false)
		head, err := json.Marshal(answer{r.Key, r.Status, len(r.Line)})
		if err != nil {
			return err
		}
		bw.Write(append(head, '\n'))
		bw.Write(r.Line)
		if err := bw.Flush(); err != nil {
			return err
		}
	}
}

// memoryGuard ends the process when a job makes it hold more memory than is allowed:
// memory that the system cannot take back. Pages of mapped files do not count, as a
// container's limit does not end a process for them: they are dropped and read again.
type memoryGuard struct {
	limit uint64 // 0: none
	busy  atomic.Bool
}

func (g *memoryGuard) watch() {
	for range time.Tick(10 * time.Millisecond) {
		if g.busy.Load() {
			g.check()
		}
	}
}

func (g *memoryGuard) check() {
	if g.limit == 0 {
		return
	}
	if n := max(heldByRuntime(), heldBySystem()); n > g.limit {
		fmt.Fprintf(os.Stderr, "%d bytes of memory are held, %d are allowed\n", n, g.limit)
		os.Exit(exitMemory)
	}
}

// heldByRuntime returns what Go's allocator has of the system and has not given back,
// also before it is touched.
func heldByRuntime() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}
