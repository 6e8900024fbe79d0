package metadata

// table is the number of a metadata table (ECMA-335 II.22).
type table uint8

// The tables that are read here; the others are only sized.
const (
	tModule           table = 0x00
	tTypeRef          table = 0x01
	tTypeDef          table = 0x02
	tFieldPtr         table = 0x03
	tField            table = 0x04
	tMethodPtr        table = 0x05
	tMethodDef        table = 0x06
	tParamPtr         table = 0x07
	tParam            table = 0x08
	tInterfaceImpl    table = 0x09
	tMemberRef        table = 0x0a
	tConstant         table = 0x0b
	tCustomAttribute  table = 0x0c
	tDeclSecurity     table = 0x0e
	tStandAloneSig    table = 0x11
	tEventPtr         table = 0x13
	tEvent            table = 0x14
	tPropertyPtr      table = 0x16
	tProperty         table = 0x17
	tModuleRef        table = 0x1a
	tTypeSpec         table = 0x1b
	tAssembly         table = 0x20
	tAssemblyRef      table = 0x23
	tFile             table = 0x26
	tExportedType     table = 0x27
	tManifestResource table = 0x28
	tNestedClass      table = 0x29
	tGenericParam     table = 0x2a
	tMethodSpec       table = 0x2b
	tGenericParamCons table = 0x2c
	tDocument         table = 0x30
	tLocalScope       table = 0x32
	tLocalVariable    table = 0x33
	tLocalConstant    table = 0x34
	tImportScope      table = 0x35

	numTables  = 64
	maxColumns = 9
)

// column says what a cell of a row holds, and so how wide it is.
type column uint8

// Columns below firstIndex have a fixed width or index a heap; from there on they
// are rows of a table (index(t)); from firstCoded on, a coded index.
const (
	u16 column = 1 + iota
	u32
	str
	guid
	blob

	firstIndex column = 0x40
	firstCoded column = 0x80
)

func index(t table) column { return firstIndex + column(t) }

// The coded indexes of II.24.2.6.
const (
	typeDefOrRef = firstCoded + iota
	hasConstant
	hasCustomAttribute
	hasFieldMarshal
	hasDeclSecurity
	memberRefParent
	hasSemantics
	methodDefOrRef
	memberForwarded
	implementation
	customAttributeType
	resolutionScope
	typeOrMethodDef
	hasCustomDebugInformation
)

// none stands for a tag of a coded index that no table has.
const none table = 0xff

// coded lists the tables of each coded index by tag, and how many bits the tag has.
var coded = [...]struct {
	bits uint
	tags []table
}{
	typeDefOrRef - firstCoded:        {2, []table{tTypeDef, tTypeRef, tTypeSpec}},
	hasConstant - firstCoded:         {2, []table{tField, tParam, tProperty}},
	hasCustomAttribute - firstCoded:  {5, attributed},
	hasFieldMarshal - firstCoded:     {1, []table{tField, tParam}},
	hasDeclSecurity - firstCoded:     {2, []table{tTypeDef, tMethodDef, tAssembly}},
	memberRefParent - firstCoded:     {3, []table{tTypeDef, tTypeRef, tModuleRef, tMethodDef, tTypeSpec}},
	hasSemantics - firstCoded:        {1, []table{tEvent, tProperty}},
	methodDefOrRef - firstCoded:      {1, []table{tMethodDef, tMemberRef}},
	memberForwarded - firstCoded:     {1, []table{tField, tMethodDef}},
	implementation - firstCoded:      {2, []table{tFile, tAssemblyRef, tExportedType}},
	customAttributeType - firstCoded: {3, []table{none, none, tMethodDef, tMemberRef}},
	resolutionScope - firstCoded:     {2, []table{tModule, tModuleRef, tAssemblyRef, tTypeRef}},
	typeOrMethodDef - firstCoded:     {1, []table{tTypeDef, tMethodDef}},
	hasCustomDebugInformation - firstCoded: {5, append(attributed[:len(attributed):len(attributed)],
		tDocument, tLocalScope, tLocalVariable, tLocalConstant, tImportScope)},
}

var attributed = []table{tMethodDef, tField, tTypeRef, tTypeDef, tParam, tInterfaceImpl, tMemberRef, tModule, tDeclSecurity,
	tProperty, tEvent, tStandAloneSig, tModuleRef, tTypeSpec, tAssembly, tAssemblyRef, tFile, tExportedType,
	tManifestResource, tGenericParam, tGenericParamCons, tMethodSpec}

