package symbols

import (
	"strings"
	"testing"
)

// The whole forms of Itanium and Rust names are those of c++filt and of rustc's
// documentation of its mangling.
func TestExportName(t *testing.T) {
	for _, tc := range []struct{ raw, short, full string }{
		{"CreateFileW", "CreateFileW", ""},
		{"_exported@8", "_exported@8", ""}, // exported under that very name
		{"?run@Job@app@@QEAAHPEBD@Z", "app::Job::run", "public: int __cdecl app::Job::run(char const *)"},
		{"?x@@3HA", "x", "int x"},
		{"?broken@", "?broken@", ""},
		{"_ZN3app3Job3runEPKc", "app::Job::run", "app::Job::run(char const*)"},
		{"__ZN3app3Job3runEPKc", "app::Job::run", "app::Job::run(char const*)"},
		{"_Z3addIiET_S0_S0_", "add<int>", "int add<int>(int, int)"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo", ""},
		{"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place", ""},
		{"_RegisterThing", "_RegisterThing", ""},
		{"_Z", "_Z", ""},
		{"_RCC0", "_RCC0", ""}, // accepted, but names nothing
		{"_Z" + strings.Repeat("9", maxMangled), "_Z" + strings.Repeat("9", maxMangled), ""},
	} {
		if short, full := exportName(tc.raw); short != tc.short || full != tc.full {
			t.Errorf("%.60s: %q, %q; want %q, %q", tc.raw, short, full, tc.short, tc.full)
		}
	}
}

func TestLinkerName(t *testing.T) {
	for _, tc := range []struct {
		raw   string
		x86   bool
		short string
	}{
		{"_WinMain@16", true, "WinMain"},
		{"_main", true, "main"},
		{"_main", false, "_main"},
		{"?f@@YAXXZ", true, "f"},
	} {
		if short, _ := linkerName(tc.raw, tc.x86); short != tc.short {
			t.Errorf("%s: %q, want %q", tc.raw, short, tc.short)
		}
	}
}

func TestWithoutArguments(t *testing.T) {
	for name, want := range map[string]string{
		"main":                               "main",
		"f()":                                "f",
		"A::f(int, char const *) const":      "A::f",
		"A::f() const &":                     "A::f",
		"f(void (*)(int), int)":              "f",
		"A::operator()(int)":                 "A::operator()",
		"A::operator()":                      "A::operator()",
		"`anonymous namespace'::f()":         "`anonymous namespace'::f",
		"(anonymous namespace)":              "(anonymous namespace)",
		"ns::(anonymous namespace)":          "ns::(anonymous namespace)",
		"(anonymous namespace)::f(int)":      "(anonymous namespace)::f",
		"f(int)::{lambda(char)#1}":           "f(int)::{lambda(char)#1}",
		"unbalanced)":                        "unbalanced)",
		")":                                  ")",
		"":                                   "",
		"std::function<void (int)>":          "std::function<void (int)>",
		"call<void (*)(int)>(void (*)(int))": "call<void (*)(int)>",
	} {
		if got := withoutArguments(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzSourceName(f *testing.F) {
	for _, s := range []string{"A::f(int) const", "?f@@YAXXZ", "_Z1fv", "_RNvC1a1b", "operator()", "((("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		short, full := sourceName(raw)
		if (short == "") != (raw == "") || full == short && full != "" {
			t.Errorf("%q: %q, %q", raw, short, full)
		}
		linkerName(raw, true)
	})
}
