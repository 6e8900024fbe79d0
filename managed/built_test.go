package managed

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// memory is what a process of the tests has: pieces by address.
type memory map[uint64][]byte

func (m memory) ReadAt(p []byte, va uint64) (int, error) {
	for base, b := range m {
		if va >= base && va-base < uint64(len(b)) {
			n := copy(p, b[va-base:])
			if n < len(p) {
				return n, &dump.MemoryError{VA: va + uint64(n), Size: len(p) - n}
			}
			return n, nil
		}
	}
	return 0, &dump.MemoryError{VA: va, Size: len(p)}
}

// put writes little-endian values of 8 bytes at an offset of a piece.
func put(b []byte, off int, values ...uint64) {
	for i, v := range values {
		binary.LittleEndian.PutUint64(b[off+8*i:], v)
	}
}

func put32(b []byte, off int, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
func put16(b []byte, off int, v uint16) { binary.LittleEndian.PutUint16(b[off:], v) }

// The addresses of the process that process makes. Offsets in its structures are
// those measured in the win-x64 runtime of .NET 10.0.9.
const (
	mapVA     = 0x10_0000
	levelsVA  = 0x20_0000
	sectionVA = 0x30_0000
	heapVA    = 0x31_0000
	nibblesVA = 0x32_0000
	headerVA  = 0x33_0000
	methodsVA = 0x40_0000
	typesVA   = 0x41_0000
	moduleVA  = 0x42_0000
	threadsVA = 0x50_0000
	objectsVA = 0x60_0000
	imageVA   = 0x70_0000
	codeVA    = 0x7ff0_0002_0000 // 128 KiB in its range of the map
	stubsVA   = 0x7ff0_0006_0000
)

// tenLayout is the layout of the tests' process.
func tenLayout() *layout {
	f := func(size uint64, pairs ...any) typeLayout {
		t := typeLayout{size: size, fields: map[string]uint64{}}
		for i := 0; i < len(pairs); i += 2 {
			t.fields[pairs[i].(string)] = uint64(pairs[i+1].(int))
		}
		return t
	}
	return &layout{
		pointer: 8, contracts: map[string]string{"ExecutionManager": "2"},
		globals: map[string]global{
			"ThreadStore": {value: threadsVA}, "StringMethodTable": {value: threadsVA + 8},
			"MethodDescTokenRemainderBitCount": {value: 12}, "MethodDescAlignment": {value: 8},
			"ObjectToMethodTableUnmask": {value: 7}, "StubCodeBlockLast": {value: 15},
		},
		types: map[string]typeLayout{
			"RangeSectionMap":      f(0, "TopLevelData", 0),
			"RangeSectionFragment": f(0, "Next", 0, "RangeBegin", 8, "RangeEndOpen", 16, "RangeSection", 24),
			"RangeSection":         f(0, "RangeBegin", 0, "RangeEndOpen", 8, "Flags", 16, "JitManager", 24, "R2RModule", 32, "HeapList", 40),
			"CodeHeapListNode":     f(0, "Next", 0, "StartAddress", 16, "EndAddress", 24, "MapBase", 32, "HeaderMap", 40),
			"RealCodeHeader":       f(0, "MethodDesc", 24, "NumUnwindInfos", 32, "UnwindInfos", 36),
			"MethodDesc":           f(16, "Flags3AndTokenRemainder", 0, "ChunkIndex", 2, "Flags", 6),
			"MethodDescChunk":      f(24, "MethodTable", 0, "FlagsAndTokenRange", 18),
			"DynamicMethodDesc":    f(48, "MethodName", 32),
			"MethodTable":          f(64, "MTFlags", 0, "MTFlags2", 8, "ParentMethodTable", 16, "Module", 24, "EEClassOrCanonMT", 40, "PerInstInfo", 48),
			"Module":               f(0, "Path", 176, "FileName", 184, "PEAssembly", 192, "DynamicMetadata", 744),
			"PEAssembly":           f(0, "PEImage", 8),
			"PEImage":              f(0, "LoadedImageLayout", 128),
			"PEImageLayout":        f(0, "Base", 8, "Size", 16, "Flags", 20),
			"ThreadStore":          f(0, "FirstThreadLink", 64),
			"Thread":               f(0, "State", 0, "Id", 16, "LinkNext", 120, "OSId", 304, "GCHandle", 312, "LastThrownObject", 344, "ExceptionTracker", 360),
			"ExceptionInfo":        f(0, "PreviousNestedInfo", 0, "ThrownObject", 8),
			"Object":               f(0, "m_pMethTab", 0),
			"String":               f(0, "m_StringLength", 8, "m_FirstChar", 12),
			"Exception":            f(0, "_message", 16, "_innerException", 32, "_stackTrace", 48, "_HResult", 108),
			"Array":                f(16, "m_NumComponents", 8),
		},
	}
}

// mapCode puts an address's range into the map of code ranges: five levels of tables
// by eight bits each, from bit 49 down to bit 17, then a list.
func mapCode(mem memory, va, section uint64) {
	at := uint64(mapVA)
	for i, shift := range []uint{49, 41, 33, 25, 17} {
		if mem[at] == nil {
			mem[at] = make([]byte, 256*8)
		}
		next := levelsVA + uint64(i)*0x1000
		if i == 4 {
			next = sectionVA + 0x1000 + uint64(len(mem))*64
			fragment := make([]byte, 32)
			put(fragment, 8, va&^0x1ffff, va&^0x1ffff+0x20000, section)
			mem[next] = fragment
			next |= 1 // as if its code could be unloaded
		}
		put(mem[at], int(va>>shift&255)*8, next)
		at = next
	}
}

// process makes a process with one code heap, whose methods are a method of the
// assembly names.dll (by its row), a dynamic one and a stub, and a range of stubs.
func process(t testing.TB, row uint32) (memory, *Runtime) {
	t.Helper()
	dll, err := os.ReadFile("metadata/testdata/names.dll")
	if err != nil {
		t.Fatal(err)
	}
	mem := memory{imageVA: dll}
	section, stubs := make([]byte, 72), make([]byte, 72)
	put(section, 0, codeVA, codeVA+0x20000)
	put32(section, 16, 2)
	put(section, 40, heapVA)
	put(stubs, 0, stubsVA, stubsVA+0x20000)
	put32(stubs, 16, 4)
	mem[sectionVA], mem[sectionVA+0x100] = section, stubs
	mapCode(mem, codeVA, sectionVA)
	mapCode(mem, stubsVA, sectionVA+0x100)

	heap := make([]byte, 48)
	put(heap, 16, codeVA+0x40, codeVA+0x10000, codeVA, nibblesVA)
	mem[heapVA] = heap
	// Methods at +0x48 (two functions), +0x400 (dynamic) and +0x500 (a stub).
	code, nibbles := make([]byte, 0x600), make([]byte, 0x1000)
	put(code, 0x40, headerVA)
	put(code, 0x3f8, headerVA+0x80)
	put(code, 0x4f8, 6)
	put32(nibbles, 0, 0x00300000)   // bucket 2 (bytes 40h to 5fh), 8 bytes in: 3
	put32(nibbles, 4*4, 0x10000000) // bucket 32 (400h): 1
	put32(nibbles, 4*5, 0x10000000) // bucket 40 (500h): 1
	put32(nibbles, 4*1, 0x40|(2+9)) // 100h to 1ffh lie in the method at 48h: 40h + 2*4
	mem[codeVA], mem[nibblesVA] = code, nibbles

	headers := make([]byte, 0x100)
	put(headers, 24, methodsVA+24+0x20)
	put32(headers, 32, 2)
	for i, v := range []uint32{0x48, 0x180, 0x900, 0x180, 0x200, 0x910} {
		put32(headers, 36+4*i, v)
	}
	put(headers, 0x80+24, methodsVA+0x200)
	put32(headers, 0x80+32, 1)
	put32(headers, 0x80+36, 0x400)
	mem[headerVA] = headers

	// The chunk, its MethodDesc with index 4, and the dynamic one.
	methods := make([]byte, 0x300)
	put(methods, 0, typesVA)
	put16(methods, 18, uint16(row>>12))
	put16(methods, 24+0x20, uint16(row&0xfff)|0x4000) // a flag above the token's bits
	methods[24+0x20+2] = 4
	put16(methods, 0x200+6, 7)
	put(methods, 0x200+32, methodsVA+0x2c0)
	copy(methods[0x2c0:], "IL_STUB_Test\x00")
	mem[methodsVA] = methods

	mem[typesVA] = make([]byte, 0x400) // rows of types, 0x40 bytes each; the first is nothing's
	for i := range 8 {
		put32(mem[typesVA], 0x40*i+8, uint32(i+2)<<8)
		put(mem[typesVA], 0x40*i+24, moduleVA)
	}
	module := make([]byte, 1024)
	put(module, 192, moduleVA+800)
	put(module, 800+8, moduleVA+840)
	mem[moduleVA] = module
	image := make([]byte, 256)
	put(image, 128, moduleVA+0x2100)
	put(module, 800+8, moduleVA+0x2000)
	mem[moduleVA+0x2000] = image
	flat := make([]byte, 32)
	put(flat, 8, imageVA)
	put32(flat, 16, uint32(len(dll)))
	mem[moduleVA+0x2100] = flat

	r, err := Open(Options{Memory: mem, Arch: dump.AMD64})
	if err != nil {
		t.Fatal(err)
	}
	r.l, r.Contracts, r.codeMap = tenLayout(), true, mapVA
	return mem, r
}

// methodLine is a method in the list of names.dll that Mono.Cecil wrote.
var methodLine = regexp.MustCompile(`^06([0-9a-f]{6}) \S+ \S+ \d+ (.*\)) `)

// methodRows are the methods of names.dll by their rows: "Ns.Type.Name(Int32)".
func methodRows(t testing.TB) map[uint32]string {
	t.Helper()
	b, err := os.ReadFile("metadata/testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint32]string{}
	for line := range strings.Lines(string(b)) {
		if g := methodLine.FindStringSubmatch(line); g != nil {
			row, _ := strconv.ParseUint(g[1], 16, 32)
			out[uint32(row)] = g[2]
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d methods in the golden list", len(out))
	}
	return out
}

func TestCode(t *testing.T) {
	_, r := process(t, 1)
	for _, tc := range []struct {
		at    uint64
		want  Code
		found bool
	}{
		{codeVA + 0x47, Code{}, false}, // before the first method
		{codeVA + 0x48, Code{KindJIT, codeVA + 0x48, methodsVA + 0x38, headerVA + 36, codeVA, 2, 0}, true},
		{codeVA + 0xff, Code{KindJIT, codeVA + 0x48, methodsVA + 0x38, headerVA + 36, codeVA, 2, 0}, true},  // the word before tells
		{codeVA + 0x100, Code{KindJIT, codeVA + 0x48, methodsVA + 0x38, headerVA + 36, codeVA, 2, 0}, true}, // a word that is a start
		{codeVA + 0x210, Code{KindJIT, codeVA + 0x48, methodsVA + 0x38, headerVA + 36, codeVA, 2, 0}, true}, // the one before is
		{codeVA + 0x310, Code{}, false}, // no word near tells: the constant map looks no further
		{codeVA + 0x400, Code{KindJIT, codeVA + 0x400, methodsVA + 0x200, headerVA + 0x80 + 36, codeVA, 1, 0}, true},
		{codeVA + 0x520, Code{Kind: KindStub, Start: codeVA + 0x500}, true},
		{stubsVA + 5, Code{Kind: KindStub}, true},
		{codeVA + 0x1_8000, Code{}, false}, // behind the heap's end
		{0x1234, Code{}, false},
		{1 << 63, Code{}, false},
	} {
		c, ok, err := r.Code(tc.at)
		if err != nil || ok != tc.found || c != tc.want {
			t.Errorf("%#x: %+v, %v, %v; want %+v", tc.at, c, ok, err, tc.want)
		}
	}
}

func TestMethod(t *testing.T) {
	for row, want := range methodRows(t) {
		_, r := process(t, row)
		m, err := r.Method(codeVA + 0x50)
		if err != nil || m.Token != methodDef|row || m.Declaration() != want || !strings.HasPrefix(want, m.FullName()+"(") || m.Start != codeVA+0x48 || m.Module != "names.dll" {
			t.Errorf("%+v, %v; want %s", m, err, want)
		}
	}
	const row = 1
	_, r := process(t, row)
	m, err := r.Method(codeVA + 0x410)
	if err != nil || m.Kind != KindDynamic || m.FullName() != "DynamicClass.IL_STUB_Test" || m.Token != 0 {
		t.Errorf("dynamic method: %+v, %v", m, err)
	}
	if m, err = r.Method(codeVA + 0x510); err != nil || m.Kind != KindStub || m.Name != "" {
		t.Errorf("stub: %+v, %v", m, err)
	}
	// Without the assembly there is a token and no name; without the chunk nothing.
	_, r = process(t, row)
	delete(r.mem.(memory), imageVA)
	if m, err = r.Method(codeVA + 0x50); err == nil || m.Name != "" || m.Token != methodDef|row || m.Note == "" {
		t.Errorf("without the assembly: %+v, %v", m, err)
	}
	_, r = process(t, row)
	delete(r.mem.(memory), methodsVA)
	if m, err = r.Method(codeVA + 0x50); err == nil || m.Name != "" || m.Token != 0 || m.Note == "" {
		t.Errorf("without its MethodDesc: %+v, %v", m, err)
	}
}

// TestLegacy: a runtime without a descriptor is followed by the code heap that the
// system knows of; its methods have no names.
func TestLegacy(t *testing.T) {
	mem, _ := process(t, 1)
	manager := make([]byte, 32)
	put(manager, 16, heapVA)
	mem[0x9_0000] = manager
	r, err := Open(Options{Memory: mem, Arch: dump.AMD64, Heaps: []Heap{{Min: codeVA, Max: codeVA + 0x20000, Manager: 0x9_0000}}})
	if err != nil {
		t.Fatal(err)
	}
	put32(mem[nibblesVA], 4, 0) // the linear map has no words that are starts
	c, ok, err := r.Code(codeVA + 0x310)
	if err != nil || !ok || c.Start != codeVA+0x48 || c.Base != codeVA || c.Count != 2 {
		t.Errorf("%+v, %v, %v", c, ok, err)
	}
	m, _ := r.Method(codeVA + 0x310)
	if m == nil || m.Name != "" || m.Source != SourceLayout || m.Note == "" {
		t.Errorf("%+v", m)
	}
}

// threads adds two threads, the second with an exception, and a Thread object with a
// name. names.dll has no type called System.Threading.Thread: the name is not told.
func threads(mem memory) {
	mem[threadsVA] = make([]byte, 16)
	put(mem[threadsVA], 0, threadsVA+0x100, typesVA+0x100)
	store := make([]byte, 128)
	put(store, 64, threadsVA+0x1000+120)
	mem[threadsVA+0x100] = store
	one, two := make([]byte, 512), make([]byte, 512)
	put32(one, 16, 1)
	put(one, 120, threadsVA+0x2000+120)
	put(one, 304, 0xdead_0000_0024)
	put32(two, 0, threadDead|0x200)
	put32(two, 16, 7)
	put(two, 304, 0x128)
	put(two, 344, objectsVA+0x800)
	mem[threadsVA+0x1000], mem[threadsVA+0x2000] = one, two
	objects := make([]byte, 0x900)
	put(objects, 0, typesVA+0x40, 0, objectsVA+0x200, 0, objectsVA+0x100) // message, inner
	put32(objects, 108, 0x80131509)
	put(objects, 0x100, typesVA+0x80, 0, 0, 0, objectsVA) // its inner one is the outer
	put32(objects, 0x100+108, 0x80004003)
	put(objects, 0x200, typesVA+0x100)
	text := utf16.Encode([]rune("no luck"))
	put32(objects, 0x208, uint32(len(text)))
	for i, u := range text {
		put16(objects, 0x20c+2*i, u)
	}
	put(objects, 0x800, objectsVA)
	mem[objectsVA] = objects
}

func TestThreads(t *testing.T) {
	mem, r := process(t, 1)
	threads(mem)
	all, err := r.Threads()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if all[0].ID != 1 || all[0].OSID != 0x24 || all[0].Exception != nil || all[1].ID != 7 || all[1].OSID != 0 {
		t.Errorf("%+v", all)
	}
	e := all[1].Exception
	if e == nil || e.Type == "" || e.Message != "no luck" || e.HResult != 0x80131509 || !all[1].LastThrown {
		t.Fatalf("%+v", e)
	}
	if len(e.Inner) != 1 || e.Inner[0].HResult != 0x80004003 || e.Inner[0].Message != "" || e.Inner[0].Type == e.Type {
		t.Errorf("inner exceptions that return to the outer: %+v", e.Inner)
	}
	put(mem[threadsVA+0x2000], 120, threadsVA+0x1000+120)
	if all, err = r.Threads(); dump.AsError(err).Code != dump.Cycle || len(all) != 2 {
		t.Errorf("a list that returns: %d threads, %v", len(all), err)
	}
	delete(mem, threadsVA+0x2000)
	if all, err = r.Threads(); err == nil || len(all) != 1 {
		t.Errorf("a thread that is missing: %d threads, %v", len(all), err)
	}
}

// TestFragments: a list of ranges that returns ends.
func TestFragments(t *testing.T) {
	mem, r := process(t, 1)
	for va, b := range mem {
		if va > sectionVA+0x1000 && va < heapVA && len(b) == 32 {
			put(b, 0, va, 1<<62, 1<<62+1)
		}
	}
	if _, ok, err := r.Code(codeVA + 0x48); ok || dump.AsError(err).Code != dump.Limit {
		t.Errorf("%v, %v", ok, err)
	}
}

// FuzzRuntime: whatever bytes the structures have, questions are answered.
func FuzzRuntime(f *testing.F) {
	f.Add(uint32(0), uint64(0), uint64(codeVA))
	f.Add(uint32(0x18), uint64(1<<63), uint64(codeVA+0x50))
	f.Add(uint32(120), ^uint64(0), uint64(stubsVA))
	f.Fuzz(func(t *testing.T, at uint32, v, ip uint64) {
		mem, r := process(t, 1)
		threads(mem)
		keys := slices.Sorted(maps.Keys(mem))
		b := mem[keys[int(at>>16)%len(keys)]]
		if len(b) >= 8 {
			put(b, int(at&0xffff)%(len(b)-7), v)
		}
		for _, ip := range []uint64{ip, codeVA + 0x48, codeVA + 0x210, codeVA + 0x400, stubsVA} {
			r.Code(ip)
			if m, err := r.Method(ip); m == nil && err == nil && ip == stubsVA && len(b) == 0 {
				t.Fatal("the stub is lost")
			}
		}
		r.Threads()
		r.Exception(v)
	})
}

// TestTypeOfItself: a type that is each of its own sixteen arguments has a name of
// bounded length.
func TestTypeOfItself(t *testing.T) {
	mem, r := process(t, 1)
	r.l.types["GenericsDictInfo"] = typeLayout{size: 8, fields: map[string]uint64{"NumDicts": 4, "NumTypeArgs": 6}}
	put32(mem[typesVA], 0, 0x10) // with generic arguments
	put(mem[typesVA], 48, typesVA+0x300)
	put16(mem[typesVA], 0x2f8+4, 1)
	put16(mem[typesVA], 0x2f8+6, maxTypeArgs)
	put(mem[typesVA], 0x300, typesVA+0x310)
	for i := range maxTypeArgs {
		put(mem[typesVA], 0x310+8*i, typesVA)
	}
	name := r.typeName(typesVA, 0)
	if n := len(name.String()); len(name.args) != maxTypeArgs || n > (maxTypeArgs+1)*(maxTypeText+2) {
		t.Errorf("%d arguments, %d bytes", len(name.args), n)
	}
	if !strings.Contains(name.args[0], "[...]") {
		t.Errorf("%.80s", name.args[0])
	}
}

// TestExhausted: when more was read of the runtime's structures than is allowed, what
// is asked is unknown, and said to be.
func TestExhausted(t *testing.T) {
	mem, r := process(t, 1)
	threads(mem)
	if err := r.Exhausted(); err != nil {
		t.Error(err)
	}
	r.left = 3
	if m, err := r.Method(codeVA + 0x50); m != nil || dump.AsError(err).Code != dump.Limit {
		t.Errorf("%+v, %v", m, err)
	}
	if all, err := r.Threads(); len(all) != 0 || dump.AsError(err).Code != dump.Limit || r.Exhausted() == nil {
		t.Errorf("%+v, %v, %v", all, err, r.Exhausted())
	}
}

// TestAheadBudget: when the images that were opened have too many methods, no further one
// is opened.
func TestAheadBudget(t *testing.T) {
	b := AheadBudget{maxAhead}
	if _, err := b.Open(openNames(t), 0, "names.dll"); dump.AsError(err).Code != dump.UnsupportedFormat {
		t.Errorf("within the budget: %v", err)
	}
	b.used++
	if _, err := b.Open(openNames(t), 0, "names.dll"); dump.AsError(err).Code != dump.Limit {
		t.Errorf("beyond it: %v", err)
	}
}

// openNames opens an assembly that has nothing but IL.
func openNames(t *testing.T) *pdata.Image {
	t.Helper()
	b, err := os.ReadFile("metadata/testdata/names.dll")
	if err != nil {
		t.Fatal(err)
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), "names.dll")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestModuleBudget: a process with more modules, or more metadata, than a sound one has no
// names from the others, and it is said.
func TestModuleBudget(t *testing.T) {
	for what, spend := range map[string]func(*Runtime){
		"bytes": func(r *Runtime) { r.opened = maxMetadataBytes + 1 },
		"modules": func(r *Runtime) {
			for i := range maxModules {
				r.modules[uint64(i)<<40] = &Module{}
			}
		},
	} {
		_, r := process(t, 1)
		if m, err := r.Method(codeVA + 0x50); err != nil || m.Name == "" || r.Exhausted() != nil {
			t.Fatalf("%s: within the budget: %+v, %v", what, m, err)
		}
		_, r = process(t, 1)
		spend(r)
		m, err := r.Method(codeVA + 0x50)
		if dump.AsError(err).Code != dump.Limit || m == nil || m.Name != "" || m.Note == "" {
			t.Errorf("%s: beyond the budget: %+v, %v", what, m, err)
		}
		if e := r.Exhausted(); e == nil || dump.AsError(e).Code != dump.Limit {
			t.Errorf("%s: %v", what, e)
		}
	}
	_, r := process(t, 1)
	if _, err := r.Method(codeVA + 0x50); err != nil || r.opened == 0 {
		t.Errorf("the metadata that was opened is not counted: %v", err)
	}
}
