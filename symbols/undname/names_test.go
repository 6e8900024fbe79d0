package undname

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

type fact struct{ mangled, want string }

// readFacts reads what llvm-undname says of names.
func readFacts(tb testing.TB) []fact {
	tb.Helper()
	b, err := os.ReadFile("testdata/names.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	var facts []fact
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimRight(line, "\r\n"); line == "" || line[0] == '#' {
			continue
		}
		mangled, want, ok := strings.Cut(line, "\t")
		if !ok {
			tb.Fatalf("no tab in %q", line)
		}
		facts = append(facts, fact{mangled, want})
	}
	if len(facts) < 700 {
		tb.Fatalf("only %d names", len(facts))
	}
	return facts
}

func TestDemangle(t *testing.T) {
	for _, f := range readFacts(t) {
		if got, err := Demangle(f.mangled, Options{}); err != nil || got != f.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", f.mangled, got, err, f.want)
		}
	}
}

// What llvm-undname 19 does not read, or writes otherwise than Microsoft's own
// undname.
func TestDemangleBeyondLLVM(t *testing.T) {
	for _, f := range []fact{
		{"?f@?A0x1234@@YAXUB@1@@Z", "void __cdecl `anonymous namespace'::f(struct `anonymous namespace'::B)"},
		{"?f@@YA?A_PXZ", "auto __cdecl f(void)"},
		{"?f@@YA?A_TXZ", "decltype(auto) __cdecl f(void)"},
		{"?f@@YAX_L_M@Z", "void __cdecl f(__int128, unsigned __int128)"},
		{"?f@@YAXPE$AAVB@@@Z", "void __cdecl f(class B ^)"},
		{"?f@@YAXAE$AAVB@@@Z", "void __cdecl f(class B %)"},
		{".?AUL@?1??f@@YAXXZ@", "struct `void __cdecl f(void)'::`2'::L `RTTI Type Descriptor Name'"},
	} {
		if got, err := Demangle(f.mangled, Options{}); err != nil || got != f.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", f.mangled, got, err, f.want)
		}
	}
}

