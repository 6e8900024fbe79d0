// Package schema generates the JSON Schema of package report's output. Only the
// generator and tests import it, so that its dependency stays out of programs.
package schema

import (
	"encoding/json"

	"github.com/invopop/jsonschema"

	"dumptriage/report"
)

// Generate returns the schema of report.Document as indented JSON.
func Generate() ([]byte, error) {
	r := jsonschema.Reflector{
		AllowAdditionalProperties: true, // readers must ignore fields they do not know
		Anonymous:                 true,
	}
	s := r.Reflect(&report.Document{})
	s.Title = report.SchemaVersion
	s.Description = "What every verb prints with --json. Addresses are hexadecimal strings padded to the pointer width."
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
