package report

import (
	"cmp"
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
	"dumptriage/triage/bugcheck"
	"dumptriage/triage/crash"
	"dumptriage/unwind"
)

// crashWords says in words what a class is, for those classes that need no
// address or object to say it. A class of a user's own rules is said by its name.
var crashWords = map[crash.Class]string{
	crash.StackOverflow:         "stack overflow",
	crash.HeapCorruption:        "heap corruption",
	crash.FailFast:              "the program ended itself (fail fast)",
	crash.StackCookie:           "a stack buffer was overrun: the /GS cookie is damaged",
	crash.ControlFlowGuard:      "Control Flow Guard stopped a call of an invalid target",
	crash.CorruptList:           "a linked list or tree is damaged",
	crash.InvalidParameter:      "invalid parameter passed to the C runtime",
	crash.Abort:                 "abort",
	crash.Assertion:             "assertion failed",
	crash.PureCall:              "call of a pure virtual function",
	crash.Terminate:             "std::terminate",
	crash.OutOfMemory:           "out of memory",
	crash.CxxException:          "C++ exception",
	crash.CLRException:          ".NET exception",
	crash.LanguageException:     "exception of a language's runtime",
	crash.RaisedException:       "exception that the program raised itself",
	crash.StatusRaised:          "exception with a system status",
	crash.DelayLoad:             "delay-loaded code was not found",
	crash.LoaderFailure:         "a module could not be loaded or initialised",
	crash.InvalidHandle:         "invalid handle",
	crash.BadHandler:            "exception handling failed",
	crash.Deliberate:            "deliberate crash",
	crash.HangReported:          "the system ended a window that did not answer",
	crash.DivideByZero:          "integer division by zero",
	crash.ArithmeticOverflow:    "integer overflow",
	crash.FloatingPoint:         "floating-point exception",
	crash.IllegalInstruction:    "illegal instruction",
	crash.PrivilegedInstruction: "privileged instruction",
	crash.Breakpoint:            "breakpoint",
	crash.DebuggerBreak:         "no fault: a debugger's breakpoint, at the start of the process or on attaching",
	crash.SingleStep:            "single step",
	crash.DumpRequested:         "no fault: the program asked for a dump of itself",
	crash.Unknown:               "exception",
	crash.InPageError:           "the file behind mapped memory could not be read",
	crash.AccessViolation:       "access violation",
	crash.GuardPage:             "a guard page was touched",
	crash.MisalignedData:        "access of misaligned data",
}

// accessWords put an access into words, with %s for what was tried.
var accessWords = map[crash.Class]string{
	crash.NullPointer:    "%s through a null pointer",
	crash.NonCanonical:   "%s a non-canonical address",
	crash.WildPointer:    "%s unmapped memory",
	crash.UseAfterFree:   "%s through a pointer read from freed memory",
	crash.Uninitialized:  "%s through a pointer never initialised",
	crash.OutOfBounds:    "%s through a pointer read from outside a block of memory",
	crash.UnloadedModule: "%s a module that had been unloaded",
	crash.ExecuteData:    "%s memory that is not code",
	crash.WriteReadOnly:  "%s read-only memory",
	crash.KernelAddress:  "%s an address of the system's half",
}

// crashReason is a crash in one sentence.
func crashReason(inc *triage.Incident, v *crash.Verdict, arch dump.Arch) string {
	var parts []string
	if form, ok := accessWords[v.Class]; ok {
		parts = append(parts, fmt.Sprintf(form, accessVerb(v, form)))
		if s := accessPlace(v, arch); s != "" {
			parts[0] += s
		}
	} else {
		parts = append(parts, joinWith(": ", cmp.Or(crashWords[v.Class], string(v.Class)), crashDetail(inc, v)))
		if v.HasAddress && v.Class != crash.StackOverflow {
			parts = append(parts, strings.TrimSpace(string(v.Access)+" of "+address(v.Address, arch)))
		}
	}
	if v.Pattern != nil {
		parts = append(parts, v.Pattern.Meaning)
	}
	if v.HasStatus {
		parts = append(parts, statusName(v.Status))
	}
	if r := v.Recursion; r != nil {
		parts = append(parts, recursionWords(crashedFrames(inc), r))
	}
	return strings.Join(parts, ", ")
}

