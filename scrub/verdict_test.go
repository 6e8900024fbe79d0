package scrub_test

import (
	"bytes"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
	"dumptriage/scrub"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/verdict"
)

// judged is what has to come out of a scrubbed dump, as the verb scrub asks it.
func judged(inc *triage.Incident) string {
	v := verdict.Of(inc, verdict.Options{OneProcess: true})
	if v.BugCheck == nil || v.Signature == nil {
		return ""
	}
	b := &v.BugCheck.Blame
	return strings.Join([]string{v.Signature.Text, string(b.Culprit), b.Name, string(b.Step), b.Confidence}, " ")
}

// scrubJudged scrubs a kernel dump with its verdict and returns both.
func scrubJudged(t *testing.T, b []byte, names bool) (now []byte, verdict string) {
	t.Helper()
	var first string
	res, err := scrub.Dumps(nil, open(t, b, "MEMORY.DMP"), "", scrub.Options{KeepNames: names, Judge: func(inc *triage.Incident) string {
		s := judged(inc)
		if first == "" {
			first = s
		}
		return s
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range res.Differences {
		t.Errorf("differs: %v", x)
	}
	return res.Kernel, first
}

// TestVerdictScenes: whatever a bugcheck's parameters lead to, the verdict comes out the
// same, and texts that it does not rest on, or that lie behind those, stay behind.
func TestVerdictScenes(t *testing.T) {
	texts := map[string][]string{
		"object_died": {"behind the text", "ann@example.com", "behind the message"},
		"verifier":    {"behind the text", "ann@example.com"},
		"power":       {"3&11583659&0&42"}, // it ends the name of a device, as a serial number does
	}
	for name, d := range fixtures.BugCheckScenes() {
		t.Run(name, func(t *testing.T) {
			small, was := scrubJudged(t, d.Dump, name == "process_died" || name == "thread_died") // whose names their verdicts say
			if was == "" {
				t.Error("no verdict: the test shows nothing")
			}
			gone(t, d.Dump, small, texts[name]...)
		})
	}
}

// TestErrorRecordIdentities plants marks where an error record tells of the machine: its
// platform, partition and creator, the record's id, parts to replace, serial numbers.
func TestErrorRecordIdentities(t *testing.T) {
	b := bytes.Clone(fixtures.BugCheckScenes()["hardware"].Dump)
	at := bytes.Index(b, []byte("CPER"))
	const header, descriptor, sections = 128, 72, 3
	mca, memory, pcie := at+header+sections*descriptor, at+header+sections*descriptor+0x88, at+header+sections*descriptor+0x88+80
	marks := map[string]int{
		"platform": at + 32, "partition": at + 48, "creator": at + 64, "record": at + 96, "persistence": at + 108,
		"FRU id": at + header + descriptor + 32, "FRU text": at + header + descriptor + 52,
		"machine check": mca + 64, "DIMM": memory + 56, "PCIe serial number": pcie + 40, "PCIe capabilities": pcie + 100,
	}
	var texts []string
	for what, off := range marks {
		mark := "hush" + what[len(what)-4:]
		copy(b[off:off+8], mark)
		texts = append(texts, mark)
	}
	small, _ := scrubJudged(t, b, false)
	gone(t, b, small, texts...)
	old, now := hardware(t, b), hardware(t, small)
	if len(now.Sections) != sections || now.Truncated || now.Severity != old.Severity || now.Notify != old.Notify || !now.Timestamp.Equal(old.Timestamp) {
		t.Fatalf("the record was %+v, is %+v", old, now)
	}
	for i, s := range now.Sections {
		o := old.Sections[i]
		if s.FRU != "" || s.Type != o.Type || s.Severity != o.Severity || s.Primary != o.Primary {
			t.Errorf("section %d was %+v, is %+v", i, o, s)
		}
	}
	if *now.Sections[0].MCA != *old.Sections[0].MCA || *now.Sections[1].Memory != *old.Sections[1].Memory || *now.Sections[2].PCIe != *old.Sections[2].PCIe {
		t.Error("what the sections tell of the error is not the same")
	}
}

func hardware(t *testing.T, b []byte) *bugcheck.ErrorRecord {
	t.Helper()
	inc, err := triage.Analyze(nil, open(t, b, "MEMORY.DMP"), "", triage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	if inc.System.Arch != dump.AMD64 {
		t.Fatalf("%v", inc.System.Arch)
	}
	r := bugcheck.Of(inc, nil).Hardware
	if r == nil {
		t.Fatal("no error record")
	}
	return r
}
