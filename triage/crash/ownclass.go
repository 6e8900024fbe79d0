package crash

import (
	"fmt"
	"slices"
	"strings"

	"dumptriage/triage/rules"
)

// Classes are all classes of this package. Rules may give others, which are their own.
var Classes = []Class{
	NullPointer, NonCanonical, WildPointer, UseAfterFree, Uninitialized, OutOfBounds, UnloadedModule,
	ExecuteData, WriteReadOnly, KernelAddress, GuardPage, MisalignedData, AccessViolation, StackOverflow,
	InPageError, HeapCorruption, FailFast, StackCookie, ControlFlowGuard, CorruptList, InvalidParameter,
	Abort, Assertion, PureCall, Terminate, OutOfMemory, CxxException, CLRException, LanguageException,
	RaisedException, StatusRaised, DelayLoad, LoaderFailure, InvalidHandle, BadHandler, Deliberate,
	HangReported, DivideByZero, ArithmeticOverflow, FloatingPoint, IllegalInstruction, PrivilegedInstruction,
	Breakpoint, DebuggerBreak, SingleStep, DumpRequested, Unknown,
}

// checkClass says what is wrong with a rule of [class], "" nothing.
func checkClass(r *rules.Rule) string {
	if r.Attrs["class"] == "" {
		return "a [class] rule wants class="
	}
	if r.Attrs["from"] == "" {
		return "a [class] rule wants from=, the classes that it may refine, or *"
	}
	for word := range strings.SplitSeq(r.Attrs["from"], ",") {
		if word != "*" && word != "access" && !slices.Contains(Classes, Class(word)) {
			return fmt.Sprintf("from=%s; there are %s, access, *", rules.Quote(word), classList())
		}
	}
	return ""
}

func classList() string {
	var all []string
	for _, c := range Classes {
		all = append(all, string(c))
	}
	return strings.Join(all, ", ")
}

// OwnClasses are the rules that give a class which is none of this package's.
func OwnClasses(list []rules.Rule) []rules.Rule {
	var own []rules.Rule
	for _, r := range list {
		if r.Section == "class" && !slices.Contains(Classes, Class(r.Attrs["class"])) {
			own = append(own, r)
		}
	}
	return own
}