// accessVerb fits the verb of an access to the words that follow.
func accessVerb(v *crash.Verdict, form string) string {
	through := strings.HasPrefix(form, "%s through")
	switch v.Access {
	case crash.Read, crash.Write:
		if through {
			return string(v.Access)
		}
		return map[crash.Access]string{crash.Read: "read of", crash.Write: "write to"}[v.Access]
	case crash.Execute:
		if through {
			return "call"
		}
		return "execution of"
	}
	if through {
		return "access"
	}
	return "access of"
}

func accessPlace(v *crash.Verdict, arch dump.Arch) string {
	switch {
	case !v.HasAddress:
		return ""
	case v.Class == crash.NullPointer && v.Address == 0:
		return ""
	case v.Class == crash.NullPointer && v.Address < 1<<16:
		return fmt.Sprintf(" at offset %#x", v.Address)
	case v.Class == crash.NullPointer:
		return fmt.Sprintf(" at offset -%#x", -v.Address&(1<<(8*arch.PointerSize()-1)-1))
	case v.Class == crash.NonCanonical && v.Address == ^uint64(0):
		return " that is not known"
	case v.Target != nil && v.Target.Unloaded != nil && v.Class == crash.UnloadedModule:
		return fmt.Sprintf(": %s+%#x", v.Target.Unloaded.Module.Name(), v.Target.Unloaded.Offset)
	}
	return ", " + address(v.Address, arch)
}

// crashDetail is what the exception itself says besides its class.
func crashDetail(inc *triage.Incident, v *crash.Verdict) string {
	c := inc.Crash
	var thrown string
	if t := v.Thrown; t != nil {
		if len(t.Types) > 0 {
			thrown = t.Types[0]
		}
		if t.Message != "" {
			thrown = strings.TrimSpace(thrown + fmt.Sprintf(" %q", t.Message))
		}
		if t.Again {
			thrown += ", raised again (as its record on the stack has it)"
		}
		if t.HasHR && thrown == "" {
			thrown = hresultWords(t)
		}
	}
	sub := ""
	switch {
	case v.HasSubCode:
		sub = CrashType(&c.Exception)
	case v.Class == crash.RaisedException, v.Class == crash.LanguageException, v.Class == crash.StatusRaised, v.Class == crash.LoaderFailure, v.Class == crash.Unknown,
		v.Class == crash.FloatingPoint, v.Class == crash.BadHandler:
		if sub = codes.Exception(c.Code); sub == "" {
			sub = hex32(c.Code)
		}
	}
	assertion := ""
	if c.Assertion != "" {
		assertion = fmt.Sprintf("%q", c.Assertion)
	}
	heap := ""
	if f := v.Heap; f != nil {
		if heap = heapWords[f.Name]; heap == "" {
			heap = joinWith(" ", fmt.Sprintf("failure %d", f.Type), f.Name)
		}
	}
	return joinWith(", ", thrown, sub, heap, v.Detail, assertion)
}

// hresultWords say what a .NET exception's HRESULT tells of its type.
func hresultWords(t *crash.Thrown) string {
	if len(t.ByHResult) == 0 {
		return "HRESULT " + hex32(t.HResult)
	}
	last := len(t.ByHResult) - 1
	types := t.ByHResult[last]
	if last > 0 {
		types = strings.Join(t.ByHResult[:last], ", ") + " or " + types
	}
	return types + " by its HRESULT " + hex32(t.HResult)
}

func recursionWords(frames []triage.Frame, r *crash.Recursion) string {
	more := ""
	if r.AtLeast {
		more = "at least "
	}
	s := fmt.Sprintf("%s %s%s", plural(r.Frames, "frame"), "repeated "+more, plural(r.Rounds, "time"))
	if r.Estimate > uint64(r.Rounds) {
		s += fmt.Sprintf(" (about %d by the size of the stack)", r.Estimate)
	}
	for i := r.From; i < min(r.From+r.Frames, len(frames)); i++ {
		if frames[i].Trust == unwind.TrustScan {
			return s + " as a scan of the stack has it"
		}
	}
	return s
}

