package signature

import (
	"fmt"
	"regexp"

	"dumptriage/managed"
	"dumptriage/triage/rules"
)

// managedFrame names a .NET method; it has no name where nothing tells the method.
func managedFrame(m *managed.Method) canonical {
	c := canonical{module: rules.Module(m.Module), function: normalizeManaged(m.FullName())}
	switch {
	case c.function == "" && (m.Token == 0 || c.module == ""):
		return canonical{}
	case c.function == "":
		c.function = fmt.Sprintf("%08x", m.Token)
	}
	c.name = c.function
	if c.module != "" {
		c.name = c.module + "!" + c.function
	}
	return c
}

// generated are the numbers in names that C# compilers make for what has none in the
// source: <>c__DisplayClass12_0, <Main>b__8_1, <Read>d__5, <Go>g__Local|3_0.
var generated = regexp.MustCompile(`(__DisplayClass|>[a-z]__[A-Za-z]*)(\|?\d+(_\d+)*)|\|\d+_\d+`)

// normalizeManaged takes from a .NET method's name what another build numbers
// otherwise.
func normalizeManaged(name string) string {
	if len(name) > maxNormalized {
		name = cut(name, maxNormalized)
	}
	return generated.ReplaceAllString(name, "$1")
}
