package triage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

// thread is a user thread of that id and TEB.
func thread(id uint32, teb uint64) dump.Thread { return dump.Thread{ID: id, TEB: teb} }

func TestPair(t *testing.T) {
	noon := time.Date(2023, 2, 14, 12, 0, 0, 0, time.UTC)
	pid := func(n uint32) dump.Process { return dump.Process{PID: n, HasPID: true} }
	same, other := []dump.Thread{thread(5, 0x7000)}, []dump.Thread{thread(6, 0x8000)}
	for _, x := range []struct {
		name         string
		user, kernel fake
		pid          uint32
		warnings     []string // a part of each
		refused      bool
	}{
		{"same process", fake{process: pid(100)}, fake{process: pid(100)}, 100, nil, false},
		{"different processes", fake{process: pid(100), threads: same}, fake{process: pid(101), threads: other}, 0, nil, true},
		{"different processes of one thread id", fake{process: pid(100), threads: same}, fake{process: pid(101), threads: []dump.Thread{thread(5, 0x8000)}}, 0, nil, true},
		{"different processes of one TEB address", fake{process: pid(100), threads: same}, fake{process: pid(101), threads: []dump.Thread{thread(6, 0x7000)}}, 0, nil, true},
		{"threads without TEB prove nothing", fake{process: pid(100), threads: []dump.Thread{thread(5, 0)}},
			fake{process: pid(101), threads: []dump.Thread{thread(5, 0)}}, 0, nil, true},
		{"another current process, the same threads", fake{process: pid(100), threads: same}, fake{process: pid(4), threads: same}, 100,
			[]string{"process ids differ (100 and 4)"}, false},
		{"the user dump has no id, threads match", fake{threads: same}, fake{process: pid(100), threads: same}, 100, []string{"matched by the threads' TEBs"}, false},
		{"the kernel dump has no id, nothing matches", fake{process: pid(100), threads: same}, fake{threads: other}, 100, []string{"no thread matches"}, false},
		{"neither has an id", fake{threads: same}, fake{threads: same}, 0, []string{"matched by the threads' TEBs"}, false},
		{"process 0 is an id", fake{process: pid(0), threads: same}, fake{process: pid(100), threads: other}, 0, nil, true},
		{"a minute apart", fake{process: pid(1), captured: noon}, fake{process: pid(1), captured: noon.Add(time.Minute)}, 1, nil, false},
		{"more than a minute apart", fake{process: pid(1), captured: noon}, fake{process: pid(1), captured: noon.Add(61 * time.Second)}, 1, []string{"1m1s apart"}, false},
		{"kernel dump first", fake{process: pid(1), captured: noon}, fake{process: pid(1), captured: noon.Add(-2 * time.Hour)}, 1, []string{"2h0m0s apart"}, false},
		{"one does not say when", fake{process: pid(1), captured: noon}, fake{process: pid(1)}, 1, nil, false},
		{"the other does not say when", fake{process: pid(1)}, fake{process: pid(1), captured: noon}, 1, nil, false},
		{"another architecture", fake{process: pid(1), system: dump.System{Arch: dump.X86}}, fake{process: pid(1)}, 1, []string{"of x86, the kernel dump of amd64"}, false},
		{"all at once", fake{captured: noon, system: dump.System{Arch: dump.ARM64}}, fake{process: pid(1), captured: noon.Add(time.Hour)}, 1,
			[]string{"no thread matches", "1h0m0s apart", "of arm64"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, err := pair(x.user.user(t), x.kernel.kernel(t), "beside")
			if x.refused {
				var e *dump.Error
				if !errors.As(err, &e) || e.Code != dump.Mismatch || e.File != "app.Kernel.dmp" || !strings.Contains(e.Msg, "different processes") {
					t.Fatalf("error %v, want a mismatch", err)
				}
				if _, err := Analyze(x.user.user(t), x.kernel.kernel(t), "beside", Options{}); err == nil {
					t.Error("analysed all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.PID != x.pid || p.How != "beside" || p.User != "app.dmp" || p.Kernel != "app.Kernel.dmp" {
				t.Errorf("%+v", p)
			}
			if len(p.Warnings) != len(x.warnings) {
				t.Fatalf("warnings %q, want %q", p.Warnings, x.warnings)
			}
			for i, part := range x.warnings {
				if !strings.Contains(p.Warnings[i], part) {
					t.Errorf("warning %q lacks %q", p.Warnings[i], part)
				}
			}
		})
	}
}

func TestMatchThreads(t *testing.T) {
	k := func(id uint32, teb uint64, pid uint32) dump.Thread {
		return dump.Thread{ID: id, TEB: teb, Kernel: &dump.KernelThread{PID: pid}}
	}
	type threads = []dump.Thread
	for _, x := range []struct {
		name         string
		user, kernel threads
		match, rest  []int
	}{
		{"in another order", threads{thread(1, 0xa000), thread(2, 0xb000)}, threads{k(2, 0xb000, 7), k(1, 0xa000, 7)}, []int{1, 0}, nil},
		{"by id where there is no TEB", threads{thread(1, 0), thread(2, 0)}, threads{k(2, 0xb000, 7), k(1, 0, 7)}, []int{1, 0}, nil},
		{"by id where TEBs differ", threads{thread(1, 0xa000)}, threads{k(1, 0xc000, 7)}, []int{0}, nil},
		{"by TEB where the kernel dump has no id", threads{thread(1, 0xa000)}, threads{k(0, 0xa000, 7)}, []int{0}, nil},
		{"no TEBs are no equal TEBs", threads{thread(1, 0)}, threads{k(2, 0, 7), k(0, 0, 7)}, []int{-1}, []int{0, 1}},
		{"no ids are no equal ids", threads{thread(0, 0xa000)}, threads{k(0, 0xb000, 7)}, []int{-1}, []int{0}},
		{"a TEB that another thread has by now", threads{thread(1, 0xa000)}, threads{k(9, 0xa000, 7)}, []int{-1}, []int{0}},
		{"a TEB that changed hands, and its old owner elsewhere", threads{thread(1, 0xa000)}, threads{k(1, 0xb000, 7), k(9, 0xa000, 7)}, []int{0}, []int{1}},
		{"of another process, though id and TEB agree", threads{thread(1, 0xa000)}, threads{k(1, 0xa000, 8)}, []int{-1}, []int{0}},
		{"of another process and of this", threads{thread(1, 0xa000)}, threads{k(1, 0xa000, 8), k(1, 0xa000, 7), k(3, 0xa000, 8)}, []int{1}, []int{0, 2}},
		{"process not known", threads{thread(1, 0xa000)}, threads{k(1, 0xa000, 0)}, []int{0}, nil},
		{"two user threads of one identity", threads{thread(1, 0xa000), thread(1, 0xa000)}, threads{k(1, 0xa000, 7)}, []int{0, -1}, nil},
		{"a copied id does not take another's thread", threads{thread(1, 0xb000), thread(1, 0xa000)}, threads{k(1, 0xa000, 7)}, []int{-1, 0}, nil},
		{"two kernel threads of one TEB", threads{thread(1, 0xa000)}, threads{k(1, 0xa000, 7), k(2, 0xa000, 7)}, []int{0}, []int{1}},
		{"the rest keeps its order", threads{thread(3, 0xc000)}, threads{k(1, 0xa000, 7), k(2, 0xb000, 7), k(3, 0xc000, 7), k(4, 0xd000, 7)}, []int{2}, []int{0, 1, 3}},
		{"nothing", nil, nil, []int{}, nil},
	} {
		match, rest := matchThreads(x.user, x.kernel, 7)
		if !slices.Equal(match, x.match) || !slices.Equal(rest, x.rest) {
			t.Errorf("%s: %v and the rest %v, want %v and %v", x.name, match, rest, x.match, x.rest)
		}
	}
	// With an unknown process nothing is left out for its process.
	if match, _ := matchThreads(threadsOf(thread(1, 0xa000)), threadsOf(k(1, 0xa000, 8)), 0); match[0] != 0 {
		t.Error("process not known: not matched")
	}
}

func threadsOf(t ...dump.Thread) []dump.Thread { return t }

func TestCompanion(t *testing.T) {
	for _, x := range []struct {
		files  []string
		of     string
		wanted string // "" none
	}{
		{[]string{"app.dmp", "app.Kernel.dmp"}, "app.dmp", "app.Kernel.dmp"},
		{[]string{"App.DMP", "aPP.kERNEL.dmp"}, "App.DMP", "aPP.kERNEL.dmp"},
		{[]string{"app.dmp", "app.Kernel.dmp.zst"}, "app.dmp", "app.Kernel.dmp.zst"},
		{[]string{"app.dmp.zst", "app.kernel.dmp"}, "app.dmp.zst", "app.kernel.dmp"},
		{[]string{"app.dmp.GZ", "app.kernel.dmp.CAB"}, "app.dmp.GZ", "app.kernel.dmp.CAB"},
		{[]string{"app.dmp.zip", "app.kernel.dmp.gz"}, "app.dmp.zip", "app.kernel.dmp.gz"},
		{[]string{"app.dmp", "app.kernel.dmp", "app.kernel.dmp.zst"}, "app.dmp", "app.kernel.dmp"}, // the plain one
		{[]string{"a.b.dmp", "a.b.Kernel.dmp", "a.Kernel.dmp"}, "a.b.dmp", "a.b.Kernel.dmp"},
		{[]string{"app.Kernel.dmp", "app.Kernel.Kernel.dmp"}, "app.Kernel.dmp", ""}, // a kernel dump has none
		{[]string{"app.KERNEL.dmp.zst", "app.kernel.kernel.dmp"}, "app.KERNEL.dmp.zst", ""},
		{[]string{"app.dmp", "other.Kernel.dmp", "app2.Kernel.dmp", "xapp.Kernel.dmp", "app.Kernel.dmp.txt"}, "app.dmp", ""},
		{[]string{"app.mdmp", "app.Kernel.dmp"}, "app.mdmp", ""}, // not the name that the writer gives
		{[]string{"app", "app.Kernel.dmp"}, "app", ""},
		{[]string{"app.dmp", "app.kernel.dmp/"}, "app.dmp", ""},
		{[]string{"app.dmp"}, "app.dmp", ""},
	} {
		dir := t.TempDir()
		for _, name := range x.files {
			path := filepath.Join(dir, name)
			var err error
			if strings.HasSuffix(name, "/") {
				err = os.Mkdir(path, 0o777)
			} else {
				err = os.WriteFile(path, nil, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		got, ok := Companion(filepath.Join(dir, x.of))
		want := ""
		if x.wanted != "" {
			want = filepath.Join(dir, x.wanted)
		}
		if got != want || ok != (want != "") {
			t.Errorf("%q beside %q: %q, %v; want %q", x.of, x.files, got, ok, want)
		}
	}
	if got, ok := Companion(filepath.Join(t.TempDir(), "nowhere", "app.dmp")); ok {
		t.Errorf("found %q in a folder that is not there", got)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("app.Kernel.dmp", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, ok := Companion("app.dmp"); !ok || got != "app.Kernel.dmp" {
		t.Errorf("without a folder: %q, %v", got, ok)
	}
}
