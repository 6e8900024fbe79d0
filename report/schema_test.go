package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	reflectschema "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// listsWithNulls is the schema of lists whose members may be null: the generator
// takes every pointer in a list for a value.
func listsWithNulls(t reflect.Type) *reflectschema.Schema {
	if t != reflect.TypeFor[WaitsJSON]() {
		return nil
	}
	member := &reflectschema.Schema{OneOf: []*reflectschema.Schema{{Ref: "#/$defs/WaitJSON"}, {Type: "null"}}}
	return &reflectschema.Schema{Type: "array", Items: member}
}

// generateSchema is the generator of schema.json. It is test code, so that its
// dependency stays out of programs.
func generateSchema(t *testing.T, additional bool) []byte {
	t.Helper()
	r := reflectschema.Reflector{
		AllowAdditionalProperties: additional, // readers must ignore fields they do not know
		Anonymous:                 true,
		Mapper:                    listsWithNulls,
	}
	s := r.Reflect(&Document{})
	s.Title = SchemaVersion
	s.Description = "What every verb prints with --json. Addresses are hexadecimal strings padded to the pointer width."
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestSchemaIsFresh(t *testing.T) {
	want := generateSchema(t, true)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
		t.Error("schema.json is stale: run go generate ./report")
	}
	if !*update && !bytes.Equal(Schema(), got) {
		t.Error("Schema does not return schema.json")
	}
}

// validate checks output against the schema, here with unknown fields
// forbidden, so that the writer and the types cannot drift apart.
func validate(t *testing.T, out []byte) map[string]any {
	t.Helper()
	compile := func(text []byte) *jsonschema.Schema {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", doc); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("schema.json")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	if err != nil {
		t.Fatalf("not one JSON value: %v\n%s", err, out)
	}
	for _, text := range [][]byte{Schema(), generateSchema(t, false)} {
		if err := compile(text).Validate(value); err != nil {
			t.Errorf("does not meet the schema: %v\n%s", err, out)
		}
	}
	return value.(map[string]any)
}

// A schema that accepts anything would make validate useless.
func TestSchemaRefuses(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s := c.MustCompile("schema.json")
	for _, bad := range []string{
		`{}`,
		`{"schema":"dumptriage/1","tool":{"name":"a","version":"b"},"status":"FINE","errors":[],"inputs":[]}`,
		`{"schema":"dumptriage/1","tool":{"name":"a","version":"b"},"status":"OK","errors":[],"inputs":[],"pid":"12"}`,
		`{"schema":"dumptriage/1","tool":{"name":"a","version":"b"},"status":"OK","errors":[],"inputs":[],"threads":[{"thread_id":1}]}`,
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(bad)))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}
