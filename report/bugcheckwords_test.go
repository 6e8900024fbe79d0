package report

import (
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage/bugcheck"
)

// bugCheckOf gives the incident of a bugcheck another code and parameters.
func bugCheckOf(t *testing.T, code uint32, parameters [4]uint64) (text string, doc any) {
	t.Helper()
	inc := bugCheckIncident()
	inc.BugCheck.Code, inc.BugCheck.Raw, inc.BugCheck.Parameters = code, code, parameters
	return renderText(t, inc, judged(inc)), validate(t, renderJSON(t, inc, judged(inc)))
}

// What is not documented is said not to be, in the text and in the JSON; nobody takes
// silence for a zero.
func TestUndocumentedParameters(t *testing.T) {
	const undocumented, none = "\nParameters: undocumented, no public description of them is known\nArg1: ", "\nParameters: none by the public reference\nArg1: "
	for _, c := range []struct {
		code  uint32
		first uint64
		text  string // that must be there
		not   string
		json  any
	}{
		{0x113, 0x19, undocumented, none, "undocumented"},
		{0x113, 0, undocumented, none, "undocumented"},
		{0x7777, 1, undocumented, none, "undocumented"},
		{0xe2, 1, none, undocumented, "none"},
		{0xe2, 0, "\nArg1: 0000000000000000\n", "Parameters:", "none"},
		{0x7e, 1, "\nArg1: ", "Parameters:", nil},
	} {
		text, doc := bugCheckOf(t, c.code, [4]uint64{c.first})
		if !strings.Contains(text, c.text) || strings.Contains(text, c.not) {
			t.Errorf("%#x, %d: want %q and not %q in\n%s", c.code, c.first, c.text, c.not, text)
		}
		checkAll(t, doc, map[string]any{"bugcheck.parameters_documented": c.json}, dotted)
	}
}

// Addresses and kinds in words.
func TestParameterWords(t *testing.T) {
	for _, c := range []struct {
		code       uint32
		parameters [4]uint64
		want       string
	}{
		{0x50, [4]uint64{0xffffffff00000090, 0, 0, 0xc}, "\nArg1: ffffffff00000090, address referenced, in kernel space\n"},
		{0x50, [4]uint64{0xffffffff00000090, 0, 0, 0xc}, "\nArg4: 000000000000000c, kind of page fault, a value that the public reference does not name\n"},
		{0xd1, [4]uint64{0, 2, 8, 0}, "\nArg1: 0000000000000000, address referenced, a null pointer\n"},
		{0xd1, [4]uint64{0x28, 0xd, 8, 0}, "\nArg1: 0000000000000028, address referenced, in the first 64 KB, as a null pointer and an offset give\nArg2: 000000000000000d, IRQL, CLOCK_LEVEL\n"},
		{0xa, [4]uint64{0x4141414141414141, 2, 0, 0}, ", address referenced, not canonical, as a damaged pointer is\n"},
		{0xa, [4]uint64{0x7ff600000000, 2, 0, 0}, ", address referenced, in user space\n"},
		{0x1e, [4]uint64{0xffffffffc0000005, 0, 0, ^uint64(0)}, "\nArg3: 0000000000000000, access, read\nArg4: ffffffffffffffff, address referenced, no address: a general protection fault reports it so\n"},
		{0x1f2, [4]uint64{0xffffa50d7d000000, 4, 0, 0x184}, ", access and shadow code, write, behind a global variable\n"},
		{0xea, [4]uint64{0, 0, 0, 1}, "\nArg2: 0000000000000000, deferred watchdog object\n"}, // none, which is nothing odd
	} {
		if text, _ := bugCheckOf(t, c.code, c.parameters); !strings.Contains(text, c.want) {
			t.Errorf("%#x: want %q in\n%s", c.code, c.want, text)
		}
	}
	_, doc := bugCheckOf(t, 0x50, [4]uint64{0xffffffff00000090, 0, 0, 0xc})
	checkAll(t, doc, map[string]any{"bugcheck.parameter_details.0.region": "kernel", "bugcheck.parameter_details.3.unnamed": true}, dotted)
}

// What an exception accessed, where it has that (winnt.h: the kind of access, then the
// address; of a page that could not be read the status too).
func TestAccessWords(t *testing.T) {
	for _, c := range []struct {
		code       uint32
		parameters []uint64
		want       string
	}{
		{0xc0000005, []uint64{1, 0x28}, "writing 00000000`00000028, in the first 64 KB, as a null pointer and an offset give"},
		{0xc0000006, []uint64{0, 0xffff800000001000, 0xc000009c}, "reading ffff8000`00001000, in kernel space"},
		{0xc0000005, []uint64{8, 0}, "executing 00000000`00000000, a null pointer"},
		{0xc0000005, []uint64{5, 0x28}, ""},
		{0xc0000005, nil, ""},
		{0x80000003, []uint64{1, 0x28}, ""},
	} {
		w := &text{arch: dump.AMD64}
		if got := w.accessWords(&dump.Exception{Code: c.code, Parameters: c.parameters}); got != c.want {
			t.Errorf("%#x %#x: %q, want %q", c.code, c.parameters, got, c.want)
		}
	}
}

func TestStackUseWords(t *testing.T) {
	if got := stackUseWords(nil); got != "" {
		t.Errorf("%q", got)
	}
	if got := stackUseWords(&bugcheck.StackUse{Size: 0x6000, Left: -160, Overflow: true}); got != "overflowed, the stack pointer is 160 bytes beyond the 24 KB" {
		t.Errorf("%q", got)
	}
	if got := stackUseWords(&bugcheck.StackUse{Size: 0x6000, Left: 0x5000}); got != "20480 bytes left of 24 KB" {
		t.Errorf("%q", got)
	}
}
