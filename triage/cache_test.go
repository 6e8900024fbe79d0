package triage

import (
	"slices"
	"testing"

	"dumptriage/symbols"
)

// A cache goes on from a dump in one folder to one in another; other places are another
// matter.
func TestCacheGoesOnToOtherFolders(t *testing.T) {
	places := symbols.DirPath(t.TempDir())
	beside := func(file string) symbols.Path { return slices.Concat(symbols.BesidePath(file), places) }
	var c Cache
	defer c.Close()
	first := c.store(beside("a/1.dmp"), symbols.StoreOptions{})
	if c.store(beside("b/2.dmp"), symbols.StoreOptions{}) != first || c.store(places, symbols.StoreOptions{}) != first {
		t.Error("it starts anew for another folder")
	}
	if c.store(append(places, symbols.DirPath(t.TempDir())...), symbols.StoreOptions{}) == first {
		t.Error("it goes on with other places")
	}
}