// The short form is the qualified name: no result, access, convention, arguments,
// also in the functions that a name lies in.
func TestNameOnly(t *testing.T) {
	for _, f := range []fact{
		{"?run@Job@app@@QEAAHPEBD@Z", "app::Job::run"},
		{"?x@A@@2HA", "A::x"},
		{"??0A@@QEAA@XZ", "A::A"},
		{"??1?$A@H@n@@UEAA@XZ", "n::A<int>::~A<int>"},
		{"??Bfoo@@QEAAHXZ", "foo::operator int"},
		{"??R<lambda_0>@?0??f@@YAXXZ@QEBA@H@Z", "`f'::`1'::<lambda_0>::operator()"},
		{"??__Ex@@YAXXZ", "`dynamic initializer for 'x''"},
		{"?foo@A@@W7EAAXXZ", "A::foo`adjustor{8}'"},
		{"??_7A@@6BB@@@", "A::`vftable'{for `B'}"},
		{"??_9A@@$BA@AE", "A::`vcall'{0, {flat}}"},
		{"?f@?A0x1234@@YAXXZ", "`anonymous namespace'::f"},
		{"??$f@P6AXH@Z@@YAXXZ", "f<void (__cdecl *)(int)>"},
	} {
		if got, err := Demangle(f.mangled, Options{NameOnly: true}); err != nil || got != f.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", f.mangled, got, err, f.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, name := range []string{
		"", "?", "??", "main", "f@@YAX", "?f@@YA_", "?f@@YAX0@Z", "?f@@YAP6AXH@Z", "?f@9@YAXXZ", "?f@@YAX", "?f@@YAXX",
		"?@@YAXXZ", "??_R0", "??_R1A@", "??_C@_2", "??_C@_03A@?$ZZ@", "??_C@_13A@a@", "??0@QEAA@XZ", "??$f@$0@@YAXXZ",
		"??$f@$0AAAAAAAAAAAAAAAAA@@@YAXXZ", "?x@@3YA@HA", "?x@@3YPPPPPPPP@HA", "??B@@YAXXZ1", "??__E?x@@3H", "??_A@@YAXXZ",
		"?x@@3W0E@@A", "?f@@YAX$$A7XZ@Z", "?f@@$6A@AXXZ", "??BA@@3HA", "??BA@@QEAA@XZ", "?f@@YXXXZ", "..?AVfoo@@", ".", "??@abc",
	} {
		got, err := Demangle(name, Options{})
		var e *Error
		if !errors.As(err, &e) || got != "" || e.Offset < 0 || e.Offset > len(name) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// Names that ask for too much are refused quickly.
func TestLimits(t *testing.T) {
	// Each argument is a function of two of the previous: 2^9 copies in a name
	// of 130 bytes, ten times over.
	doubling := "P6AXHH@Z"
	for i := range 9 {
		doubling += "P6AX" + strings.Repeat(string(rune('0'+i)), 8) + "@Z"
	}
	for _, tc := range []struct{ name, reason string }{
		{"?x@@3" + strings.Repeat("PA", 300) + "HA", reasonTooDeep},
		{"?f@@YAX" + strings.Repeat("V?$a@", 300), reasonTooDeep},
		{"?x@" + strings.Repeat("?1??x@", 300), reasonTooDeep},
		{"??$f@" + strings.Repeat("$1??$f@", 300), reasonTooDeep},
		{"?f@@YAX" + doubling + "@Z", reasonTooLarge},
		{"?" + strings.Repeat("a", maxInput) + "@@3HA", reasonTooLong},
	} {
		_, err := Demangle(tc.name, Options{})
		var e *Error
		if !errors.As(err, &e) || e.Reason != tc.reason {
			t.Errorf("%.40s...: %v, want %q", tc.name, err, tc.reason)
		}
	}
}

func TestUndecorate(t *testing.T) {
	for _, tc := range []struct {
		name string
		x86  bool
		want string
	}{
		{"_main", true, "main"},
		{"_main", false, "_main"},
		{"_WinMain@16", true, "WinMain"},
		{"@fast@8", true, "fast"},
		{"vec@@32", true, "vec"},
		{"vec@@32", false, "vec"},
		{"__imp__Sleep@4", true, "_imp__Sleep"},
		{"name@8", true, "name@8"},
		{"name@", true, "name@"},
		{"_", true, "_"},
		{"@@8", true, "@@8"},
		{"?f@@YAXXZ", true, "?f@@YAXXZ"},
		{"", true, ""},
	} {
		if got := Undecorate(tc.name, tc.x86); got != tc.want {
			t.Errorf("Undecorate(%q, %v) = %q, want %q", tc.name, tc.x86, got, tc.want)
		}
	}
}

// A name must not see what the one before it left in the working memory.
func TestReuse(t *testing.T) {
	facts := readFacts(t)
	for i, f := range facts {
		_, _ = Demangle(facts[len(facts)-1-i].mangled[:len(facts[len(facts)-1-i].mangled)/2], Options{})
		if got, _ := Demangle(f.mangled, Options{}); got != f.want {
			t.Errorf("%s after another: %s", f.mangled, got)
		}
	}
}

// Both forms from one reading are those of two.
func TestDemangleBoth(t *testing.T) {
	for _, f := range readFacts(t) {
		short, _ := Demangle(f.mangled, Options{NameOnly: true})
		if w, s, err := DemangleBoth(f.mangled); err != nil || w != f.want || s != short {
			t.Errorf("%s: %s, %s, %v", f.mangled, w, s, err)
		}
	}
	const name = "??R<lambda_0>@?0??f@@YAXXZ@QEBA@H@Z"
	const whole = "public: __cdecl `void __cdecl f(void)'::`1'::<lambda_0>::operator()(int) const"
	if w, s, err := DemangleBoth(name); err != nil || w != whole || s != "`f'::`1'::<lambda_0>::operator()" {
		t.Errorf("%s, %s, %v", w, s, err)
	}
	for _, bad := range []string{"", "main", "?", "?f@@YAX0@Z"} {
		var e *Error
		if w, s, err := DemangleBoth(bad); w != "" || s != "" || !errors.As(err, &e) {
			t.Errorf("%q: %q, %q, %v", bad, w, s, err)
		}
	}
}

func FuzzDemangle(f *testing.F) {
	for i, fact := range readFacts(f) {
		if i%5 == 0 {
			f.Add(fact.mangled)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, opt := range []Options{{}, {NameOnly: true}} {
			got, err := Demangle(name, opt)
			if (err == nil) != (got != "") {
				t.Errorf("%q: %q, %v", name, got, err)
			}
			if len(got) > 2*maxOutput {
				t.Errorf("%q: %d bytes", name, len(got))
			}
		}
		whole, short, err := DemangleBoth(name)
		if (err == nil) != (whole != "" && short != "") {
			t.Errorf("%q: %q, %q, %v", name, whole, short, err)
		}
		_ = Undecorate(name, true)
	})
}

// Names may be demangled by several goroutines at once.
func TestConcurrent(t *testing.T) {
	facts := readFacts(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, f := range facts {
				if got, _ := Demangle(f.mangled, Options{}); got != f.want {
					t.Errorf("%s: %s", f.mangled, got)
				}
			}
		})
	}
	wg.Wait()
}
