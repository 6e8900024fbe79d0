package report

import (
	"reflect"
	"testing"

	"dumptriage/report/redact"
	"dumptriage/triage"
	"dumptriage/triage/hang"
	"dumptriage/triage/verdict"
)

// TestEveryTextHasAPolicy fails when facts grow a text that nobody decided on. It
// is replaced as a whole until policies says what it is.
func TestEveryTextHasAPolicy(t *testing.T) {
	undecided, unused := redact.Undecided(policies, reflect.TypeFor[triage.Incident](), reflect.TypeFor[verdict.Verdict](),
		reflect.TypeFor[List](), reflect.TypeFor[hang.Series](), reflect.TypeFor[BucketJSON](), reflect.TypeFor[JoinedJSON](), reflect.TypeFor[BucketDiff](), reflect.TypeFor[Scrub]())
	for _, f := range undecided {
		t.Errorf("%s has no policy: give it one in redact.go, so that --redact knows whether it may be told", f)
	}
	for _, f := range unused {
		t.Errorf("there is a policy for %s, which is no text in the facts", f)
	}
}
