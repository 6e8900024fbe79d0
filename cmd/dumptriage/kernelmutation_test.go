package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dumptriage/fixtures/machine"
)

// machineVerbs are the command lines that read a dump of a whole system, without
// the file.
var machineVerbs = [][]string{
	{"info"}, {"processes", "--environment"}, {"threads"}, {"cpus"}, {"drivers"}, {"triage"}, {"memory"},
	{"stacks", "--all"}, {"stacks", "--process", "report", "--callbacks"}, {"modules", "--process", "report"},
	{"handles", "--process", "report"}, {"memory", "--va", "fffff8045de00000", "--length", "0x8000"},
	{"memory", "--process", "report"}, {"memory", "--process", "report", "--va", "1d5a2d40000", "--length", "0x9000"},
}

// machineMemory is what one command line may allocate in sum, above twice the
// file: an honest dump of the fixtures takes a quarter of it.
const machineMemory = 256 << 20

// damagedMachine is a dump of a whole system and where its parts are.
type damagedMachine struct {
	whole    []byte
	word     int   // size of a pointer
	pointers []int // offsets of words that look like kernel pointers
	tables   []int // offsets of pages that hold entries of page tables
	kdbg     int   // offset of KDDEBUGGER_DATA64
}

func newDamagedMachine(v *machine.Variant, kind machine.Kind) *damagedMachine {
	const header = 0x2000
	d := &damagedMachine{whole: machine.Build(*v).Dump(kind), word: 8}
	if v.Arch == machine.X86 {
		d.word = 4
	}
	for off := header; off+d.word <= len(d.whole); off += d.word {
		top := d.whole[off+d.word-1]
		if d.word == 8 && top == 0xff && d.whole[off+6] != 0 || d.word == 4 && top >= 0x80 && top < 0xff {
			d.pointers = append(d.pointers, off)
		}
	}
	for page := header; page+0x1000 <= len(d.whole); page += 0x1000 {
		entries := 0
		for off := page; off < page+0x1000; off += 8 {
			if e := le.Uint64(d.whole[off:]); e&1 != 0 && e>>40&0x7fff == 0 && e>>12 != 0 && e&0x60 != 0 {
				entries++
			}
		}
		if entries > 0 {
			d.tables = append(d.tables, page)
		}
	}
	d.kdbg = bytes.Index(d.whole, []byte("KDBG")) - 0x10
	return d
}

// damages are the ways in which a dump is damaged; each says what it did.
var damages = []struct {
	name string
	do   func(d *damagedMachine, r *rand.Rand, b []byte) []byte
}{
	{"cut", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }},
	{"cut near the header", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { return b[:r.IntN(0x6000)] }},
	{"header", func(d *damagedMachine, r *rand.Rand, b []byte) []byte {
		for range 1 + r.IntN(4) {
			at := r.IntN(0x2080) &^ (d.word - 1)
			d.put(b, at, edges[r.IntN(len(edges))])
		}
		return b
	}},
	{"pointers exchanged", func(d *damagedMachine, r *rand.Rand, b []byte) []byte {
		for range 1 << r.IntN(12) {
			d.copyWord(b, d.pointers[r.IntN(len(d.pointers))], d.pointers[r.IntN(len(d.pointers))])
		}
		return b
	}},
	{"cycles", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { // a third of all pointers lead to three places
		to := [3]int{}
		for i := range to {
			to[i] = d.pointers[r.IntN(len(d.pointers))]
		}
		for _, at := range d.pointers {
			if r.IntN(3) == 0 {
				d.copyWord(b, at, to[r.IntN(len(to))])
			}
		}
		return b
	}},
	{"tables exchanged", func(d *damagedMachine, r *rand.Rand, b []byte) []byte {
		for range 1 + r.IntN(8) {
			to, from := d.tables[r.IntN(len(d.tables))], d.tables[r.IntN(len(d.tables))]
			copy(b[to:to+0x1000], d.whole[from:])
		}
		return b
	}},
	{"one page everywhere", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { // a table whose entries are all the same
		for range 1 + r.IntN(4) {
			page := d.tables[r.IntN(len(d.tables))]
			from := page + r.IntN(0x200)*8
			for at := page; at < page+0x1000; at += 8 {
				copy(b[at:at+8], d.whole[from:])
			}
		}
		return b
	}},
	{"table entries", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { // valid, large, prototype, transition
		kinds := [...]uint64{0, 1, 0x81, 0x400, 0x800, 0xc00}
		for range 1 + r.IntN(64) {
			at := d.tables[r.IntN(len(d.tables))] + r.IntN(0x200)*8
			le.PutUint64(b[at:], r.Uint64()&^0xfff|kinds[r.IntN(len(kinds))])
		}
		return b
	}},
	{"KDBG", func(d *damagedMachine, r *rand.Rand, b []byte) []byte { // its 16-bit offsets and sizes
		values := [...]uint16{0, 1, 8, 0xff, 0x1ff8, 0x7fff, 0xffff}
		for range 1 + r.IntN(6) {
			le.PutUint16(b[d.kdbg+r.IntN(0x1c0)*2:], values[r.IntN(len(values))])
		}
		return b
	}},
	{"flips", func(d *damagedMachine, r *rand.Rand, b []byte) []byte {
		for range 1 << r.IntN(14) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return b
	}},
}

func (d *damagedMachine) put(b []byte, at int, v uint64) {
	if d.word == 4 {
		le.PutUint32(b[at:], uint32(v))
		return
	}
	le.PutUint64(b[at:], v)
}

func (d *damagedMachine) copyWord(b []byte, to, from int) {
	copy(b[to:to+d.word], d.whole[from:from+d.word])
}

// TestDamagedMachines gives damaged dumps of whole systems to the verbs that read
// them: every command line must end in time, within its memory, with a status that
// has a meaning and, asked for JSON, with JSON.
func TestDamagedMachines(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	r := rand.New(rand.NewPCG(3, 14))
	path := filepath.Join(t.TempDir(), "MEMORY.DMP")
	for _, seed := range []struct {
		variant *machine.Variant
		kind    machine.Kind
	}{{&machine.Windows22H2, machine.BitmapFull}, {&machine.WindowsLA57, machine.Full}, {&machine.WindowsPAE, machine.BitmapKernel}, {&machine.WindowsARM, machine.CompleteRange}} {
		d := newDamagedMachine(seed.variant, seed.kind)
		for _, damage := range damages {
			for range rounds {
				b := damage.do(d, r, slices.Clone(d.whole))
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				verb := machineVerbs[r.IntN(len(machineVerbs))]
				checkVerb(t, seed.variant.Name+", "+damage.name, append(slices.Clone(verb), path), len(b), r.IntN(2) == 0)
			}
		}
	}
}

func checkVerb(t *testing.T, what string, args []string, size int, asJSON bool) {
	t.Helper()
	if asJSON {
		args = append(args, "--json")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	var stdout, stderr bytes.Buffer
	status := run(args, &stdout, &stderr)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	line := strings.Join(args, " ")
	if !slices.Contains([]int{exitOK, exitFailed, exitPartial}, status) || strings.Contains(stderr.String()+stdout.String(), "goroutine ") {
		t.Errorf("%s: %s: status %d: %s", what, line, status, &stderr)
	}
	if asJSON && !json.Valid(stdout.Bytes()) {
		t.Errorf("%s: %s: not JSON: %.200s", what, line, &stdout)
	}
	if took > mutationTime {
		t.Errorf("%s: %s: took %v", what, line, took)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > machineMemory+2*uint64(size) {
		t.Errorf("%s: %s: allocated %d bytes for a file of %d", what, line, used, size)
	}
}
