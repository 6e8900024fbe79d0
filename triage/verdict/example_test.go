package verdict_test

import (
	"fmt"

	"dumptriage/triage"
	"dumptriage/triage/verdict"
)

// What a crash was, who is to blame, and under which name it is filed.
func Example() {
	dump, err := triage.Open("../../fixtures/crashes/freed.dmp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dump.Close()
	inc, err := triage.Analyze(dump, nil, "", triage.Options{Images: []string{"../../fixtures/crashes/images"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer inc.Close()

	v := verdict.Of(inc, verdict.Options{})
	fmt.Println(v.Kind, v.Crash.Class)
	if b := v.Crash.Blame; b != nil {
		fmt.Printf("%s!%s, frame %d: %s, confidence %s\n", b.Frame.ModuleName(), b.Frame.Name.Function, b.Index, b.Rule, b.Confidence)
	}
	if s := v.Signature; s != nil {
		fmt.Println(s.Text)
	}
	// Output:
	// crash use_after_free
	// crashes.exe!load, frame 0: first frame of the application, confidence medium
	// AV_READ_FREED | crashes!load
}
