package managed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/dump"
)

const compact = `{"version":0,"baseline":"empty","unknown":{"x":[1,2]},
"types":{"Thread":{"Id":16,"LinkNext":[120,"pointer"],"!":600},"Odd":{"A":"0x10","B":"12","C":null,"D":-1,"E":{"x":1}}},
"globals":{"Bits":["0xc","uint8"],"Plain":7,"Ten":["10","uint32"],"Place":[[2],"pointer"],"Far":[[9],"pointer"],"System":["windows","string"]},
"contracts":{"Thread":1,"ExecutionManager":"c1"}}`

func TestParseDescriptor(t *testing.T) {
	l, err := parseDescriptor([]byte(compact), 8, []uint64{0, 0x111, 0x222})
	if l == nil || dump.AsError(err).Code != dump.BadRecord || !strings.Contains(err.Error(), "no numbers: Far, Odd.C, Odd.D and 1 more") {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		typ, field string
		want       uint64
		ok         bool
	}{
		{"Thread", "Id", 16, true}, {"Thread", "LinkNext", 120, true}, {"Thread", "!", 0, false}, {"Odd", "A", 16, true}, {"Odd", "B", 12, true},
		{"Odd", "C", 0, false}, {"Odd", "D", 0, false}, {"Odd", "E", 0, false}, {"None", "A", 0, false},
	} {
		if off, ok := l.offset(tc.typ, tc.field); off != tc.want || ok != tc.ok {
			t.Errorf("%s.%s: %d, %v; want %d, %v", tc.typ, tc.field, off, ok, tc.want, tc.ok)
		}
	}
	if l.types["Thread"].size != 600 {
		t.Errorf("size %d", l.types["Thread"].size)
	}
	for name, want := range map[string]uint64{"Bits": 12, "Plain": 7, "Ten": 10, "Place": 0x222, "Far": 99, "None": 99} {
		if got := l.number(name, 99); got != want {
			t.Errorf("global %s is %#x, want %#x", name, got, want)
		}
	}
	if l.globals["System"].text != "windows" || l.contracts["Thread"] != "1" || l.contracts["ExecutionManager"] != "c1" {
		t.Errorf("%+v, %+v", l.globals["System"], l.contracts)
	}
	for _, bad := range []string{"", "{", "\x00", "null", "[]", "7", "{}", `{"types":[]}`, `{"types":null}`, `{"types":{}}`, `{"types":{"Thread":7}}`} {
		if _, err := parseDescriptor([]byte(bad), 8, nil); dump.AsError(err).Code != dump.BadRecord || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// describe writes the descriptor's structure for pointers of a size.
func describe(pointer int) memory {
	b := make([]byte, 64)
	put(b, 0, descriptorMagic)
	put32(b, 8, 1)
	put32(b, 12, uint32(len(compact)))
	slots := make([]byte, 3*pointer)
	if pointer == 8 {
		put(b, 16, 0x2000)
		put32(b, 24, 3)
		put(b, 32, 0x4000)
		put(slots, 8, 0x111, 0x222)
	} else {
		put32(b, 8, 3)
		put32(b, 16, 0x2000)
		put32(b, 20, 3)
		put32(b, 28, 0x4000)
		put32(slots, 4, 0x111)
		put32(slots, 8, 0x222)
	}
	return memory{0x1000: b, 0x2000: []byte(compact), 0x4000: slots}
}

func TestReadDescriptor(t *testing.T) {
	for _, pointer := range []int{4, 8} {
		mem := describe(pointer)
		l, err := readDescriptor(&hostMemory{mem: mem}, 0x1000)
		if l == nil || l.pointer != pointer || l.number("Place", 0) != 0x222 {
			t.Fatalf("%d bytes: %+v, %v", pointer, l, err)
		}
		for gone, b := range mem {
			delete(mem, gone)
			if _, err := readDescriptor(&hostMemory{mem: mem}, 0x1000); dump.AsError(err).Code != dump.OutOfRange {
				t.Errorf("without the bytes at %#x: %v", gone, err)
			}
			mem[gone] = b
		}
	}
	mem := describe(8)
	put32(mem[0x1000], 12, 1<<31)
	if _, err := readDescriptor(&hostMemory{mem: mem}, 0x1000); dump.AsError(err).Code != dump.BadCount {
		t.Errorf("2 GiB of JSON: %v", err)
	}
	put(mem[0x1000], 0, 1)
	if _, err := readDescriptor(&hostMemory{mem: mem}, 0x1000); dump.AsError(err).Code != dump.BadRecord {
		t.Errorf("another magic: %v", err)
	}
}

// TestRealDescriptor reads the descriptor of a real runtime, and the fixture's offsets
// are its.
func TestRealDescriptor(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "cdac-win-x64-10.0.9.json"))
	if err != nil {
		t.Skip("no descriptor of a real runtime beside the project")
	}
	if !json.Valid(b) {
		t.Fatal("no JSON")
	}
	l, err := parseDescriptor(b, 8, make([]uint64, 25))
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range tenLayout().types {
		for field, want := range typ.fields {
			if off, ok := l.offset(name, field); !ok || off != want {
				t.Errorf("%s.%s lies at %d (%v), the tests' process has it at %d", name, field, off, ok, want)
			}
		}
	}
	for name, want := range codeHeapTypes {
		for field, off := range want.fields {
			if got, ok := l.offset(name, field); !ok || got != off {
				t.Errorf("%s.%s lies at %d, not at %d as in all versions", name, field, got, off)
			}
		}
	}
}

func FuzzDescriptor(f *testing.F) {
	f.Add([]byte(compact))
	f.Add([]byte(`{"types":{"A":{"B":[]}},"globals":{"C":[[]]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := parseDescriptor(b, 8, []uint64{1}); err == nil {
			l.offset("A", "B")
		}
	})
}
