package minidump

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

func openCorpus(t testing.TB, name string) (*File, error) {
	t.Helper()
	file, err := os.Open(corpus.Need(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return Open(file, info.Size(), "test.dmp")
}

// The facts come from the files' own projects (their tests, logs of their
// writers) and from other tools.
var corpusFacts = []struct {
	file                      string
	arch                      dump.Arch
	os                        [3]uint32
	pid                       uint32
	threads, modules, handles int // -1 not known
	code                      uint32
	thread                    uint32
	pc                        uint64
}{
	{"user/A01-unity-mono-jit-x64/crash.dmp", dump.AMD64, [3]uint32{10, 0, 18363}, 0, 56, 91, -1, 0xc0000005, 7936, 0x7ff9f4d221fd},
	{"user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab.dmp", dump.AMD64, [3]uint32{10, 0, 17134}, 0, 4, -1, -1, 0x4000001f, 49144, 0},
	{"user/A03-breakpad-minidump2-x86/minidump2.dmp", dump.X86, [3]uint32{5, 1, 2600}, 0, 2, 13, -1, 0xc0000005, 3060, 0x40429e},
	{"user/A04-lldb-fizzbuzz-x86/fizzbuzz_no_heap.dmp", dump.X86, [3]uint32{}, 4440, -1, -1, -1, 0xc0000005, 8992, 0x164d14},
	{"user/A05-lldb-sigsegv-x64-pdb/sigsegv.dmp", dump.AMD64, [3]uint32{}, 0, -1, -1, -1, 0xc0000005, 10860, 0x7ff7a13110d9},
	{"user/A06-llvm-symbolless-entry-x64/symbolless-entry-unwind.dmp", dump.AMD64, [3]uint32{}, 0, 1, 1, -1, 0, 0, 0},
	{"user/A07-thread-names-x86/thread_name_list.dmp", dump.X86, [3]uint32{}, 0, -1, -1, -1, 0xc0000005, 10976, 0},
	{"user/A08-fastfail-x64/tiny-exe-fastfail.dmp", dump.AMD64, [3]uint32{}, 0, 4, -1, -1, 0xc0000409, 24440, 0x7ff75355af42},
	{"user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave.dmp", dump.AMD64, [3]uint32{10, 0, 22000}, 0, 1, -1, 147, 0, 0, 0},
	{"user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave-x86.dmp", dump.X86, [3]uint32{10, 0, 22631}, 0, 3, -1, -1, 0, 0, 0},
	{"user/A10-sentry-native-x64/minidump.dmp", dump.AMD64, [3]uint32{}, 0, 5, 34, -1, 0xc0000005, 12996, 0},
	{"user/A11-electron-v8-x64/windows.dmp", dump.AMD64, [3]uint32{10, 0, 14393}, 0, 14, 58, -1, 0xc0000005, 6068, 0},
	{"user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp", dump.AMD64, [3]uint32{}, 0, -1, -1, -1, 0xc000000d, 5896, 0},
	{"user/A13-notepad-hang-x64-x86/notepad-small-64bit.dmp", dump.AMD64, [3]uint32{6, 1, 7601}, 0, 1, 5, -1, 0x80000003, 10444, 0},
	{"user/A13-notepad-hang-x64-x86/notepad-small-32bit.dmp", dump.X86, [3]uint32{6, 1, 7601}, 0, -1, 22, -1, 0x80000003, 4604, 0},
}

func TestCorpusFacts(t *testing.T) {
	for _, want := range corpusFacts {
		t.Run(filepath.Base(want.file), func(t *testing.T) {
			f, err := openCorpus(t, want.file)
			if err != nil {
				t.Fatal(err)
			}
			wantClean(t, f)
			s, p := f.System(), f.Process()
			if got := [3]uint32{s.Major, s.Minor, s.Build}; s.Arch != want.arch || want.os != [3]uint32{} && got != want.os {
				t.Errorf("%v %v", s.Arch, got)
			}
			if want.pid != 0 && p.PID != want.pid {
				t.Errorf("pid %d", p.PID)
			}
			for what, n := range map[string][2]int{"threads": {len(f.Threads()), want.threads}, "modules": {len(f.Modules()), want.modules}, "handles": {len(f.Handles()), want.handles}} {
				if n[1] > 0 && n[0] != n[1] {
					t.Errorf("%d %s, want %d", n[0], what, n[1])
				}
			}
			checkException(t, f, want.code, want.thread, want.pc)
			for _, th := range f.Threads() {
				sp, ok := th.Context.SP()
				if !ok || th.StackLimit >= th.StackBase || sp < th.StackLimit || sp > th.StackBase {
					t.Errorf("thread %d: stack pointer %#x outside %#x-%#x", th.ID, sp, th.StackLimit, th.StackBase)
				}
			}
		})
	}
}

func checkException(t *testing.T, f *File, code, thread uint32, pc uint64) {
	t.Helper()
	e := f.Exception()
	if e == nil || code == 0 {
		if e != nil || code != 0 {
			t.Errorf("exception %+v, want code %#x", e, code)
		}
		return
	}
	got, _ := e.Context.PC()
	if e.Code != code || e.ThreadID != thread || pc != 0 && got != pc {
		t.Errorf("exception %#x in %d at %#x", e.Code, e.ThreadID, got)
	}
}

func TestCorpusDetails(t *testing.T) {
	f, err := openCorpus(t, "user/A01-unity-mono-jit-x64/crash.dmp")
	if err != nil {
		t.Fatal(err)
	}
	tables, _ := f.FunctionTables()
	entries := 0
	for i := range tables {
		entries += tables[i].Count
	}
	if len(tables) != 46 || entries != 7872 {
		t.Errorf("%d tables with %d functions", len(tables), entries)
	}
	f, _ = openCorpus(t, "user/A11-electron-v8-x64/windows.dmp")
	if tables, _ = f.FunctionTables(); len(tables) != 1 || tables[0].Min != 0x1fcaa00000 || tables[0].Max != 0x1feaa00000 || len(tables[0].Native) != 112 {
		t.Errorf("%+v", tables)
	}
	f, _ = openCorpus(t, "user/A12-invalid-parameter-assertion-x64/invalid-parameter.dmp")
	if a, _ := f.Assertion(); a == nil || a.Expression != "format != nullptr" || a.Function != "common_vfprintf" || a.Line != 32 || a.Type != 1 {
		t.Errorf("%+v", a)
	}
	f, _ = openCorpus(t, "user/A07-thread-names-x86/thread_name_list.dmp")
	for _, th := range f.Threads() {
		if want := map[uint32]string{6564: "main thread", 8820: "sleep thread", 10976: "overflow thread"}[th.ID]; th.Name != want {
			t.Errorf("thread %d %q, want %q", th.ID, th.Name, want)
		}
	}
	f, _ = openCorpus(t, "user/A09-xstate-cet-x64-and-x86/tiny-exe-with-cet-xsave.dmp")
	if n := len(f.Regions()); n != 557 {
		t.Errorf("%d regions", n)
	}
	if s := f.System(); s.Revision != 282 || s.ServicePack != "" {
		t.Errorf("revision %d, service pack %q", s.Revision, s.ServicePack)
	}
	if len(f.UnloadedModules()) != 0 && f.UnloadedModules()[0].Path == "" {
		t.Errorf("unloaded %+v", f.UnloadedModules())
	}
	if _, err := openCorpus(t, "user/A14-malformed-small/simple-crashpad.dmp"); err == nil || !strings.Contains(err.Error(), "macOS, not Windows") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"invalid-range.dmp", "invalid-record-count.dmp"} {
		f, err := openCorpus(t, "user/A14-malformed-small/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if d := f.DecodeAll(); len(d) == 0 || !strings.Contains(d[len(d)-1].Error(), "beyond the end of the file") {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// Another reader's listing of a dump, field by field.
func TestAgainstBreakpadListing(t *testing.T) {
	f, err := openCorpus(t, "user/A03-breakpad-minidump2-x86/minidump2.dmp")
	if err != nil {
		t.Fatal(err)
	}
	listing, err := os.Open(corpus.Need(t, "user/A03-breakpad-minidump2-x86/minidump2.dump.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer listing.Close()
	field := regexp.MustCompile(`^\s+(\S+)\s+= "?([^"\s]+)`)
	var modules []map[string]string
	for s := bufio.NewScanner(listing); s.Scan(); {
		if s.Text() == "MDRawModule" {
			modules = append(modules, map[string]string{})
		}
		if m := field.FindStringSubmatch(s.Text()); m != nil && len(modules) > 0 && modules[len(modules)-1][m[1]] == "" {
			modules[len(modules)-1][m[1]] = m[2]
		}
	}
	if len(modules) != 13 {
		t.Fatalf("%d modules in the listing", len(modules))
	}
	number := func(s string) uint64 { n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64); return n }
	for i, m := range f.Modules() {
		want := modules[i]
		cv := m.CodeView
		if m.Base != number(want["base_of_image"]) || m.Size != number(want["size_of_image"]) || uint64(m.CheckSum) != number(want["checksum"]) ||
			uint64(m.TimeDateStamp) != number(want["time_date_stamp"]) || m.Path != want["(code_file)"] ||
			GUID(cv.GUID).String() != want["(cv_record).signature"] || cv.PDB != want["(cv_record).pdb_file_name"] || strconv.Itoa(int(cv.Age)) != want["(cv_record).age"] {
			t.Errorf("module %+v\nlisting %v", m, want)
		}
	}
}

// In a full-memory dump every module's header is in memory at its base, and
// says the same time stamp and size as the list: so the memory is in place.
func TestFullMemoryHeaders(t *testing.T) {
	f, err := openCorpus(t, "user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab.dmp")
	if err != nil {
		t.Fatal(err)
	}
	mem := f.Memory()
	for _, m := range f.Modules() {
		lfanew, err := dump.ReadUint32(mem, m.Base+0x3c)
		if err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		pe := m.Base + uint64(lfanew)
		magic, _ := dump.ReadUint32(mem, pe)
		stamp, _ := dump.ReadUint32(mem, pe+8)
		size, _ := dump.ReadUint32(mem, pe+0x50)
		if magic != 0x4550 || stamp != m.TimeDateStamp || uint64(size) != m.Size {
			t.Errorf("%s at %#x: %#x, stamp %#x, size %#x; listed %#x, %#x", m.Name(), m.Base, magic, stamp, size, m.TimeDateStamp, m.Size)
		}
	}
	for _, th := range f.Threads() {
		sp, _ := th.Context.SP()
		if v, err := dump.ReadUint64(mem, sp); err != nil {
			t.Errorf("thread %d: stack at %#x: %#x %v", th.ID, sp, v, err)
		}
	}
}

func TestWineCorpus(t *testing.T) {
	for name, want := range map[string]struct {
		threads int
		code    uint32
	}{
		"hang_threads": {9, 0}, "hang_deadlock": {3, 0}, "hang_readfile": {1, 0}, "dbg_av": {1, 0xc0000005}, "dbg_div": {1, 0xc0000094},
		"dbg_fastfail": {1, 0xc0000409}, "dbg_int3": {1, 0x80000003}, "inproc_ud2": {1, 0xc000001d}, "inproc_raise": {1, 0xe0001234},
	} {
		f, err := openCorpus(t, "wine/t64-clang-O1/"+name+".dmp")
		if err != nil {
			t.Fatal(err)
		}
		wantClean(t, f)
		host, _ := f.HostModules()
		e := f.Exception()
		if len(f.Threads()) != want.threads || len(host) == 0 || f.Process().Name != "t64-clang-O1.exe" || (e != nil) != (want.code != 0) || e != nil && e.Code != want.code {
			t.Errorf("%s: %d threads, %d host modules, %q, exception %+v", name, len(f.Threads()), len(host), f.Process().Name, e)
		}
	}
}

func BenchmarkCorpus100KB(b *testing.B) {
	data, err := os.ReadFile(corpus.Need(b, "user/A08-fastfail-x64/tiny-exe-fastfail.dmp"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		mustOpen(b, data).DecodeAll()
	}
}
