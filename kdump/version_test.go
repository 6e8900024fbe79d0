package kdump

import (
	"bytes"
	"testing"

	"dumptriage/dump"
)

// versionResource is the section that holds the version resource of an image, at
// an RVA: three directories with an entry each, the entry of the data, the data.
func versionResource(rva uint32) *bin {
	b := &bin{}
	entry := func(at int, id, offset uint32) {
		b.u32(at, id)
		b.u32(at+4, offset)
	}
	b.u16(14, 2) // two types by number: icons, versions
	entry(16, 3, 0x80000300)
	entry(24, 16, 0x80000020)
	b.u16(0x20+14, 1)
	entry(0x30, 1, 0x80000040)
	b.u16(0x40+14, 1)
	entry(0x50, 0x409, 0x60) // English (US)
	b.u32(0x60, rva+0x80)
	b.u32(0x64, 0x5c)
	b.u16(0x80, 0x5c) // VS_VERSIONINFO
	b.u16(0x82, 0x34)
	for i, ch := range "VS_VERSION_INFO" {
		b.u16(0x86+2*i, uint16(ch))
	}
	for i, v := range []uint32{0xfeef04bd, 0x10000, 10<<16 | 1, 19041<<16 | 3803, 2<<16 | 3, 4<<16 | 5, 0x3f, 0, 0x40004, 3, 7, 0, 0} {
		b.u32(0xa8+4*i, v)
	}
	return b
}

// driverWithVersion is an image at driverBase with its resources at RVA 0x2000.
func driverWithVersion(s *system, resources []byte) {
	const entry = 0xffffd00000005000
	header := &bin{peHeader(0x77777777, 0x9000, "acme.pdb")}
	header.u32(0x80+0x88+8*2, 0x2000)
	header.u32(0x80+0x88+8*2+4, 0xdc)
	s.list(s.root, sysModules, 0xffffd00000001000, entry)
	s.ku64(entry+0x30, driverBase)
	s.ku64(entry+0x40, 0x9000)
	s.unicode(s.root, entry+0x48, entry+0x100, `\SystemRoot\System32\acme.sys`)
	s.write(s.root, driverBase, header.b)
	if resources != nil {
		s.write(s.root, driverBase+0x2000, resources)
	}
}

func TestModuleVersion(t *testing.T) {
	s := newSystem()
	driverWithVersion(s, versionResource(0x2000).b)
	ms := openBytes(t, s.build()).Modules()
	if len(ms) != 2 || ms[1].Version != (dump.FileVersion{10, 1, 19041, 3803}) || ms[1].Product != (dump.FileVersion{2, 3, 4, 5}) {
		t.Errorf("%+v", ms)
	}
	s = newSystem()
	driverWithVersion(s, nil) // the page is not in the dump
	if ms := openBytes(t, s.build()).Modules(); len(ms) != 2 || ms[1].Version != (dump.FileVersion{}) || ms[1].CodeView.PDB != "acme.pdb" {
		t.Errorf("%+v", ms)
	}
}

// TestModuleVersionDamaged: directories that lead to themselves or out of the
// image give no version.
func TestModuleVersionDamaged(t *testing.T) {
	for name, change := range map[string]func(b *bin){
		"a cycle":                 func(b *bin) { b.u32(0x54, 0x80000040) },
		"data outside the image":  func(b *bin) { b.u32(0x60, 0xfffffff0) },
		"a directory outside":     func(b *bin) { b.u32(28, 0xfffffff0) },
		"no such type":            func(b *bin) { b.u32(24, 17) },
		"more entries than there": func(b *bin) { b.u16(12, 0xffff); b.u16(14, 0xffff); b.u32(24, 17) },
		"another signature":       func(b *bin) { b.u8(0xa8, 0) },
		"too short a value":       func(b *bin) { b.u16(0x82, 0x10) },
	} {
		s := newSystem()
		b := versionResource(0x2000)
		change(b)
		driverWithVersion(s, b.b)
		if ms := openBytes(t, s.build()).Modules(); len(ms) != 2 || ms[1].Version != (dump.FileVersion{}) {
			t.Errorf("%s: %+v", name, ms)
		}
	}
}

// TestReproducible: an entry of type 16 in the debug directory says that the time
// stamp is none.
func TestReproducible(t *testing.T) {
	for _, repro := range []bool{false, true} {
		s := newSystem()
		header := &bin{bytes.Clone(peHeader(ntStamp, ntSize, "ntkrnlmp.pdb"))}
		at := int(header.rva(6))
		header.put(0xf00, header.b[at:at+0x1c])
		header.grow(0xf00 + 2*0x1c)
		if repro {
			header.u32(0xf1c+0xc, 16)
		}
		header.u32(0x80+0x88+8*6, 0xf00)
		header.u32(0x80+0x88+8*6+4, 2*0x1c)
		s.write(s.root, ntBase, header.b)
		ms := openBytes(t, s.build()).Modules()
		if ms[0].Reproducible != repro || ms[0].CodeView.PDB != "ntkrnlmp.pdb" {
			t.Errorf("reproducible %v: %+v", repro, ms[0])
		}
	}
}

// The same in a triage dump, whose list of drivers has no such thing: where a data
// block holds the headers, and only where they are the listed image's.
func TestReproducibleTriage(t *testing.T) {
	for name, x := range map[string]struct {
		stamp uint32
		held  bool
		want  bool
	}{"its own": {ntStamp, true, true}, "another image's": {ntStamp + 1, true, false}, "not in the dump": {ntStamp, false, false}} {
		s := system7E()
		base := openBytes(t, s.bytes()).Modules()[0].Base
		header := &bin{bytes.Clone(peHeader(x.stamp, ntSize, "ntkrnlmp.pdb"))}
		at := int(header.rva(6))
		header.put(0xf00, header.b[at:at+0x1c])
		header.grow(0xf00 + 2*0x1c)
		header.u32(0xf1c+0xc, 16)
		header.u32(0x80+0x88+8*6, 0xf00)
		header.u32(0x80+0x88+8*6+4, 2*0x1c)
		if x.held {
			s.blocks = append(s.blocks, block{base, header.b}, block{base, header.b[:0x400]})
		}
		m := openBytes(t, s.bytes()).Modules()[0]
		if m.Reproducible != x.want || (m.CodeView.PDB == "ntkrnlmp.pdb") != x.want || m.TimeDateStamp != ntStamp || m.CheckSum != 0xa5938c {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// rva is the RVA of a data directory.
func (m *bin) rva(directory int) uint32 {
	at := 0x80 + 0x88 + 8*directory
	return uint32(m.b[at]) | uint32(m.b[at+1])<<8
}
