package triage

import (
	"dumptriage/pdata"
	"dumptriage/symbols"
)

// SymbolNeeds looks for the images and the debug information of all modules of a
// dump. Images whose unwind data the dump's memory holds are not looked for.
// Progress, when set, is told how many of the modules are done.
func SymbolNeeds(d *Dump, store *symbols.Store, progress func(done, total int)) []symbols.Need {
	var out []symbols.Need
	modules := d.Modules()
	for i := range modules {
		m := &modules[i]
		mapped, err := pdata.OpenMapped(d.Memory(), m.Base, m.Name())
		if err != nil || !hasTable(mapped) {
			mapped = nil
		}
		out = append(out, store.Needs(m, mapped)...)
		if progress != nil {
			progress(i+1, len(modules))
		}
	}
	return out
}
