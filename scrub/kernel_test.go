package scrub_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
	"dumptriage/internal/corpus"
	"dumptriage/internal/input"
	"dumptriage/kdump"
	"dumptriage/scrub"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// kernelStacks lists every frame of a kernel dump or a pair, by a walk of the test's own.
func kernelStacks(t testing.TB, user, kernel *triage.Dump, opt triage.Options) []string {
	t.Helper()
	inc, err := triage.Analyze(user, kernel, "given", opt)
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	var out []string
	add := func(what string, h *triage.Half) {
		if h == nil {
			return
		}
		for _, f := range h.Frames {
			out = append(out, fmt.Sprintf("%s %#x %#x %v %v %s+%#x", what, f.IP, f.SP, f.Method, f.Trust, f.Name.Function, f.Name.Offset))
		}
		out = append(out, fmt.Sprintf("%s %s", what, h.Stop.Reason))
	}
	for i := range inc.Threads {
		th := &inc.Threads[i]
		for k, h := range []*triage.Half{th.Kernel, th.User, th.Handler, th.Wow64} {
			add(fmt.Sprintf("thread %d.%d stitched %v", th.ID, k, th.Stitched), h)
		}
	}
	for i := range inc.CPUs {
		add(fmt.Sprintf("processor %d", inc.CPUs[i].Number), inc.CPUs[i].Kernel)
	}
	return out
}

// checkKernel scrubs a kernel dump or a pair and walks what came of it.
func checkKernel(t *testing.T, user, kernel *triage.Dump, opt triage.Options) *scrub.Result {
	t.Helper()
	res, err := scrub.Dumps(user, kernel, "given", scrub.Options{Triage: opt, Comment: "scrubbed"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range res.Differences {
		t.Errorf("differs: %v", x)
	}
	beside := opt
	beside.Symbols, beside.NotBeside = append(triage.Beside(user, kernel), opt.Symbols...), true
	var small *triage.Dump
	if user != nil {
		small = open(t, res.Bytes, "small.dmp")
	}
	smallKernel := open(t, res.Kernel, "small.Kernel.dmp")
	want, got := kernelStacks(t, user, kernel, beside), kernelStacks(t, small, smallKernel, beside)
	if !slices.Equal(want, got) {
		t.Errorf("%d frames became %d", len(want), len(got))
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Errorf("%d was %s and is %s", i, want[i], got[i])
				break
			}
		}
	}
	if len(want) == 0 {
		t.Error("no frames: the test shows nothing")
	}
	t.Logf("%d -> %d bytes, %d kept, %d threads, %d frames, loosened %v", kernel.File.Size(), len(res.Kernel), res.Memory, res.Threads, res.Frames, res.Loosened)
	for _, e := range smallKernel.Errors() {
		t.Log("damage:", e)
	}
	return res
}

func TestKernelCorpus(t *testing.T) {
	for _, name := range []string{"kernel/k01-triage-x64-16cpu/triage_x64.dmp", "kernel/k02-triage-x64-user-seam/083125-14875-01.dmp", "kernel/k03-synthetic-mk/fake_mk.Kernel.dmp"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			checkKernel(t, nil, openFile(t, corpus.Need(t, name)), triage.Options{})
		})
	}
}

func TestPair(t *testing.T) {
	dir := filepath.Join("..", "fixtures", "readline")
	checkKernel(t, openFile(t, filepath.Join(dir, "ConsoleApp1.dmp")), openFile(t, filepath.Join(dir, "ConsoleApp1.Kernel.dmp")), triage.Options{Images: []string{filepath.Join(dir, "images")}})
}

// TestSystems scrubs dumps of whole systems of every architecture and kind.
func TestSystems(t *testing.T) {
	for _, v := range machine.Variants() {
		m := machine.Build(*v)
		for _, kind := range []machine.Kind{machine.Full, machine.BitmapFull, machine.BitmapKernel, machine.KernelActive, machine.CompleteRange} {
			t.Run(fmt.Sprintf("%s-%d", v.Name, kind), func(t *testing.T) {
				for _, all := range []bool{false, true} {
					checkKernel(t, nil, open(t, m.Dump(kind), "MEMORY.DMP"), triage.Options{AllProcesses: all})
				}
			})
		}
	}
}

// gone reports the texts that a scrubbed dump should not hold and does, and those that
// the dump did not hold, which would show nothing.
func gone(t *testing.T, old, now []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		there := false
		for _, form := range forms(text) {
			there = there || bytes.Contains(old, form)
			if bytes.Contains(now, form) {
				t.Errorf("the new dump holds %q", text)
			}
		}
		if !there {
			t.Errorf("the old dump does not hold %q: the test shows nothing", text)
		}
	}
}

