package kdump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// objectTypes are the object manager's types and how an object's header names
// its own. They need no symbols: KDDEBUGGER_DATA64 leads to the type of types,
// which lists all types. That list is believed, not measured: what it leads to
// is checked.
type objectTypes struct {
	byIndex map[uint8]string
	cookie  uint8 // TypeIndex is stored xor this and a byte of its own address
	mixed   bool  // whether it is
}

// OBJECT_HEADER, 64-bit and 32-bit: its size, TypeIndex and InfoMask. In front of
// it, from the header down, stand the parts that InfoMask names: creator
// information (bit 0), the name (bit 1).
type objectLayout struct {
	header, typeIndex, infoMask, info int
	typeName, typeNumber              int // OBJECT_TYPE
}

var (
	objects64 = objectLayout{0x30, 0x18, 0x1a, 0x20, 0x10, 0x28}
	objects32 = objectLayout{0x18, 0x0c, 0x0e, 0x10, 0x08, 0x14}
)

const (
	infoCreator    = 1
	infoName       = 2
	maxObjectTypes = 256
	// cookieBuild is the first version that hides TypeIndex.
	cookieBuild = 10240
)

func (f *File) objectLayout() *objectLayout {
	if f.hdr.ptr == 4 {
		return &objects32
	}
	return &objects64
}

// objectTypes reads the types once.
func (f *File) objectTypes() *objectTypes {
	f.full.typesOnce.Do(func() {
		t := &f.full.types
		t.byIndex = map[uint8]string{}
		if f.kd == nil || !kernelAddress(f.hdr.ptr, f.kd.typeObject) {
			return
		}
		head, err := dump.ReadPointer(f.mem, f.hdr.arch, f.kd.typeObject)
		if err != nil || !kernelAddress(f.hdr.ptr, head) {
			return
		}
		l := f.objectLayout()
		w := f.walkList(f.mem, head, maxObjectTypes, "OBJECT_TYPE")
		for _, entry := range w.entries {
			body := entry + uint64(l.info+l.header)
			name, ok := f.readUnicode(f.mem, f.hdr.ptr, body+uint64(l.typeName))
			var n [1]byte
			f.keepPath(f.mem, f.hdr.ptr, body+uint64(l.typeName), name)
			if got, _ := f.mem.ReadAt(n[:], body+uint64(l.typeNumber)); !ok || got == 0 || n[0] == 0 {
				continue
			}
			t.byIndex[n[0]] = name
		}
		f.findCookie(t)
	})
	return &f.full.types
}

// findCookie learns the cookie from objects whose type is known: processes.
func (f *File) findCookie(t *objectTypes) {
	if t.mixed = f.hdr.build >= cookieBuild; !t.mixed {
		return
	}
	index := uint8(0)
	for i, name := range t.byIndex {
		if name == "Process" {
			index = i
		}
	}
	l := f.objectLayout()
	votes := map[uint8]int{}
	for i := range f.Processes() {
		header := f.full.processes[i].EPROCESS - uint64(l.header)
		var b [1]byte
		if n, _ := f.mem.ReadAt(b[:], header+uint64(l.typeIndex)); n == 1 {
			votes[b[0]^uint8(header>>8)^index]++
		}
	}
	best := 0
	for cookie, n := range votes {
		if n > best || n == best && cookie < t.cookie {
			best, t.cookie = n, cookie
		}
	}
}

// object is what an object's header says; name is its whole path, as far as the
// directories are in the dump.
type object struct {
	typ, name string
}

// objectAt reads the header in front of an object's body. ok is false when there
// is none, as in front of objects that drivers made themselves.
func (f *File) objectAt(body uint64) (o object, ok bool) { return f.readObject(body, 0) }

func (f *File) readObject(body uint64, depth int) (o object, ok bool) {
	if f.full == nil || !kernelAddress(f.hdr.ptr, body) {
		return o, false
	}
	t, l := f.objectTypes(), f.objectLayout()
	header := body - uint64(l.header)
	b := make([]byte, l.header)
	if _, err := f.mem.ReadAt(b, header); err != nil {
		return o, false
	}
	c := cursor.New(b, "OBJECT_HEADER", -1)
	c.Seek(l.typeIndex)
	index := c.U8()
	c.Seek(l.infoMask)
	mask := c.U8()
	if t.mixed {
		index ^= uint8(header>>8) ^ t.cookie
	}
	if o.typ, ok = t.byIndex[index]; !ok {
		return object{}, false
	}
	if mask&infoName != 0 {
		at := header - uint64(l.info)
		if mask&infoCreator != 0 {
			at -= uint64(l.info)
		}
		o.name = f.objectPath(at, depth)
	}
	return o, true
}

// maxDirectories bounds the depth of an object's name.
const maxDirectories = 16

// objectPath reads OBJECT_HEADER_NAME_INFO: a directory, then the name in it. The
// root directory is called by a backslash and is in none.
func (f *File) objectPath(info uint64, depth int) string {
	name, _ := f.readUnicode(f.mem, f.hdr.ptr, info+uint64(f.hdr.ptr))
	directory, err := dump.ReadPointer(f.mem, f.hdr.arch, info)
	if name == "" || err != nil || directory == 0 || depth >= maxDirectories {
		return name
	}
	d, ok := f.readObject(directory, depth+1)
	switch {
	case !ok || d.typ != "Directory" || d.name == "":
		return name
	case d.name == `\`:
		return d.name + name
	}
	return d.name + `\` + name
}
