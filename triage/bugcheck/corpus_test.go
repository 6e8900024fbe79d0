package bugcheck_test

import (
	"testing"

	"dumptriage/internal/corpus"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
)

func judgeFile(t *testing.T, path string) (*triage.Incident, *bugcheck.Verdict) {
	t.Helper()
	d, err := triage.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return judge(t, d, triage.Options{})
}

// What the debugger's !analyze -v, kept beside the dump, says of it: no driver, but
// nt, in the process notmyfault64.e, and these secondary data.
func TestLikeTheDebugger(t *testing.T) {
	inc, v := judgeFile(t, corpus.Need(t, "kernel/k02-triage-x64-user-seam/083125-14875-01.dmp"))
	if v.Name != "IRQL_GT_ZERO_AT_SYSTEM_SERVICE" || v.Parameters[0].Value != 0x7ffe7350d0c4 || v.Parameters[1].Value != 2 || v.Parameters[3].Value != 0xffffa704eeb6bec0 {
		t.Errorf("%+v", v)
	}
	if inc.Process.Name != "notmyfault64.e" || inc.System.NTVersion != "10.0.19041.3803" {
		t.Errorf("process %q, kernel %q", inc.Process.Name, inc.System.NTVersion)
	}
	if b := v.Blame; b.Culprit != bugcheck.CulpritKernel || !b.Module.IsNT() || b.Confidence != "low" {
		t.Errorf("blame %+v", b)
	}
	held := map[string]int64{}
	for _, b := range v.Blobs {
		held[b.Name] = b.Size
	}
	if held["BlackBoxBSD"] != 176 || held["BlackBoxNTFS"] != 4096 || held["BlackBoxWinlogon"] != 64 || len(v.Blobs) != 29 {
		t.Errorf("secondary data %v", held)
	}
}

// The published analysis of this dump blames amdppm.sys for an access violation.
func TestProcessorDriver(t *testing.T) {
	_, v := judgeFile(t, corpus.Need(t, "kernel/k01-triage-x64-16cpu/triage_x64.dmp"))
	if b := v.Blame; b.Culprit != bugcheck.CulpritDriver || b.Name != "amdppm.sys" || b.Step != "context" || b.Confidence != "high" || b.Address != 0xfffff8048b58334c {
		t.Errorf("blame %+v", b)
	}
	if v.Parameters[0].Name != "EXCEPTION_ACCESS_VIOLATION" {
		t.Errorf("parameters %+v", v.Parameters)
	}
}

func TestLiveDumpBlamesNobody(t *testing.T) {
	_, v := judgeFile(t, corpus.Need(t, "kernel/k03-synthetic-mk/fake_mk.Kernel.dmp"))
	if v.Class != codes.ClassLive || !v.Live || v.Blame.Culprit != bugcheck.CulpritNobody {
		t.Errorf("%s, live %v, blame %+v", v.Class, v.Live, v.Blame)
	}
}
