package pdb

// Kinds of records in the IPI stream.
const (
	idFunction       typeKind = 0x1601 // LF_FUNC_ID
	idMemberFunction typeKind = 0x1602 // LF_MFUNC_ID
	idSubstrings     typeKind = 0x1604 // LF_SUBSTR_LIST
	idString         typeKind = 0x1605 // LF_STRING_ID
)

// crossModule marks an id that another module of the link exports.
const crossModule = 1 << 31

// inlineeName returns the qualified name of an inlined function, "" when its id
// leads nowhere.
func (f *File) inlineeName(m *module, id uint32) string {
	if id&crossModule != 0 {
		global, ok := f.importedID(m, id)
		if !ok {
			return ""
		}
		id = global
	}
	if name, ok := f.inlinees.get(id); ok {
		return name
	}
	name := f.functionName(id)
	f.inlinees.put(id, name)
	return name
}

// functionName reads the name of a function of the IPI stream.
func (f *File) functionName(id uint32) string {
	kind, c, ok := f.ids().find(id)
	if !ok {
		return ""
	}
	switch kind {
	case idFunction:
		scope := c.U32()
		c.U32() // type
		return f.scopeName(scope) + recordName(c)
	case idMemberFunction:
		class := c.U32()
		c.U32()
		name := recordName(c)
		if s := f.TypeName(class); s != "" {
			return s + "::" + name
		}
		return name
	}
	return ""
}

// scopeName returns the namespace of a function with "::" behind it.
func (f *File) scopeName(id uint32) string {
	if id == 0 {
		return ""
	}
	kind, c, ok := f.ids().find(id)
	if !ok || kind != idString {
		return ""
	}
	list := c.U32() // of earlier parts, where the string is long
	name := f.substrings(list) + recordName(c)
	if name == "" {
		return ""
	}
	return name + "::"
}

func (f *File) substrings(id uint32) string {
	if id == 0 {
		return ""
	}
	kind, c, ok := f.ids().find(id)
	if !ok || kind != idSubstrings {
		return ""
	}
	n, _ := c.Count(uint64(c.U32()), 4)
	out := ""
	for range n {
		kind, s, ok := f.ids().find(c.U32())
		if !ok || kind != idString || len(out) > maxName {
			break
		}
		s.U32()
		out += recordName(s)
	}
	return out
}
