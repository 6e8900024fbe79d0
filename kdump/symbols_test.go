package kdump

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
)

// machineSymbols are the types and globals that the machine's writer laid out.
type machineSymbols struct {
	sizes   map[string]int
	fields  map[string]int
	bits    map[string][2]int
	globals map[string]uint32
}

func symbolsOf(m *machine.Machine) *machineSymbols {
	s := &machineSymbols{map[string]int{}, map[string]int{}, map[string][2]int{}, m.Globals()}
	for _, t := range m.Types() {
		s.sizes[t.Name] = int(t.Size)
		for _, f := range t.Members {
			if f.Bits != 0 {
				s.bits[t.Name+"."+f.Name] = [2]int{8*int(f.Offset) + int(f.First), int(f.Bits)}
				continue
			}
			s.fields[t.Name+"."+f.Name] = int(f.Offset)
		}
	}
	s.fields["_KTHREAD.ApcState.Process"] = s.fields["_KTHREAD.ApcState"] + s.fields["_KAPC_STATE.Process"]
	return s
}

func (s *machineSymbols) Size(structure string) (int, bool) {
	v, ok := s.sizes[structure]
	return v, ok
}

func (s *machineSymbols) Field(structure, field string) (int, bool) {
	v, ok := s.fields[structure+"."+field]
	return v, ok
}

func (s *machineSymbols) Bits(structure, field string) (first, width int, ok bool) {
	v, ok := s.bits[structure+"."+field]
	return v[0], v[1], ok
}

func (s *machineSymbols) Symbol(name string) (uint32, bool) {
	v, ok := s.globals[name]
	return v, ok
}

func openWith(t *testing.T, b []byte, s Symbols) *File {
	t.Helper()
	f, err := OpenWith(bytes.NewReader(b), int64(len(b)), "test.dmp", Options{Symbols: func(nt *dump.Module) Symbols {
		if !strings.EqualFold(nt.CodeView.PDB, "ntkrnlmp.pdb") {
			t.Errorf("symbols of %+v are asked for", nt)
		}
		return s
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSymbolsLead reads a kernel of which no table has the layout, without its
// data block: types and symbols alone lead to everything.
func TestSymbolsLead(t *testing.T) {
	m := machine.Build(machine.WindowsOdd)
	b := m.Dump(machine.BitmapFull)
	if f := openBytes(t, b); len(f.Processes()) != 0 || f.KDBGFound() != "" {
		t.Fatalf("without symbols there are %d processes, by %q, %q", len(f.Processes()), f.KDBGFound(), f.Layout())
	}
	f := openWith(t, b, symbolsOf(m))
	if f.KDBGFound() != "types" || f.Layout() != "symbols" {
		t.Errorf("data block by %q, offsets by %q", f.KDBGFound(), f.Layout())
	}
	checkMachineProcesses(t, "symbols", f, m, true)
	checkMachineThreads(t, "symbols", f, m)
	checkMachineModules(t, "symbols", f, m)
	if len(f.CPUs()) != len(m.CPUs) {
		t.Errorf("%d processors, want %d", len(f.CPUs()), len(m.CPUs))
	}
	for _, e := range f.Damage() {
		if !e.Warning {
			t.Errorf("damage: %v", e)
		}
	}
}

// TestSymbolsFindBlock: the header names another place, the symbols the right one.
func TestSymbolsFindBlock(t *testing.T) {
	for _, encoded := range []bool{false, true} {
		v := machine.Windows22H2
		v.Encoded = encoded
		m := machine.Build(v)
		m.Debugger += 0x100000 // for the header alone
		f := openWith(t, m.Dump(machine.BitmapFull), symbolsOf(m))
		want := map[bool]string{false: "symbols", true: "symbols, decoded"}[encoded]
		if f.KDBGFound() != want || f.Layout() != "symbols" {
			t.Errorf("data block by %q, want %q; offsets by %q", f.KDBGFound(), want, f.Layout())
		}
		checkMachineProcesses(t, want, f, m, true)
		checkMachineThreads(t, want, f, m)
	}
}

// TestSymbolsOfAnother are of a kernel with other structures: they are refused
// with a word, and the table of the build serves.
func TestSymbolsOfAnother(t *testing.T) {
	m, other := machine.Build(machine.Windows22H2), machine.Build(machine.WindowsOdd)
	f := openWith(t, m.Dump(machine.BitmapFull), symbolsOf(other))
	if f.KDBGFound() != "header" || f.Layout() != "table" {
		t.Errorf("data block by %q, offsets by %q", f.KDBGFound(), f.Layout())
	}
	checkMachineProcesses(t, "other", f, m, true)
	if !slices.ContainsFunc(f.Damage(), func(e *dump.Error) bool { return e.Code == dump.Mismatch && strings.Contains(e.Msg, "0xa40") }) {
		t.Errorf("damage %v", f.Damage())
	}
}

// TestSymbolsWithoutTypes: a stripped PDB has public symbols alone.
func TestSymbolsWithoutTypes(t *testing.T) {
	m := machine.Build(machine.Windows24H2)
	m.Debugger += 0x100000
	s := symbolsOf(m)
	s.sizes, s.fields = nil, nil
	f := openWith(t, m.Dump(machine.BitmapFull), s)
	if f.KDBGFound() != "symbols" || f.Layout() != "table" {
		t.Errorf("data block by %q, offsets by %q", f.KDBGFound(), f.Layout())
	}
	checkMachineProcesses(t, "stripped", f, m, true)
}

// liar is debug information that says anything.
type liar struct{ r *rand.Rand }

func (l liar) Size(string) (int, bool) {
	return []int{-1, 0, 8, 0x900, 0xa40, 0x4000, 1 << 40}[l.r.IntN(7)], l.r.IntN(8) > 0
}

func (l liar) Field(string, string) (int, bool) {
	return []int{-8, 0, l.r.IntN(0x1000), l.r.IntN(0x1000) &^ 7, 0x7fffffff, -1 << 63}[l.r.IntN(6)], l.r.IntN(8) > 0
}

func (l liar) Bits(string, string) (first, width int, ok bool) {
	return []int{-1, 0, 7, 31, 40, 1 << 40}[l.r.IntN(6)], []int{0, 1, 3, 5, 31, 64, 99}[l.r.IntN(7)], l.r.IntN(8) > 0
}

func (l liar) Symbol(string) (uint32, bool) { return l.r.Uint32(), l.r.IntN(4) > 0 }

// TestLyingSymbols: whatever symbols say, dumps with and without a data block are
// read without a panic and in bounded time, and with one its processes are found.
func TestLyingSymbols(t *testing.T) {
	odd, known := machine.Build(machine.WindowsOdd), machine.Build(machine.Windows22H2)
	without, with := odd.Dump(machine.BitmapKernel), known.Dump(machine.BitmapKernel)
	for seed := range uint64(60) {
		for _, b := range [][]byte{without, with} {
			f := openWith(t, b, liar{rand.New(rand.NewPCG(seed, 1))})
			f.Threads()
			f.Modules()
			f.CPUs()
			f.Process()
			for i := range f.Processes() {
				v := f.View(&f.Processes()[i])
				v.Modules()
				v.VADs()
			}
			if n := len(f.Processes()); &b[0] == &with[0] && n < len(known.Processes) {
				t.Errorf("seed %d: %d processes", seed, n)
			}
		}
	}
}
