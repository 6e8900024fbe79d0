package report

import (
	"bytes"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
)

// TestCPUHalves: of what a processor was running, either half may be known without the
// other.
func TestCPUHalves(t *testing.T) {
	half := func(ip uint64) *triage.Half {
		h := &triage.Half{}
		h.Registers.Arch = dump.AMD64
		h.Frames = make([]triage.Frame, 1)
		h.Frames[0].IP = ip
		return h
	}
	const kernel, user = 0xfffff80012345678, 0x00007ffe12345678
	for _, tc := range []struct {
		kernel, user *triage.Half
		want         []string
	}{
		{half(kernel), half(user), []string{"0xfffff800`12345678", "0x00007ffe`12345678"}},
		{half(kernel), nil, []string{"0xfffff800`12345678"}},
		{nil, half(user), []string{"no kernel half", "0x00007ffe`12345678"}},
		{nil, nil, []string{"its registers are not in the dump"}},
	} {
		inc := &triage.Incident{Crashing: -1}
		inc.System.Arch = dump.AMD64
		inc.Threads = []triage.Thread{{Kernel: tc.kernel, User: tc.user, Stitched: tc.user != nil, KernelInfo: &dump.KernelThread{}}}
		inc.CPUs = []triage.CPU{{Thread: 0, Kernel: tc.kernel, User: tc.user}}
		var out bytes.Buffer
		if err := CPUsText(&out, inc, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, w := range tc.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is not in:\n%s", w, &out)
			}
		}
		out.Reset()
		if err := CPUsJSON(&out, inc, Options{}); err != nil || !strings.Contains(out.String(), `"cpus":`) {
			t.Errorf("%v, %s", err, &out)
		}
	}
}
