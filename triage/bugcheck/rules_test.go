package bugcheck

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"dumptriage/report/codes"
	"dumptriage/triage/rules"
)

// Roles of modules, each with a neighbour that must stay blamable.
func TestRoles(t *testing.T) {
	r := builtIn()
	for image, want := range map[string]role{
		"ntoskrnl.exe": roleKernel, "ntkrla57.exe": roleKernel, "hal.dll": roleKernel, "dump_stornvme.sys": roleKernel, "kdcom.dll": roleKernel,
		"Wdf01000.sys": roleFramework, "ndis.sys": roleFramework, "NTFS.sys": roleFramework, "win32kbase.sys": roleFramework, "FLTMGR.SYS": roleFramework,
		"amdppm.sys": roleDriver, "ntfilter.sys": roleDriver, "halo.sys": roleDriver, "ndisrd.sys": roleDriver, "cifilter.sys": roleDriver, "nvlddmkm.sys": roleDriver,
	} {
		if got := r.role(rules.Module(image), ""); got != want {
			t.Errorf("%s has the role %d, want %d", image, got, want)
		}
	}
}

// named reports whether the first parameter of a bugcheck may tell such a kind, or such an
// exception.
func named(name string, value uint64) bool {
	for code := range uint32(0x3000) {
		if n, _, _ := codes.BugCheck(code); n == name {
			_, ok := codes.BugCheckValueOf(code, 0, [4]uint64{value})
			return ok || codes.FastFail(uint32(value)) != "" || codes.NTStatus(uint32(value)) != ""
		}
	}
	return false
}

// Every bugcheck that a rule names is one, and every step of the ladder is there.
func TestRulesNameWhatThereIs(t *testing.T) {
	list, err := rules.Parse("blame.rules", blameText, rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, code := range []uint32{0x20001, 0xc000021a, 0xc0000221} { // those far from the others
		name, _, _ := codes.BugCheck(code)
		names[name] = true
	}
	for code := range uint32(0x3000) {
		name, _, _ := codes.BugCheck(code)
		names[name] = true
	}
	n := 0
	for _, r := range list {
		switch r.Section {
		case "bugcheck":
			name, kind, special := strings.Cut(r.Pattern.Function(), "/")
			if value, err := strconv.ParseUint(kind, 16, 64); special && (err != nil || !named(name, value)) {
				t.Errorf("%s: %s has no kind %q", r.String(), name, kind)
			}
			if !names[name] {
				t.Errorf("%s: no bugcheck is called %s", r.String(), r.Pattern.Function())
			}
		case "ladder":
			n++
		}
	}
	if n != len(steps) {
		t.Errorf("the ladder has %d of %d steps", n, len(steps))
	}
}

func TestUsersRules(t *testing.T) {
	parse := func(text string) []rules.Rule {
		list, err := rules.Parse("x", text, rules.ParseOptions{Sections: Sections, Keys: Keys})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	r, err := NewRules(parse("[framework]\nacme*!*\n[ladder]\nframe confidence=low\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.role("acmefilt", "") != roleFramework || len(r.ladder) != 1 {
		t.Errorf("%d steps, role %d", len(r.ladder), r.role("acmefilt", ""))
	}
	for _, text := range []string{"[ladder]\nguess confidence=low\n", "[ladder]\nframe confidence=sure\n", "[bugcheck]\nX blame=microsoft\n", "[bugcheck]\nX cap=none\n"} {
		_, err := NewRules(parse(text))
		var e *rules.Error
		if !errors.As(err, &e) || e.Line != 2 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPoolTag(t *testing.T) {
	for v, want := range map[uint32]string{0x656c6946: "File", 0x20206f49: "Io  ", 0x01020304: "", 0: ""} {
		if got := poolTag(v); got != want {
			t.Errorf("%#x is %q, want %q", v, got, want)
		}
	}
}
