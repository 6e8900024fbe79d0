package dwarf

import (
	"strings"
	"testing"
)

// TestChainSpends: looking for inlined calls counts as work, and where that ends no
// line is told, since it would be another function's.
func TestChainSpends(t *testing.T) {
	const calls = 2000
	f, err := openBuilt(longNames(0, calls))
	if err != nil {
		t.Fatal(err)
	}
	f.Lookup(0x1000)
	before := f.work
	if f.Lookup(0x1001); f.work-before < calls {
		t.Errorf("%d calls were looked at for %d", calls, f.work-before)
	}
	f.work = maxWork - 10
	loc, ok := f.Lookup(0x1002)
	if !ok || loc.Function != "f" || len(loc.Inlines) != 0 || loc.Line != 0 {
		t.Errorf("%+v", loc)
	}
	if d := f.Damage(); len(d) == 0 || !strings.Contains(d[len(d)-1].Error(), "inlined calls") {
		t.Errorf("the damage is %v", d)
	}
	f.Renew()
	if loc, _ := f.Lookup(0x1003); len(loc.Inlines) != calls {
		t.Errorf("another dump is told of %d calls", len(loc.Inlines))
	}
}
