package undname

// conventions are the calling conventions by their letter; each has a second
// letter for exported functions.
var conventions = [256]string{
	'A': "__cdecl", 'B': "__cdecl", 'C': "__pascal", 'D': "__pascal", 'E': "__thiscall", 'F': "__thiscall",
	'G': "__stdcall", 'H': "__stdcall", 'I': "__fastcall", 'J': "__fastcall", 'M': "__clrcall", 'N': "__clrcall",
	'O': "__eabi", 'P': "__eabi", 'Q': "__vectorcall",
	'S': "__attribute__((__swiftcall__)) ", 'W': "__attribute__((__swiftasynccall__)) ",
}

// noConvention is __regcall's letter, which is written without a name.
const noConvention = 'w'

// primitives are the built-in types of one letter.
var primitives = [256]string{
	'X': "void", 'C': "signed char", 'D': "char", 'E': "unsigned char", 'F': "short", 'G': "unsigned short",
	'H': "int", 'I': "unsigned int", 'J': "long", 'K': "unsigned long", 'M': "float", 'N': "double", 'O': "long double",
}

// primitives2 are the built-in types that have an underscore before the letter.
var primitives2 = [256]string{
	'N': "bool", 'J': "__int64", 'K': "unsigned __int64", 'W': "wchar_t", 'Q': "char8_t", 'S': "char16_t", 'U': "char32_t",
	'P': "auto", 'T': "decltype(auto)", 'L': "__int128", 'M': "unsigned __int128", // as MSVC and clang write them
}

// operators are the special names "?X".
var operators = [256]string{
	'2': "operator new", '3': "operator delete", '4': "operator=", '5': "operator>>", '6': "operator<<", '7': "operator!",
	'8': "operator==", '9': "operator!=", 'A': "operator[]", 'C': "operator->", 'D': "operator*", 'E': "operator++",
	'F': "operator--", 'G': "operator-", 'H': "operator+", 'I': "operator&", 'J': "operator->*", 'K': "operator/",
	'L': "operator%", 'M': "operator<", 'N': "operator<=", 'O': "operator>", 'P': "operator>=", 'Q': "operator,",
	'R': "operator()", 'S': "operator~", 'T': "operator^", 'U': "operator|", 'V': "operator&&", 'W': "operator||",
	'X': "operator*=", 'Y': "operator+=", 'Z': "operator-=",
}

// operators2 are the special names "?_X".
var operators2 = [256]string{
	'0': "operator/=", '1': "operator%=", '2': "operator>>=", '3': "operator<<=", '4': "operator&=", '5': "operator|=",
	'6': "operator^=", 'D': "`vbase dtor'", 'E': "`vector deleting dtor'", 'F': "`default ctor closure'",
	'G': "`scalar deleting dtor'", 'H': "`vector ctor iterator'", 'I': "`vector dtor iterator'",
	'J': "`vector vbase ctor iterator'", 'K': "`virtual displacement map'", 'L': "`eh vector ctor iterator'",
	'M': "`eh vector dtor iterator'", 'N': "`eh vector vbase ctor iterator'", 'O': "`copy ctor closure'",
	'T': "`local vftable ctor closure'", 'U': "operator new[]", 'V': "operator delete[]",
}

// operators3 are the special names "?__X".
var operators3 = [256]string{
	'A': "`managed vector ctor iterator'", 'B': "`managed vector dtor iterator'", 'C': "`EH vector copy ctor iterator'",
	'D': "`EH vector vbase copy ctor iterator'", 'G': "`vector copy ctor iterator'",
	'H': "`vector vbase copy constructor iterator'", 'I': "`managed vector vbase copy constructor iterator'",
	'L': "operator co_await", 'M': "operator<=>",
}

// tables are the special names of data that belongs to a class.
var tables = map[string]string{
	"_7": "`vftable'", "_8": "`vbtable'", "_S": "`local vftable'", "_R4": "`RTTI Complete Object Locator'",
}
