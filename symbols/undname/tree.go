package undname

// quals are the qualifiers of a type or of a member function's this.
type quals uint8

const (
	qConst quals = 1 << iota
	qVolatile
	qRestrict
	qUnaligned
	qPtr64 // __ptr64, which is not written
	qLvalue
	qRvalue
)

type typeKind uint8

const (
	typePlain   typeKind = iota // text
	typeTag                     // class, struct, union, enum: text and name
	typePointer                 // or reference: text is * & or &&
	typeArray
	typeFunction
)

// typeNode is a type.
type typeNode struct {
	kind     typeKind
	quals    quals
	variadic bool
	noexcept bool
	text     string
	name     *qname    // of a tag
	class    *qname    // of a pointer to member
	elem     *typeNode // pointee, element, returned type; nil where none is returned
	dims     *dim
	conv     string // calling convention
	params   *arg
}

type dim struct {
	n    uint64
	next *dim
}

type argKind uint8

const (
	argType    argKind = iota
	argNumber          // num
	argAddress         // &sym
	argSymbol          // sym
	argTuple           // {sym, numbers}
)

// arg is a parameter of a function or an argument of a template.
type arg struct {
	kind argKind
	typ  *typeNode
	sym  *symbol
	num  number
	nums [3]number
	n    int // of nums
	next *arg
}

type number struct {
	abs uint64
	neg bool
}

type partKind uint8

const (
	partPlain      partKind = iota // text
	partAnonymous                  // an anonymous namespace
	partLocal                      // sym and num: a scope in a function
	partCtor                       // class's name, with ~ when text is "~"
	partConversion                 // operator typ
	partLiteral                    // operator ""text
	partDynamic                    // text is the purpose, sym or qual what for
	partRTTIBase                   // nums
	partGuard                      // text, num when it has is set
)

// part is one piece of a qualified name.
type part struct {
	kind     partKind
	text     string
	template bool
	has      bool
	args     *arg
	sym      *symbol
	class    *part
	qual     *qname
	typ      *typeNode
	nums     [4]number
}

// link chains the parts of a name from the outermost in. Parts are shared by
// back-references, links are not.
type link struct {
	part *part
	next *link
}

type qname struct {
	first *link
	leaf  *part
}

type symbolKind uint8

const (
	symFunction symbolKind = iota
	symVariable
	symTable      // vftable and its like: quals, name, target
	symBare       // name alone
	symTypeDesc   // typ and text
	symText       // text as it stands
	symString     // literal
	symVcallThunk // nums[0], typ.conv
)

type access uint8

const (
	accessNone access = iota
	accessPrivate
	accessProtected
	accessPublic
)

// symbol is a whole decorated name.
type symbol struct {
	kind    symbolKind
	access  access
	static  bool
	virtual bool
	externC bool
	noArgs  bool // extern "C" without a signature
	thunk   thunkKind
	quals   quals
	text    string
	lit     literal
	name    *qname
	target  *qname
	typ     *typeNode
	nums    [4]number
}

type thunkKind uint8

const (
	thunkNone thunkKind = iota
	thunkAdjustor
	thunkVtordisp
	thunkVtordispex
)

// slab hands out zeroed values and takes them all back at once, so that a name
// costs no allocation once the memory is warm.
type slab[T any] struct {
	chunks [][]T
	n      int
}

const slabChunk = 32

func (s *slab[T]) new() *T {
	c, i := s.n/slabChunk, s.n%slabChunk
	if c == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	s.n++
	return &s.chunks[c][i]
}

// reset frees everything; an unusually large slab is given back to the heap.
func (s *slab[T]) reset() {
	const keep = 16
	for i := 0; i*slabChunk < s.n && i < keep; i++ {
		clear(s.chunks[i][:min(slabChunk, s.n-i*slabChunk)])
	}
	if len(s.chunks) > keep {
		s.chunks = s.chunks[:keep:keep]
	}
	s.n = 0
}
