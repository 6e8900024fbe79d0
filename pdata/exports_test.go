package pdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"dumptriage/dump"
)

// parseExports reads the exports that llvm-readobj --coff-exports printed; it
// prints empty slots of the address table too, which are no exports.
func parseExports(out []byte) (all []Export) {
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		key, value, _ := strings.Cut(strings.TrimSpace(s.Text()), ": ")
		n, _ := strconv.ParseUint(value, 0, 32)
		if len(all) == 0 && key != "Export {" {
			continue
		}
		switch key {
		case "Export {":
			all = append(all, Export{})
		case "Ordinal":
			all[len(all)-1].Ordinal = uint32(n)
		case "Name":
			all[len(all)-1].Name = value
		case "RVA":
			all[len(all)-1].RVA = uint32(n)
		case "ForwardedTo":
			all[len(all)-1].Forwarder = value
		case "DebugDirectory [":
			return all
		}
	}
	return all
}

func byOrdinal(a, b Export) int { return int(a.Ordinal) - int(b.Ordinal) }

func listExports(t *testing.T, im *Image) (all []Export) {
	t.Helper()
	for e, err := range im.Exports() {
		if err != nil {
			t.Errorf("%s: %v", im.Name(), err)
			break
		}
		all = append(all, e)
	}
	return all
}

func TestFixtureExports(t *testing.T) {
	im := openTest(t, readTest(t, "testdata/fixture.dll"), "fixture.dll")
	want := slices.DeleteFunc(parseExports(readTest(t, "testdata/fixture.readobj.txt")), func(e Export) bool { return e.RVA == 0 && e.Forwarder == "" })
	if len(want) != 10 {
		t.Fatalf("golden has %d exports, want the ten of make.sh", len(want))
	}
	got := listExports(t, im)
	slices.SortFunc(got, byOrdinal)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-readobj +got):\n%s", d)
	}
}

// TestFixtureNearest has the addresses of fixture.readobj.txt: 0x1046 is
// frame_pointer, exported by three names; 0x1062 by number alone; .data begins
// at 0x3000 and is no code.
func TestFixtureNearest(t *testing.T) {
	im := openTest(t, readTest(t, "testdata/fixture.dll"), "fixture.dll")
	for _, tt := range []struct {
		rva  uint32
		want Symbol
	}{
		{0x0fff, Symbol{}},
		{0x1000, Symbol{"push_alloc_small", 0x1000}},
		{0x100f, Symbol{"push_alloc_small", 0x1000}},
		{0x1010, Symbol{"alloc_large_saves", 0x1010}},
		{0x1046, Symbol{"NtClose", 0x1046}},
		{0x1050, Symbol{"NtClose", 0x1046}},
		{0x105c, Symbol{"odd.name-1", 0x105c}},
		{0x1062, Symbol{"Ordinal20", 0x1062}},
		{0x1fff, Symbol{"Ordinal20", 0x1062}},
		{0x2000, Symbol{}},
		{0x3000, Symbol{}},
		{0xffffffff, Symbol{}},
	} {
		for range 2 { // the second time the preferred alias is remembered
			got, ok := im.NearestExport(tt.rva)
			if got != tt.want || ok != (tt.want != Symbol{}) {
				t.Errorf("NearestExport(%#x) = %v, %v; want %v", tt.rva, got, ok, tt.want)
			}
		}
	}
}

// The order in which names of one address are preferred.
func TestCompareNames(t *testing.T) {
	want := []string{"AclCopy", "NtClose", "RtlClose", "_open", "?close@@YAXXZ", "@fast@8", "_std@4", "ZwClose"}
	slices.SortFunc(want[4:7], strings.Compare)
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNames)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// exportPE builds an image with an export directory at 0x4000 of the given
// counts and tables: addresses at 0x4100, names at 0x4200, ordinals at 0x4300,
// strings from 0x4400 on.
func exportPE(functions, names uint32, addresses []uint32, nameRVAs []uint32, ordinals []uint16, text string) *peBuilder {
	data := make([]byte, 0x800)
	copy(data, u32s(0, 0, 0, 0x4400, 1, functions, names, 0x4100, 0x4200, 0x4300))
	copy(data[0x100:], u32s(addresses...))
	copy(data[0x200:], u32s(nameRVAs...))
	for i, o := range ordinals {
		binary.LittleEndian.PutUint16(data[0x300+2*i:], o)
	}
	copy(data[0x400:], text)
	p := newPE().add(0x1000, scnCode, make([]byte, 0x1000)).add(0x2000, scnCode, make([]byte, 0x1000)).add(0x4000, scnData, data)
	p.dirs[0] = [2]uint32{0x4000, 0x800}
	return p
}

