package codes

import (
	"path/filepath"
	"testing"
)

// Every code is documented, has no parameters, or is marked as undocumented: none
// says nothing by oversight.
func TestEveryBugCheckIsMarked(t *testing.T) {
	rows, err := readTable(filepath.Join("tables", "bugchecks.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		marks := 0
		for _, is := range []bool{r.params != [4]Param{}, r.none, r.undocumented} {
			if is {
				marks++
			}
		}
		if marks != 1 {
			t.Errorf("%#x: parameters %+v, none %v, undocumented %v", r.code, r.params, r.none, r.undocumented)
		}
	}
}

// What the pages of these codes say.
func TestBugCheckDocumented(t *testing.T) {
	for code, want := range map[uint32]Documentation{
		0x2:        Undocumented, // no word on parameters
		0x113:      Undocumented,
		0x168:      Undocumented, // a table with empty cells
		0xe2:       NoParameters,
		0x161:      NoParameters,
		0x1ce:      NoParameters,
		0xc0000221: NoParameters,
		0xa:        Documented,
		0x1000007e: Documented, // the minidump bit
		0x1df:      Documented,
		0x1ed:      Documented, // all four are reserved
		0x7777:     Undocumented,
	} {
		if got := BugCheckDocumented(code); got != want {
			t.Errorf("%#x: %q, want %q", code, got, want)
		}
	}
}

// Kinds of violations that Driver Verifier's two pages name, with what their
// parameters are: of pool, of locks, of handles, of interrupts, of IRPs, of rules.
func TestVerifierKinds(t *testing.T) {
	for _, c := range []struct {
		code      uint32
		first     uint64
		parameter int
		kind      ParamKind
	}{
		{0xc4, 0x35, 1, KindIRQL}, {0xc4, 0x3d, 3, KindAddress}, {0xc4, 0x71, 3, KindProcess}, {0xc4, 0xa1, 2, KindDevice},
		{0xc4, 0xc1, 1, KindCode}, {0xc4, 0xda, 2, KindCode}, {0xc4, 0xe2, 1, KindIRP}, {0xc4, 0xe6, 2, KindIRQL},
		{0xc4, 0xf6, 2, KindProcess}, {0xc4, 0xf6, 3, KindCode}, {0xc4, 0xfa, 3, KindIRQL}, {0xc4, 0x111, 1, KindCode},
		{0xc4, 0x115, 1, KindThread}, {0xc4, 0x135, 2, KindDecimal}, {0xc4, 0x1004, 2, KindThread}, {0xc4, 0x2000, 1, KindDriver},
		{0xc4, 0x20003, 1, KindText}, {0xc4, 0x9400c, 1, KindText},
		{0xc9, 0x226, 1, KindCode}, {0xc9, 0x310, 2, KindIRP},
	} {
		values := [4]uint64{c.first}
		params, unverified := BugCheckParams(c.code, values)
		if v, ok := BugCheckValueOf(c.code, 0, values); !ok || v.Text == "" || params[c.parameter].Kind != c.kind || unverified {
			t.Errorf("%#x, %#x: %q, parameter %d %+v", c.code, c.first, v.Text, c.parameter+1, params[c.parameter])
		}
	}
	if _, ok := BugCheckValueOf(0xc4, 0, [4]uint64{0x9999}); ok {
		t.Error("a kind that no page names has a name")
	}
}

// The pages of newer codes.
func TestNewerBugChecks(t *testing.T) {
	for _, c := range []struct {
		code   uint32
		values [4]uint64
		want   [4]ParamKind
	}{
		{0x92, [4]uint64{}, [4]ParamKind{KindCode}},
		{0xbd, [4]uint64{1, 8, 4}, [4]ParamKind{KindSub, KindDecimal, KindDecimal}},
		{0x16f, [4]uint64{}, [4]ParamKind{KindDecimal, KindDecimal, KindValue}},
		{0x1de, [4]uint64{3}, [4]ParamKind{KindSub, KindDecimal, KindDecimal}},
		{0x1de, [4]uint64{1}, [4]ParamKind{KindSub, KindIRQL}},
		{0x1df, [4]uint64{}, [4]ParamKind{KindAddress, KindNumber, KindDecimal, KindDecimal}},
		{0x1e9, [4]uint64{}, [4]ParamKind{KindDevice}},
		{0x1ea, [4]uint64{}, [4]ParamKind{KindNumber, KindNumber, KindNumber, KindCode}},
		{0x1f2, [4]uint64{}, [4]ParamKind{KindAddress, KindDecimal, KindCode, KindKASAN}},
		{0xef, [4]uint64{0, 0}, [4]ParamKind{KindProcess, KindValue}},
		{0xef, [4]uint64{0, 1}, [4]ParamKind{KindThread, KindValue}},
		// An access violation has the kind of access and the address, by winnt.h.
		{0x1e, [4]uint64{0xffffffffc0000005, 0, 1, 0x18}, [4]ParamKind{KindStatus, KindCode, KindValue, KindAddress}},
		{0x1e, [4]uint64{0xffffffff80000003}, [4]ParamKind{KindStatus, KindCode}},
	} {
		params, _ := BugCheckParams(c.code, c.values)
		for i, p := range params {
			if p.Kind != c.want[i] {
				t.Errorf("%#x %#x: parameter %d is %+v, want %q", c.code, c.values, i+1, p, c.want[i])
			}
		}
	}
	if v, ok := BugCheckValueOf(0x1e, 2, [4]uint64{0xffffffffc0000005, 0, 1, 0x18}); !ok || v.Text != "write" {
		t.Errorf("0x1e: %+v", v)
	}
	// A breakpoint accesses nothing.
	if _, ok := BugCheckValueOf(0x1e, 2, [4]uint64{0xffffffff80000003, 0, 1, 0x18}); ok {
		t.Error("a breakpoint has a kind of access")
	}
}

// The example and the table of the public page on the kernel's address sanitizer.
func TestKASAN(t *testing.T) {
	for v, want := range map[uint64]string{
		0x184: "write, behind a global variable",
		0x087: "read, freed memory",
		0x18d: "write, before a pool block",
		0x003: "read, behind the 3 valid bytes of 8",
		0x0ff: "read, shadow code 0xff",
	} {
		if got := KASAN(v); got != want {
			t.Errorf("%#x: %q, want %q", v, got, want)
		}
	}
}

// The levels of wdm.h for AMD64 and for x86.
func TestIRQL(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		size int
		want string
	}{
		{0, 8, "PASSIVE_LEVEL"}, {1, 4, "APC_LEVEL"}, {2, 8, "DISPATCH_LEVEL"}, {6, 8, "of a device"}, {13, 8, "CLOCK_LEVEL"}, {14, 8, "IPI_LEVEL"},
		{15, 8, "HIGH_LEVEL"}, {16, 8, ""}, {0xff, 8, ""}, {13, 4, "of a device"}, {28, 4, "CLOCK_LEVEL"}, {29, 4, "IPI_LEVEL"}, {31, 4, "HIGH_LEVEL"}, {32, 4, ""},
	} {
		if got := IRQL(c.n, c.size); got != c.want {
			t.Errorf("IRQL %d, pointers of %d bytes: %q, want %q", c.n, c.size, got, c.want)
		}
	}
}

// The page of 0x7F: a double fault is a stack overflow or hardware, a division by zero
// an instruction of somebody.
func TestBugCheckTextOfKind(t *testing.T) {
	divide, double, other := BugCheckTextOf(0x7f, 0), BugCheckTextOf(0x1000007f, 8), BugCheckTextOf(0x7f, 0xd)
	if divide.Class != ClassDriver || double.Class != ClassHardware || other.Class != ClassHardware {
		t.Errorf("%q, %q, %q", divide.Class, double.Class, other.Class)
	}
	// An exception's code is sign-extended in most dumps, and not in all.
	for _, status := range []uint64{0xc0000006, 0xffffffffc0000006} {
		if page := BugCheckTextOf(0x1000007e, status); page.Class != ClassStorage {
			t.Errorf("a page that could not be read: %+v", page)
		}
	}
	if access := BugCheckTextOf(0x7e, 0xffffffffc0000005); access.Class != ClassDriver {
		t.Errorf("an access violation: %+v", access)
	}
	if double.Steps[0] == other.Steps[0] || len(BugCheckTextOf(0x7777, 0).Steps) == 0 {
		t.Errorf("%q, %q", double.Steps, other.Steps)
	}
}
