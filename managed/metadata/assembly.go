package metadata

import "fmt"

// maxRefs caps how many references to assemblies are read; large programs have
// some hundred.
const maxRefs = 1 << 14

// Assembly names an assembly.
type Assembly struct {
	Name    string
	Version [4]uint16 // major, minor, build, revision
	Culture string    // "" for neutral
}

// String returns the name and the version: "mscorlib 4.0.0.0".
func (a Assembly) String() string {
	return fmt.Sprintf("%s %d.%d.%d.%d", a.Name, a.Version[0], a.Version[1], a.Version[2], a.Version[3])
}

// Assembly returns the assembly that this module is the main one of. A module that is
// none gives an OutOfRange error.
func (m *Metadata) Assembly() (Assembly, error) {
	r, err := m.row(tAssembly, 1)
	if err != nil {
		return Assembly{}, err
	}
	return m.assembly([4]uint32(r[1:5]), r[7], r[8])
}

func (m *Metadata) assembly(version [4]uint32, name, culture uint32) (a Assembly, err error) {
	for i, v := range version {
		a.Version[i] = uint16(v)
	}
	if a.Name, err = m.text(name); err != nil {
		return a, err
	}
	a.Culture, err = m.text(culture)
	return a, err
}

// AssemblyRefs returns the assemblies that this module refers to, in the order of
// their rows. With an error they are those before the row that failed.
func (m *Metadata) AssemblyRefs() ([]Assembly, error) {
	var refs []Assembly
	for rid := uint32(1); rid <= min(m.tables[tAssemblyRef].rows, maxRefs); rid++ {
		a, err := m.AssemblyRef(rid)
		if err != nil {
			return refs, err
		}
		refs = append(refs, a)
	}
	return refs, nil
}

// AssemblyRef returns one row, counted from 1.
func (m *Metadata) AssemblyRef(rid uint32) (Assembly, error) {
	r, err := m.row(tAssemblyRef, rid)
	if err != nil {
		return Assembly{}, err
	}
	return m.assembly([4]uint32(r[0:4]), r[6], r[7])
}

// Module returns the module's file name, as the compiler knew it.
func (m *Metadata) Module() (string, error) {
	off, err := m.cell(tModule, 1, 1)
	if err != nil {
		return "", err
	}
	return m.text(off)
}

// MVID returns what tells one build of the module from another.
func (m *Metadata) MVID() (GUID, error) {
	n, err := m.cell(tModule, 1, 2)
	if err != nil {
		return GUID{}, err
	}
	return m.guid(n)
}
