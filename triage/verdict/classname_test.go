package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"dumptriage/triage/crash"
)

// A signature's first word, by what the crash was and the code that it came with.
func TestClassName(t *testing.T) {
	const av, failFast, breakpoint = 0xc0000005, 0xc0000409, 0x80000003
	for _, c := range []struct {
		class  crash.Class
		access crash.Access
		code   uint32
		want   string
	}{
		{crash.NullPointer, crash.Execute, av, "AV_EXEC_NULL"},
		{crash.UseAfterFree, crash.Read, av, "AV_READ_FREED"},
		{crash.OutOfBounds, crash.Write, av, "AV_WRITE_OUT_OF_BOUNDS"},
		{crash.UnloadedModule, crash.Execute, av, "AV_EXEC_UNLOADED"},
		// A list of memory in the dump tells these apart; the bucket must not.
		{crash.WildPointer, crash.Write, av, "AV_WRITE"},
		{crash.WriteReadOnly, crash.Write, av, "AV_WRITE"},
		{crash.AccessViolation, crash.Write, av, "AV_WRITE"},
		// Nor may what a stray pointer happened to hold.
		{crash.NonCanonical, crash.Read, av, "AV_READ"},
		{crash.KernelAddress, crash.Read, av, "AV_READ"},
		{crash.AccessViolation, "", av, "AV"},
		{crash.HeapCorruption, crash.Read, av, "HEAP_CORRUPTION"},
		{crash.HeapCorruption, "", 0xc0000374, "HEAP_CORRUPTION"},
		{crash.StackOverflow, crash.Write, av, "STACK_OVERFLOW"},
		// One abort, whatever the runtime ends it with.
		{crash.Abort, "", failFast, "ABORT"},
		{crash.Abort, "", 0x40000015, "ABORT"},
		{crash.Abort, "", breakpoint, "ABORT"},
		{crash.OutOfBounds, "", failFast, "OUT_OF_BOUNDS"},
		// By their codes: FASTFAIL_5, GUARD_PAGE, EXCEPTION_0xE0001234.
		{crash.FailFast, "", failFast, ""},
		{crash.GuardPage, crash.Write, 0x80000001, ""},
		{crash.RaisedException, "", 0xe0001234, ""},
		{"our_assert", "", breakpoint, "OUR_ASSERT"},
	} {
		if got := className(&crash.Verdict{Class: c.class, Access: c.access}, c.code); got != c.want {
			t.Errorf("%s %s %#x: %q, want %q", c.class, c.access, c.code, got, c.want)
		}
	}
}

// Every class that package crash has is in the tables: none falls through to its
// own name, which is for users' classes.
func TestEveryClassHasAName(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../crash/class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		typ, ok := spec.Type.(*ast.Ident)
		if !ok || typ.Name != "Class" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		_, access := accessSuffixes[crash.Class(text)]
		_, other := classNames[crash.Class(text)]
		if !slices.Contains(CrashClasses(), text) {
			t.Errorf("%s is not among the classes that rules may refine", text)
		}
		if !access && !other {
			t.Errorf("no name for %s", text)
		}
		return true
	})
	if n < 40 || n != len(CrashClasses()) {
		t.Errorf("found only %d classes", n)
	}
}