// TestKernelSecrets: names of processes and threads, command lines, folders and comments
// do not come along.
func TestKernelSecrets(t *testing.T) {
	for _, v := range []*machine.Variant{&machine.Windows22H2, &machine.Windows7, &machine.WindowsOdd, &machine.WindowsX86} {
		for _, kind := range []machine.Kind{machine.Full, machine.BitmapFull} {
			b := machine.Build(*v).Dump(kind)
			copy(b[headerComment(b):], "the comment\x00")
			res := checkKernel(t, nil, open(t, b, "MEMORY.DMP"), triage.Options{AllProcesses: true})
			texts := []string{"the comment"}
			if v.Arch == machine.AMD64 {
				texts = append(texts, "sort.exe", "MemCompression", `acmesvc.exe" /service`, `C:\Program Files\Acme\`)
			}
			gone(t, b, res.Kernel, texts...)
		}
	}
}

// headerComment is where DUMP_HEADER has its comment.
func headerComment(b []byte) int {
	if string(b[4:8]) == "DU64" {
		return 0xfb0
	}
	return 0x820
}

// TestTriageSecrets: the process's name and secondary data of a real dump do not come
// along. Its EPROCESS has the name, by the listing of a debugger that lies beside it.
func TestTriageSecrets(t *testing.T) {
	d := openFile(t, corpus.Need(t, "kernel/k02-triage-x64-user-seam/083125-14875-01.dmp"))
	b := make([]byte, d.File.Size())
	if _, err := d.File.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	res := checkKernel(t, nil, d, triage.Options{})
	gone(t, b, res.Kernel, "notmyfault64.e", "DumpBlob")
}

// TestKernelStackWords puts marks between what the stacks of a -mk dump need, and looks
// for them in the new one.
func TestKernelStackWords(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "fixtures", "readline", "ConsoleApp1.Kernel.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	plain := open(t, slices.Clone(b), "plain.dmp")
	inc, err := triage.Analyze(nil, plain, "", triage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	needed := map[uint64]bool{}
	for i := range inc.Threads {
		for _, f := range inc.Threads[i].Kernel.Frames {
			needed[f.IP] = true
		}
	}
	mem := plain.Memory().(*dump.FileMemory)
	var contexts []kdump.Block // on the stacks: registers
	for _, b := range plain.Source.(*kdump.File).Blocks() {
		if b.Size == 0x4d0 {
			contexts = append(contexts, b)
		}
	}
	var marks [][]byte
	for i := range inc.Threads {
		th := &inc.Threads[i]
		sp, base := th.Kernel.Frames[0].SP, th.KernelInfo.InitialStack-0x190 // there begins the trap frame
		for va := sp; va+8 <= base; va += 8 {
			v, err := dump.ReadUint64(mem, va)
			inContext := func(b kdump.Block) bool { return va+8 > b.VA && va < b.VA+uint64(b.Size) }
			if err != nil || needed[v] || slices.ContainsFunc(contexts, inContext) || v >= th.KernelInfo.StackLimit && v <= th.KernelInfo.StackBase {
				continue
			}
			r, _ := mem.Find(va)
			mark := fmt.Appendf(nil, "%04xhush", len(marks))
			copy(b[r.Off+int64(va-r.VA):], mark)
			marks = append(marks, mark)
		}
	}
	if len(marks) < 20 {
		t.Fatalf("only %d marks: the test shows little", len(marks))
	}
	for _, images := range []string{"", filepath.Join("..", "fixtures", "readline", "images")} {
		opt := triage.Options{}
		if images != "" {
			opt.Images = []string{images}
		}
		res := checkKernel(t, nil, open(t, b, "marked.Kernel.dmp"), opt)
		for _, m := range marks {
			if bytes.Contains(res.Kernel, m) {
				t.Fatalf("with images %q the new dump holds the mark %s of %d; loosened: %v", images, m, len(marks), res.Loosened)
			}
		}
	}
}

// FuzzKernel: whatever the dump, scrubbing it ends in a dump or an error.
func FuzzKernel(f *testing.F) {
	for _, name := range []string{"readline/ConsoleApp1.Kernel.dmp", "bugcheck/faulty.dmp"} {
		b, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := input.New(bytes.NewReader(b), int64(len(b)), "x.dmp", input.Options{})
		if err != nil {
			return
		}
		d, err := triage.OpenInput(in)
		if err != nil {
			in.Close()
			return
		}
		defer d.Close()
		res, err := scrub.Dump(d, scrub.Options{})
		if err != nil {
			return
		}
		if limit := 64*len(b) + 64<<20; len(res.Kernel) > limit {
			t.Errorf("%d bytes became %d", len(b), len(res.Kernel))
		}
	})
}

// TestBySymbols scrubs a dump of a kernel that no table knows, whose structures its PDB
// describes.
func TestBySymbols(t *testing.T) {
	m := machine.Build(machine.WindowsOdd)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, m.NT.Image.CodeView.PDB), m.KernelPDB().Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	b := m.Dump(machine.BitmapFull)
	res := checkKernel(t, nil, open(t, b, "MEMORY.DMP"), triage.Options{AllProcesses: true, Symbols: symbols.DirPath(dir)})
	if res.Threads < 10 {
		t.Errorf("%d threads: the symbols were not used", res.Threads)
	}
	gone(t, b, res.Kernel, "sort.exe", "MemCompression", `C:\Program Files\Acme\`)
}

// TestKernelAgain: there is nothing left to take out of a scrubbed dump.
func TestKernelAgain(t *testing.T) {
	m := machine.Build(machine.Windows22H2)
	b := m.Dump(machine.BitmapFull)
	whole := checkKernel(t, nil, open(t, b, "MEMORY.DMP"), triage.Options{})
	again := checkKernel(t, nil, open(t, whole.Kernel, "MEMORY.DMP"), triage.Options{})
	if len(again.Kernel) > len(whole.Kernel) {
		t.Errorf("%d bytes became %d", len(whole.Kernel), len(again.Kernel))
	}
}

// TestBrokenKernelDumps: whatever is broken in a dump, what is written has the same frames,
// or the result says which it has not.
func TestBrokenKernelDumps(t *testing.T) {
	for _, name := range []string{"readline/ConsoleApp1.Kernel.dmp", "bugcheck/faulty.dmp"} {
		whole, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(3, uint64(len(name))))
		same := 0
		for round := range 80 {
			b := slices.Clone(whole)
			for range 1 + rnd.IntN(12) {
				at := rnd.IntN(len(b) - 8)
				if rnd.IntN(2) == 0 {
					at = rnd.IntN(0x3000) // headers
				}
				for i := range 1 << rnd.IntN(4) {
					b[at+i] = byte(rnd.IntN(3) * rnd.IntN(256))
				}
			}
			in, err := input.New(bytes.NewReader(b), int64(len(b)), "broken.dmp", input.Options{})
			if err != nil {
				continue
			}
			d, err := triage.OpenInput(in)
			if err != nil {
				in.Close()
				continue
			}
			res, err := scrub.Dump(d, scrub.Options{})
			if err == nil && len(res.Differences) == 0 {
				want, got := kernelStacks(t, nil, d, triage.Options{}), kernelStacks(t, nil, open(t, res.Kernel, "small.dmp"), triage.Options{})
				if same++; !slices.Equal(want, got) {
					t.Errorf("%s, round %d: frames were\n%v\nare\n%v", name, round, want, got)
				}
			}
			d.Close()
		}
		t.Logf("%s: %d of 80 are scrubbed", name, same)
		if same < 40 {
			t.Errorf("%s: only %d of 80 are scrubbed", name, same)
		}
	}
}

// TestManyBlocks: data blocks that all lie on each other are a limit, and cost no time.
func TestManyBlocks(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "fixtures", "bugcheck", "faulty.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	const triageHeader, table, count = 0x2000, 0x78, 0x7c
	at, n := len(b), 50_000
	for i := range n {
		b = le.AppendUint64(b, 0xfffff80000000000+uint64(i))
		b = le.AppendUint32(le.AppendUint32(b, 0x2000), uint32(at-0x2000))
	}
	le.PutUint32(b[triageHeader+table:], uint32(at))
	le.PutUint32(b[triageHeader+count:], uint32(n))
	begun := time.Now()
	_, err = scrub.Dump(open(t, b, "many.dmp"), scrub.Options{})
	var e *dump.Error
	if !errors.As(err, &e) || e.Code != dump.Limit {
		t.Errorf("it gave %v", err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestKeepKernelNames keeps names of processes and threads for who wants them.
func TestKeepKernelNames(t *testing.T) {
	d := open(t, machine.Build(machine.Windows22H2).Dump(machine.BitmapFull), "MEMORY.DMP")
	res, err := scrub.Dump(d, scrub.Options{KeepNames: true, Triage: triage.Options{AllProcesses: true}})
	if err != nil || len(res.Differences) > 0 {
		t.Fatal(err, res.Differences)
	}
	names := func(d *triage.Dump) (out []string) {
		for _, p := range d.Processes() {
			out = append(out, p.Name)
		}
		for _, th := range d.Threads() {
			out = append(out, th.Name)
		}
		return out
	}
	want, got := names(d), names(open(t, res.Kernel, "small.dmp"))
	if !slices.Equal(want, got) || !slices.Contains(want, "sort.exe") || !slices.Contains(want, "reader") {
		t.Errorf("the names were %q and are %q", want, got)
	}
}

// TestKernelX86 scrubs small memory dumps of 32-bit systems, and dumps of one whose data
// block says nothing of offsets.
func TestKernelX86(t *testing.T) {
	for _, v := range []*machine.Variant{&machine.WindowsX86, &machine.WindowsPAE, &machine.WindowsXP} {
		m := machine.Build(*v)
		for name, b := range map[string][]byte{"triage": m.Triage(), "full": m.Dump(machine.Full)} {
			t.Run(v.Name+" "+name, func(t *testing.T) {
				checkKernel(t, nil, open(t, b, "MEMORY.DMP"), triage.Options{AllProcesses: true})
			})
		}
	}
}