// schema has the columns of each table in their order, and its name in errors.
var schema = [numTables]struct {
	name    string
	columns []column
}{
	tModule:           {"Module", []column{u16, str, guid, guid, guid}},
	tTypeRef:          {"TypeRef", []column{resolutionScope, str, str}},
	tTypeDef:          {"TypeDef", []column{u32, str, str, typeDefOrRef, index(tField), index(tMethodDef)}},
	tFieldPtr:         {"FieldPtr", []column{index(tField)}},
	tField:            {"Field", []column{u16, str, blob}},
	tMethodPtr:        {"MethodPtr", []column{index(tMethodDef)}},
	tMethodDef:        {"MethodDef", []column{u32, u16, u16, str, blob, index(tParam)}},
	tParamPtr:         {"ParamPtr", []column{index(tParam)}},
	tParam:            {"Param", []column{u16, u16, str}},
	tInterfaceImpl:    {"InterfaceImpl", []column{index(tTypeDef), typeDefOrRef}},
	tMemberRef:        {"MemberRef", []column{memberRefParent, str, blob}},
	tConstant:         {"Constant", []column{u16, hasConstant, blob}},
	tCustomAttribute:  {"CustomAttribute", []column{hasCustomAttribute, customAttributeType, blob}},
	0x0d:              {"FieldMarshal", []column{hasFieldMarshal, blob}},
	tDeclSecurity:     {"DeclSecurity", []column{u16, hasDeclSecurity, blob}},
	0x0f:              {"ClassLayout", []column{u16, u32, index(tTypeDef)}},
	0x10:              {"FieldLayout", []column{u32, index(tField)}},
	tStandAloneSig:    {"StandAloneSig", []column{blob}},
	0x12:              {"EventMap", []column{index(tTypeDef), index(tEvent)}},
	tEventPtr:         {"EventPtr", []column{index(tEvent)}},
	tEvent:            {"Event", []column{u16, str, typeDefOrRef}},
	0x15:              {"PropertyMap", []column{index(tTypeDef), index(tProperty)}},
	tPropertyPtr:      {"PropertyPtr", []column{index(tProperty)}},
	tProperty:         {"Property", []column{u16, str, blob}},
	0x18:              {"MethodSemantics", []column{u16, index(tMethodDef), hasSemantics}},
	0x19:              {"MethodImpl", []column{index(tTypeDef), methodDefOrRef, methodDefOrRef}},
	tModuleRef:        {"ModuleRef", []column{str}},
	tTypeSpec:         {"TypeSpec", []column{blob}},
	0x1c:              {"ImplMap", []column{u16, memberForwarded, str, index(tModuleRef)}},
	0x1d:              {"FieldRVA", []column{u32, index(tField)}},
	0x1e:              {"ENCLog", []column{u32, u32}},
	0x1f:              {"ENCMap", []column{u32}},
	tAssembly:         {"Assembly", []column{u32, u16, u16, u16, u16, u32, blob, str, str}},
	0x21:              {"AssemblyProcessor", []column{u32}},
	0x22:              {"AssemblyOS", []column{u32, u32, u32}},
	tAssemblyRef:      {"AssemblyRef", []column{u16, u16, u16, u16, u32, blob, str, str, blob}},
	0x24:              {"AssemblyRefProcessor", []column{u32, index(tAssemblyRef)}},
	0x25:              {"AssemblyRefOS", []column{u32, u32, u32, index(tAssemblyRef)}},
	tFile:             {"File", []column{u32, str, blob}},
	tExportedType:     {"ExportedType", []column{u32, u32, str, str, implementation}},
	tManifestResource: {"ManifestResource", []column{u32, u32, str, implementation}},
	tNestedClass:      {"NestedClass", []column{index(tTypeDef), index(tTypeDef)}},
	tGenericParam:     {"GenericParam", []column{u16, u16, typeOrMethodDef, str}},
	tMethodSpec:       {"MethodSpec", []column{methodDefOrRef, blob}},
	tGenericParamCons: {"GenericParamConstraint", []column{index(tGenericParam), typeDefOrRef}},

	// Portable PDB.
	tDocument:      {"Document", []column{blob, guid, blob, guid}},
	0x31:           {"MethodDebugInformation", []column{index(tDocument), blob}},
	tLocalScope:    {"LocalScope", []column{index(tMethodDef), index(tImportScope), index(tLocalVariable), index(tLocalConstant), u32, u32}},
	tLocalVariable: {"LocalVariable", []column{u16, u16, str}},
	tLocalConstant: {"LocalConstant", []column{str, blob}},
	tImportScope:   {"ImportScope", []column{index(tImportScope), blob}},
	0x36:           {"StateMachineMethod", []column{index(tMethodDef), index(tMethodDef)}},
	0x37:           {"CustomDebugInformation", []column{hasCustomDebugInformation, guid, blob}},
}

// decode splits a coded index into its table and row. False where its tag is no
// table's.
func decode(c column, v uint32) (t table, rid uint32, ok bool) {
	k := coded[c-firstCoded]
	tag := v & (1<<k.bits - 1)
	if int(tag) >= len(k.tags) || k.tags[tag] == none {
		return 0, 0, false
	}
	return k.tags[tag], v >> k.bits, true
}
