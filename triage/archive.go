package triage

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/input"
)

// OpenOtherHalf opens, from the archive that a dump was read from, the dump that
// belongs to it by its name: X.Kernel.dmp to X.dmp, or the reverse. It returns
// nil when there is none.
func (d *Dump) OpenOtherHalf() (*Dump, error) {
	name := d.OtherMember()
	if name == "" || d.Path == "-" { // a pipe is read once
		return nil, nil
	}
	f, err := input.Open(d.Path, input.Options{Want: func(member string) bool { return member == name }})
	if err != nil {
		return nil, withFile(err, d.Path)
	}
	other, err := OpenInput(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	d.otherMember, other.otherMember = name, d.File.Member()
	return other, nil
}

// OtherMember returns the name of what OpenOtherHalf would open, "" when there is none.
func (d *Dump) OtherMember() string { return otherHalf(d.File.Member(), d.File.Candidates()) }

// otherHalf finds the name that differs from a member's by ".Kernel" alone, in
// any case.
func otherHalf(member string, names []string) string {
	want, kernel := strings.CutSuffix(strings.ToLower(member), ".kernel.dmp")
	if kernel {
		want += ".dmp"
	} else if want = strings.TrimSuffix(want, ".dmp"); want != strings.ToLower(member) {
		want += ".kernel.dmp"
	}
	for _, name := range names {
		if name != member && strings.ToLower(name) == want {
			return name
		}
	}
	return ""
}

// unread warns of the dumps in an archive that were not looked at.
func (d *Dump) unread() *dump.Error {
	names := d.File.Candidates()
	read, n := d.File.Member()+" was", 1
	if d.otherMember != "" {
		read, n = d.File.Member()+" and "+d.otherMember+" were", 2
	}
	if len(names) <= n {
		return nil
	}
	e := dump.Errorf(dump.Mismatch, "archive", "holds %d dumps; only %s read", len(names), read)
	e.File, e.Warning = d.Path, true
	return e
}
