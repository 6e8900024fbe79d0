package triage

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/internal/input"
)

// fake is a dump that says what a test sets.
type fake struct {
	format    dump.Format
	captured  time.Time
	system    dump.System
	process   dump.Process
	threads   []dump.Thread
	modules   []dump.Module
	unloaded  []dump.Module
	memory    dump.Memory
	regions   []dump.Region
	exception *dump.Exception
	bugcheck  *dump.BugCheck
	cpus      []dump.CPU
	damage    []*dump.Error
}

func (f *fake) Format() dump.Format            { return f.format }
func (f *fake) Kind() string                   { return "fake" }
func (f *fake) Flags() []string                { return nil }
func (f *fake) Captured() time.Time            { return f.captured }
func (f *fake) System() *dump.System           { return &f.system }
func (f *fake) Process() *dump.Process         { return &f.process }
func (f *fake) Threads() []dump.Thread         { return f.threads }
func (f *fake) Modules() []dump.Module         { return f.modules }
func (f *fake) UnloadedModules() []dump.Module { return f.unloaded }
func (f *fake) Handles() []dump.Handle         { return nil }
func (f *fake) Regions() []dump.Region         { return f.regions }
func (f *fake) Exception() *dump.Exception     { return f.exception }
func (f *fake) BugCheck() *dump.BugCheck       { return f.bugcheck }
func (f *fake) CPUs() []dump.CPU               { return f.cpus }
func (f *fake) Damage() []*dump.Error          { return f.damage }

func (f *fake) Memory() dump.Memory {
	if f.memory == nil {
		return pages{}
	}
	return f.memory
}

// at makes a Dump of the fake, of the given path.
func (f *fake) at(t *testing.T, path string) *Dump {
	t.Helper()
	if f.format == "" {
		f.format = dump.FormatMinidump
	}
	if f.system.Arch == dump.ArchUnknown {
		f.system.Arch = dump.AMD64
	}
	file, err := input.New(bytes.NewReader(nil), 0, path, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &Dump{Source: f, Path: path, File: file}
}

func (f *fake) user(t *testing.T) *Dump { t.Helper(); return f.at(t, "app.dmp") }

func (f *fake) kernel(t *testing.T) *Dump {
	t.Helper()
	f.format = dump.FormatKernel64
	return f.at(t, "app.Kernel.dmp")
}

// regsAt is registers that know where a thread is, and no more.
func regsAt(ip, sp uint64) dump.Registers {
	r := dump.Registers{Arch: dump.AMD64}
	r.SetPC(ip)
	r.SetSP(sp)
	return r
}

// kernelThread is a thread of a kernel dump that entered from user mode at ip
// with stack pointer sp; 0 means that it did not.
func kernelThread(id uint32, teb, ip, sp uint64) dump.Thread {
	k := &dump.KernelThread{PID: 100, ETHREAD: 0xffff800000000000 + uint64(id)<<8, CPU: -1}
	if ip != 0 {
		k.TrapFrame, k.TrapFrameRule, k.User = 0xffffe10d62387a00, "initial_stack", regsAt(ip, sp)
	}
	return dump.Thread{ID: id, TEB: teb, Kernel: k, Context: regsAt(0xfffff8045e01bb67, 0xffffe10d623875d0), ContextSource: dump.ContextSwitchFrame}
}

func analyze(t *testing.T, user, kernel *Dump, opt Options) *Incident {
	t.Helper()
	inc, err := Analyze(user, kernel, "given", opt)
	if err != nil {
		t.Fatal(err)
	}
	return inc
}

// openBytes opens a dump that lies in memory.
func openBytes(t *testing.T, name string, b []byte) *Dump {
	t.Helper()
	f, err := input.New(bytes.NewReader(b), int64(len(b)), name, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenInput(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// imageDir writes image files into a new folder.
func imageDir(t *testing.T, images map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range images {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mapped is an image's pages as memory.
func mapped(im *fixtures.Image) dump.Memory {
	m := pages{}
	for _, r := range im.Mapped() {
		m[r.VA] = r.Data
	}
	return m
}

// wantHalf compares a walked half with the walk that was built into its stack.
func wantHalf(t *testing.T, what string, h *Half, want []fixtures.WalkFrame) {
	t.Helper()
	if h == nil {
		t.Errorf("%s: no half", what)
		return
	}
	if len(h.Frames) != len(want) {
		t.Errorf("%s: %d frames, want %d (stopped: %+v)", what, len(h.Frames), len(want), h.Stop)
	}
	for i := range min(len(want), len(h.Frames)) {
		if f := &h.Frames[i]; f.IP != want[i].PC || f.SP != want[i].SP {
			t.Errorf("%s frame %d: ip %#x sp %#x (%s), want %#x %#x (%s)", what, i, f.IP, f.SP, f.Name.Function, want[i].PC, want[i].SP, want[i].Function)
		}
	}
}

func threadOf(t *testing.T, inc *Incident, id uint32) *Thread {
	t.Helper()
	for i := range inc.Threads {
		if inc.Threads[i].ID == id {
			return &inc.Threads[i]
		}
	}
	t.Fatalf("no thread %#x", id)
	return nil
}