// inconsistencyWords say what cannot have been.
var inconsistencyWords = map[crash.Inconsistency]string{
	crash.DivideNotPossible:    "a division by zero, at an instruction that does not divide",
	crash.NotPrivileged:        "a privileged instruction, at one that is not",
	crash.FalselyNonCanonical:  "a non-canonical address, at an instruction whose addresses are not",
	crash.AccessWasAllowed:     "the memory's protection allows the access",
	crash.AccessNotInstruction: "the instruction does not touch the address",
	crash.StackPointerAway:     "the stack pointer is on no stack",
}

// heapWords say what a heap found.
var heapWords = map[string]string{
	"internal":                      "an error of the heap itself",
	"generic":                       "damage of no certain kind",
	"entry_corruption":              "the header of a block is overwritten",
	"multiple_entries_corruption":   "the headers of several blocks are overwritten",
	"virtual_block_corruption":      "the header of a large block is overwritten",
	"buffer_overrun":                "a block was written to past its end",
	"buffer_underrun":               "a block was written to in front of its start",
	"block_not_busy":                "a block that is free was freed again, resized or asked for its size",
	"invalid_argument":              "an address was freed, resized or asked for its size that is no block",
	"invalid_allocation_type":       "the type of an allocation is not valid",
	"usage_after_free":              "a block was written to that is free",
	"cross_heap_operation":          "a block was freed or resized in another heap than its own",
	"freelists_corruption":          "the list of free blocks is damaged",
	"listentry_corruption":          "a list of the heap is damaged",
	"lfh_bitmap_mismatch":           "the map of small blocks does not fit the blocks",
	"segment_lfh_bitmap_corruption": "the map of small blocks is damaged",
	"segment_lfh_double_free":       "a small block was freed twice",
	"vs_subsegment_corruption":      "a run of blocks of various sizes is damaged",
	"null_heap":                     "the heap's handle is null",
	"allocation_limit":              "the limit of an allocation was reached",
	"commit_limit":                  "the limit of memory was reached",
	"invalid_va_mgr_query":          "the manager of the heap's address space was asked for what is not valid",
}

// nextWords say what to do; %s stands for the dump and %m for modules. Brief
// output cuts them, so the command comes before the modules.
var nextWords = map[crash.NextKind]string{
	crash.NextImages:   "for certain stacks give --images DIR; dumptriage symbols list %s tells which: %m",
	crash.NextSymbols:  "for names and lines give --symbols DIR with the symbols of %m",
	crash.NextPageHeap: "run it with page heap (Application Verifier) or AddressSanitizer: they stop where the damage is done",
	crash.NextMemory:   "take a full dump (procdump -ma): this one lacks the memory of the exception's object",
	crash.NextRegions:  "take a dump with a list of memory (procdump -ma or -mp): this one does not say what is mapped",
	crash.NextHardware: "test the machine's memory, and see whether the crash comes from this machine alone",
	crash.NextDump:     "for a hang see every stack: dumptriage stacks --unique %s",
}

func nextStep(inc *triage.Incident, n *crash.Next) string {
	return stepText(inc, nextWords[n.Kind], n.Modules)
}

// bugSteps are the next steps after a bugcheck: what makes more of this dump comes
// before what the next one needs.
func bugSteps(inc *triage.Incident, v *bugcheck.Verdict) []string {
	var steps []string
	if len(v.Lacking) > 0 {
		steps = append(steps, stepText(inc, nextWords[crash.NextImages], v.Lacking))
	}
	for _, s := range v.Steps {
		steps = append(steps, stepText(inc, s, nil))
	}
	return steps
}

// stepText puts modules and the dump's path into a next step.
func stepText(inc *triage.Incident, text string, modules []*triage.Module) string {
	var names []string
	for _, m := range modules {
		names = append(names, m.Name())
	}
	const shownModules = 4
	if len(names) > shownModules {
		names = append(names[:shownModules], fmt.Sprintf("%d more", len(names)-shownModules))
	}
	file := "FILE"
	if len(inc.Inputs) > 0 {
		file = inc.Inputs[0].Path
	}
	if strings.ContainsAny(file, " \t&()'") {
		file = `"` + file + `"`
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "%m", strings.Join(names, ", ")), "%s", file)
}
