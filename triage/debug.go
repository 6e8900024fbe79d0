package triage

import "dumptriage/dump"

// debugDamageShown is how many findings about one symbol file are passed on.
const debugDamageShown = 4

// debugDamage lists what could not be read of the debug information that was
// used, by module. These are warnings: a name less leaves the stacks whole.
func (s *space) debugDamage() []*dump.Error {
	var out []*dump.Error
	for _, m := range s.mods {
		d := s.debug[m]
		if d == nil {
			continue
		}
		for i, e := range d.Damage() {
			if i == debugDamageShown {
				break
			}
			w := *e
			w.Warning = true
			if w.File == "" {
				w.File = m.SymbolsPath
			}
			out = append(out, &w)
		}
	}
	return out
}
