package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/urfave/cli/v2"
)

// A fault of ours becomes an error that a script can read, not a trace on
// standard output.
func TestPanicBecomesAnError(t *testing.T) {
	boom := &cli.App{Name: "dumptriage", Commands: []*cli.Command{{Name: "boom", Action: func(*cli.Context) error { panic("out of luck") }}}}
	err := runApp(boom, []string{"boom"})
	var stdout, stderr bytes.Buffer
	failInternal(&output{Writer: &stdout}, []string{"boom", "--json"}, err)
	var doc struct {
		Status string
		Errors []struct{ Code, Message string }
	}
	if e := json.Unmarshal(stdout.Bytes(), &doc); e != nil || doc.Status != "ERROR" || len(doc.Errors) != 1 || doc.Errors[0].Code != "internal" || doc.Errors[0].Message != "out of luck" {
		t.Errorf("%v: %s", e, stdout.String())
	}
	if status := exitStatus(err, "boom", &stderr); status != exitFailed || !bytes.Contains(stderr.Bytes(), []byte("fault of dumptriage")) {
		t.Errorf("status %d, %s", status, stderr.String())
	}
	stdout.Reset()
	failInternal(&output{Writer: &stdout, begun: true}, []string{"boom", "--json"}, err)
	failInternal(&output{Writer: &stdout}, []string{"boom"}, err)
	failInternal(&output{Writer: &stdout}, []string{"boom", "--json"}, statusError(3))
	if stdout.Len() != 0 {
		t.Errorf("a second object, or one that nobody asked for: %s", stdout.String())
	}
}