func TestExportOddities(t *testing.T) {
	im := exportPE(4, 4, []uint32{0x1010, 0, 0x1020, 0x4410}, []uint32{0x4400, 0x4402, 0x4420, 0x9000}, []uint16{0, 7, 3, 2},
		"\xff\x00b\x00------------KERNEL32.Sleep\x00-fwd\x00").open(t)
	got := listExports(t, im)
	want := []Export{
		{Name: "\xff", Ordinal: 1, RVA: 0x1010},                // any byte may be in a name
		{Name: "fwd", Ordinal: 4, Forwarder: "KERNEL32.Sleep"}, // its address lies in the directory
		{Name: "", Ordinal: 3, RVA: 0x1020},                    // its name lies outside the image
	} // "b" has an index beyond the address table; address 0 is an empty slot
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s, ok := im.NearestExport(0x1015); !ok || s.Name != "\xff" {
		t.Errorf("%v %v", s, ok)
	}
	// The function at 0x1020 has a name, and it cannot be read: neither it nor
	// the one before it may lend a name to what follows.
	if s, ok := im.NearestExport(0x1025); ok {
		t.Errorf("unreadable name gave %v", s)
	}
	// No function spans two sections.
	if s, ok := im.NearestExport(0x2010); ok {
		t.Errorf("other section gave %v", s)
	}
}

// Counts are claims: the index holds what the image does, and says so.
func TestExportClaims(t *testing.T) {
	im := exportPE(0xffffffff, 0xffffffff, []uint32{0x1010}, []uint32{0x4400}, []uint16{0}, "f\x00").open(t)
	n, said := 0, false
	for _, err := range im.Exports() {
		if err != nil {
			wantCode(t, err, dump.BadCount)
			said = true
		} else {
			n++
		}
	}
	if !said || n > 0x2000 {
		t.Errorf("%d exports, error said: %v", n, said)
	}
	p := exportPE(1, 1, []uint32{0x1010}, []uint32{0x4400}, []uint16{0}, "f\x00")
	p.dirs[0][0] = 0x00800000
	for _, err := range p.open(t).Exports() {
		wantCode(t, err, dump.OutOfRange)
	}
}

// With a page of the name table missing, functions without a name found so far
// may have one: they are not called by their numbers.
func TestExportMissingNames(t *testing.T) {
	data := make([]byte, 0x2800)
	copy(data, u32s(0, 0, 0, 0, 1, 1, 1, 0x4100, 0x5000, 0x4300))
	copy(data[0x100:], u32s(0x1010))
	p := newPE().add(0x1000, scnCode, make([]byte, 0x1000)).add(0x4000, scnData, data)
	p.dirs[0] = [2]uint32{0x4000, 0x2800}
	mem := mapImage(p.bytes(), 0x10000)
	delete(mem, 0x15000)
	im, err := OpenMapped(mem, 0x10000, "x.dll")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := im.NearestExport(0x1010); ok {
		t.Errorf("got %v", s)
	}
}

// With a page of the address table missing, what is nearest cannot be told.
func TestExportMissingAddresses(t *testing.T) {
	data := make([]byte, 0x3000)
	copy(data, u32s(0, 0, 0, 0, 1, 0x420, 1, 0x4f80, 0x4100, 0x4180))
	copy(data[0x100:], u32s(0x4200)) // its name
	copy(data[0x200:], "f\x00")
	copy(data[0xf80:], u32s(0x1010, 0, 0x1018)) // the 0x420 addresses go on in the next page
	p := newPE().add(0x1000, scnCode, make([]byte, 0x1000)).add(0x4000, scnData, data)
	p.dirs[0] = [2]uint32{0x4000, 0x300}
	mem := mapImage(p.bytes(), 0x10000)
	if s, ok := p.open(t).NearestExport(0x1011); !ok || s.Name != "f" {
		t.Errorf("whole image: %v %v", s, ok)
	}
	delete(mem, 0x15000)
	im, err := OpenMapped(mem, 0x10000, "x.dll")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := im.NearestExport(0x1011); ok {
		t.Errorf("got %v", s)
	}
	var named []string
	for e, err := range im.Exports() {
		if err != nil {
			wantCode(t, err, dump.Truncated)
		}
		named = append(named, e.Name)
	}
	if !slices.Equal(named, []string{"f", "", ""}) {
		t.Errorf("listed %q: want the named one, one by number, and the error's empty one", named)
	}
}

// TestExportsReal checks the list of kernel32 by what is known of it: 1633
// exports, names sorted as the format demands.
func TestExportsReal(t *testing.T) {
	b := readTest(t, filepath.Join(needModuleImages(t), "kernel32.dll"))
	all := listExports(t, openTest(t, b, "kernel32.dll"))
	if len(all) != 1633 {
		t.Errorf("%d exports, want 1633", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b Export) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("names are not in order")
	}
}
