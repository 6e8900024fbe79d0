package report

import (
	"strings"
	"testing"

	"dumptriage/triage/crash"
	"dumptriage/triage/hang"
	"dumptriage/triage/signature"
)

// A user's rules lie in a user's folder; the file and the line stay, as of those that
// are built in.
func TestRedactedRules(t *testing.T) {
	const rule = "acme/tower/our.rules:12"
	c, w, s := &crash.Verdict{Rule: rule}, &hang.Wait{Rule: rule}, &signature.Step{Rule: "signature.rules:7"}
	NewRedactor().Values(c, w, s)
	for _, got := range []string{c.Rule, w.Rule} {
		if strings.Contains(got, "acme") || !strings.HasSuffix(got, "/our.rules:12") {
			t.Errorf("%s became %s", rule, got)
		}
	}
	if s.Rule != "signature.rules:7" {
		t.Errorf("a built-in rule became %s", s.Rule)
	}
}
