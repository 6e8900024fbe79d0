package triage

import (
	"dumptriage/dump"
	"dumptriage/pdata"
	"dumptriage/symbols"
)

// SymbolNeeds looks for the images and the debug information of all modules of a
// dump, and of those that processes of a full kernel dump have loaded, each once.
// Images whose unwind data the dump's memory holds are not looked for. Progress,
// when set, is told how many of the modules are done.
func SymbolNeeds(d *Dump, processes []*dump.Process, store *symbols.Store, progress func(done, total int)) []symbols.Need {
	type moduleKey struct {
		name  string
		stamp uint32
		size  uint64
	}
	type owned struct {
		m   dump.Module
		mem dump.Memory
	}
	var all []owned
	seen := map[moduleKey]bool{}
	add := func(src dump.Source) {
		for _, m := range src.Modules() {
			if key := (moduleKey{m.Name(), m.TimeDateStamp, m.Size}); !seen[key] {
				seen[key] = true
				all = append(all, owned{m, src.Memory()})
			}
		}
	}
	add(d.Source)
	for _, p := range processes {
		add(d.ProcessView(p))
	}
	var out []symbols.Need
	for i := range all {
		m := &all[i].m
		mapped, err := pdata.OpenMapped(all[i].mem, m.Base, m.Name())
		if err != nil || !hasTable(mapped) {
			mapped = nil
		}
		out = append(out, store.Needs(m, mapped)...)
		if progress != nil {
			progress(i+1, len(all))
		}
	}
	return out
}
