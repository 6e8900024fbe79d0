package kdump

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/internal/corpus"
)

func openCorpus(t testing.TB, name string) *File {
	t.Helper()
	path := corpus.Need(t, "kernel/"+name)
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(r, st.Size(), path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const (
	k01 = "k01-triage-x64-16cpu/triage_x64.dmp"
	k02 = "k02-triage-x64-user-seam/083125-14875-01.dmp"
	k03 = "k03-synthetic-mk/fake_mk.Kernel.dmp"
)

// A 0x7E in amdppm.sys on 16 processors.
func TestCorpus16Processors(t *testing.T) {
	f := openCorpus(t, k01)
	s := f.System()
	if s.NTVersion != "10.0.19041.804" || s.CPUCount != 16 || s.CPUMHz != 3593 || s.CPUVendor != "AuthenticAMD" {
		t.Errorf("system %+v", *s)
	}
	if bc := f.BugCheck(); bc.Code != 0x7e || bc.Raw != 0x1000007e ||
		bc.Parameters != [4]uint64{0xffffffffc0000005, 0xfffff8048b58334c, 0xffff850429891ee8, 0xffff850429891720} {
		t.Errorf("bugcheck %+v", *bc)
	}
	ts := f.Threads()
	if len(ts) != 1 || ts[0].ID != 264 || ts[0].Kernel.PID != 4 || ts[0].ContextSource != dump.ContextParameter || ts[0].Kernel.TrapFrame != 0 {
		t.Fatalf("threads %+v", ts)
	}
	if pc, _ := ts[0].Context.PC(); pc != 0xfffff8048b58334c {
		t.Errorf("thread at %#x", pc)
	}
	if m := f.moduleAt(0xfffff8048b58334c); m == nil || m.Name() != "amdppm.sys" || 0xfffff8048b58334c-m.Base != 0x334c {
		t.Errorf("fault in %+v", m)
	}
	if e := f.Exception(); e == nil || e.Code != 0xc0000005 || e.Address != 0xfffff8048b58334c || e.ThreadID != 264 {
		t.Errorf("exception %+v", e)
	}
	if p := f.Process(); p.PID != 4 || p.Name != "System" || p.PEB != 0 {
		t.Errorf("process %+v", *p)
	}
	// KPRCB.RspBase lies 0x370 below the top of the thread's stack, so it gives
	// the top of the stack independently of the blocks.
	cpus := f.CPUs()
	if len(cpus) != 16 {
		t.Fatalf("%d processors", len(cpus))
	}
	for i, c := range cpus {
		if int(c.Number) != i || c.Source != dump.ContextPRCB || c.ETHREAD == 0 {
			t.Errorf("processor %d: %+v", i, c)
		}
		pc, _ := c.Context.PC()
		if m := f.moduleAt(pc); m == nil || m.Name() != "ntoskrnl.exe" {
			t.Errorf("processor %d at %#x, outside the kernel", i, pc)
		}
		rspBase, err := dump.ReadUint64(f.Memory(), c.PRCB+0x28)
		if err != nil || rspBase+0x370 != c.StackBase {
			t.Errorf("processor %d: stack top %#x, RspBase %#x %v", i, c.StackBase, rspBase, err)
		}
	}
	// The header's exception record is at KeBugCheckEx, where processor 0 is.
	if pc, _ := cpus[0].Context.PC(); pc != f.HeaderException().Address {
		t.Errorf("processor 0 at %#x", pc)
	}
	if n := len(f.Blobs()); n != 20 {
		t.Errorf("%d blobs", n)
	}
	if len(f.blocks) != 1831 {
		t.Errorf("%d blocks", len(f.blocks))
	}
	wantNoDamage(t, f)
}

// A 0x4A in a user process; WinDbg's kv says what the stack is.
func TestCorpusUserSeam(t *testing.T) {
	f := openCorpus(t, k02)
	if v := f.System().NTVersion; v != "10.0.19041.3803" {
		t.Errorf("version %q", v)
	}
	if p := f.Process(); p.PID != 3244 || p.Name != "notmyfault64.e" || p.PEB == 0 {
		t.Errorf("process %+v", *p)
	}
	ts := f.Threads()
	if len(ts) != 1 {
		t.Fatalf("%d threads", len(ts))
	}
	th := ts[0]
	if th.ID != 4536 || th.ContextSource != dump.ContextHeader || pcsp(&th.Context) != [2]uint64{0xfffff8075c00b6f0, 0xffffa704eeb6bc88} {
		t.Errorf("thread %+v", th)
	}
	k := th.Kernel
	if k.TrapFrame != 0xffffa704eeb6be40 || k.TrapFrameRule != "initial_stack" || pcsp(&k.User) != [2]uint64{0x7ffe7350d0c4, 0x7d488fe9b8} {
		t.Errorf("trap frame %#x %q %#x", k.TrapFrame, k.TrapFrameRule, pcsp(&k.User))
	}
	if k.State != 2 || k.CPU != 0 || k.StackBase != 0xffffa704eeb6c000 || k.KernelStack >= k.StackLimit && k.KernelStack < k.StackBase {
		t.Errorf("kernel thread %+v", *k)
	}
	if !f.BugCheckEntry() {
		t.Error("the header stands at KeBugCheckEx")
	}
	if n := len(f.Blobs()); n != 29 {
		t.Errorf("%d blobs", n)
	}
	wantNoDamage(t, f)
}

var lmLine = regexp.MustCompile("^([0-9a-f]{8})`([0-9a-f]{8}) ([0-9a-f]{8})`([0-9a-f]{8})   (\\S+)(.*)$")

var lmStamp = regexp.MustCompile(`\(?([0-9A-F]{8})\)?( \(This is a reproducible|\)|$)`)

// WinDbg's lm t n lists every driver with base, end and time stamp, then the
// unloaded ones.
func TestCorpusDrivers(t *testing.T) {
	f := openCorpus(t, k02)
	in, err := os.Open(filepath.Join(filepath.Dir(corpus.Need(t, "kernel/"+k02)), "lm_t_n.txt"))
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	loaded, unloaded := map[uint64]dump.Module{}, map[uint64]dump.Module{}
	for _, m := range f.Modules() {
		loaded[m.Base] = m
	}
	for _, m := range f.UnloadedModules() {
		unloaded[m.Base] = m
	}
	hits, gone, after := 0, 0, false
	for sc := bufio.NewScanner(in); sc.Scan(); {
		line := strings.TrimRight(sc.Text(), "\r ")
		after = after || strings.HasPrefix(line, "Unloaded modules")
		g := lmLine.FindStringSubmatch(line)
		if g == nil {
			continue
		}
		start, _ := strconv.ParseUint(g[1]+g[2], 16, 64)
		end, _ := strconv.ParseUint(g[3]+g[4], 16, 64)
		if after {
			if m, ok := unloaded[start]; !ok || m.End() != end || !strings.HasPrefix(g[5], m.Path) {
				t.Errorf("unloaded %s: %+v", line, m)
			}
			gone++
			continue
		}
		m, ok := loaded[start]
		if !ok || m.End() != end {
			t.Errorf("%s: %+v", line, m)
		}
		s := lmStamp.FindStringSubmatch(line)
		if s == nil {
			t.Errorf("no time stamp in %q", line)
			continue
		}
		if stamp, _ := strconv.ParseUint(s[1], 16, 32); uint32(stamp) != m.TimeDateStamp {
			t.Errorf("%s: stamp %08X", line, m.TimeDateStamp)
		}
		hits++
	}
	if hits != 156 || len(loaded) != 156 || gone != 9 || len(unloaded) != 9 {
		t.Errorf("%d of %d drivers, %d of %d unloaded", hits, len(loaded), gone, len(unloaded))
	}
}

// A live dump by another generator.
func TestCorpusLive(t *testing.T) {
	f := openCorpus(t, k03)
	if !f.Live() || f.Process().PID != 15068 || f.Process().ParentPID != 0x4c80 {
		t.Errorf("%q %+v", f.Kind(), *f.Process())
	}
	want := []struct {
		tid    uint32
		sp     uint64
		source dump.ContextSource
	}{
		{22816, 0xffffe10d62386fb0, dump.ContextHeader}, {8768, 0xffffe10d62396fb0, dump.ContextLiveBlock},
		{1300, 0xffffe10d623a6fb0, dump.ContextLiveBlock}, {15464, 0xffffe10d623b6fb0, dump.ContextLiveBlock},
	}
	ts := f.Threads()
	if len(ts) != len(want) {
		t.Fatalf("%d threads", len(ts))
	}
	for i, w := range want {
		th := ts[i]
		if th.ID != w.tid || th.ContextSource != w.source || pcsp(&th.Context) != [2]uint64{0xfffff8045e888b51, w.sp} ||
			pcsp(&th.Kernel.User) != [2]uint64{0x7ffe6390d184, 0xd67c9fe328 + 0x100000*uint64(i)} || th.TEB != 0xd67cb98000+0x2000*uint64(i) {
			t.Errorf("thread %d: %+v %+v", i, th, *th.Kernel)
		}
	}
	wantNoDamage(t, f)
}
