package kdump

import (
	"dumptriage/dump"
)

// States and types of MEMORY_BASIC_INFORMATION.
const (
	memCommit  = 0x1000
	memReserve = 0x2000
	memPrivate = 0x20000
	memMapped  = 0x40000
	memImage   = 0x1000000
)

// VADs returns the ranges that the process reserved or mapped, in the order of
// their addresses, with the protection that each was made with. Why there are none,
// or not all, is noted as damage: the kernel's layout may be in no table, the tree
// broken.
func (v *View) VADs() []dump.Region {
	if v.space == nil {
		return nil
	}
	v.vadsOnce.Do(func() {
		t := v.vadTree()
		if t.form == nil {
			v.damage(t.why)
			return
		}
		err := t.walk(func(d *vad) bool {
			t.finish(d)
			v.vads = append(v.vads, t.region(d))
			return true
		})
		if err != nil {
			v.damage(err)
		}
	})
	return v.vads
}

// region makes a Region of a descriptor.
func (t *vadTree) region(d *vad) dump.Region {
	r := dump.Region{Base: d.first << pageShift, Size: (d.last - d.first + 1) << pageShift, AllocationBase: d.first << pageShift,
		Protect: d.protect, AllocProtect: d.protect, VAD: &dump.VAD{Address: d.va, Commit: d.commit, HasCommit: d.hasCommit}}
	if d.kind < len(vadKinds) {
		r.VAD.Kind = vadKinds[d.kind]
	}
	switch {
	case d.private:
		r.Type, r.State = memPrivate, memReserve
		if d.committed {
			r.State = memCommit
		}
		return r
	case d.kind == vadImage:
		r.Type, r.State, r.Image = memImage, memCommit, t.file(d)
		return r
	case t.privateBit() >= 0:
		r.Type = memMapped
	}
	if r.File = t.file(d); r.File != "" {
		r.State = memCommit
	}
	return r
}
