package report

import (
	_ "embed"
	"slices"
)

//go:generate go test -run TestSchemaIsFresh -update

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the JSON that this package
// writes, as it is generated from Document.
func Schema() []byte { return slices.Clone(schema) }
