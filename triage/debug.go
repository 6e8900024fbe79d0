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

// imageDamage lists what could not be read of the images that were used, by module.
// Memory that a dump lacks is no damage of the dump.
func (s *space) imageDamage() []*dump.Error {
	var out []*dump.Error
	for _, m := range s.mods {
		im := s.images[m]
		if im == nil {
			continue
		}
		for _, e := range im.Damage() {
			w := *e
			w.Warning = true
			out = append(out, &w)
		}
	}
	return out
}
