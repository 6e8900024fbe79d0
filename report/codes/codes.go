// Package codes gives Windows codes their names: exceptions and NTSTATUS
// values, fast-fail subcodes, bugchecks with the meaning of their parameters,
// thread states and wait reasons.
//
// The names are data: one text table a family under tables/, each naming the
// public documentation that it restates, turned into Go by go generate.
// A code that the tables do not hold has no name: every function then returns
// "" and never a guess. Any value is accepted, since codes come from dumps.
package codes

import (
	"slices"
	"strings"
)

//go:generate go test -run TestTablesAreFresh -update

// minidumpBit is set in the bugcheck code of a small dump: 0x1000007e is 0x7e.
const minidumpBit = 0x10000000

// table maps ascending codes to names that lie end to end in one string, so
// that the data costs no pointers.
type table struct {
	codes []uint32
	ends  []uint16 // ends[i] is where the i-th name ends
	names string
}

func (t *table) lookup(code uint32) string {
	i, ok := slices.BinarySearch(t.codes, code)
	if !ok {
		return ""
	}
	start := uint16(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.names[start:t.ends[i]]
}

// Exception names an exception code: by its EXCEPTION_ name where it has one,
// else as a language runtime's code, else as an NTSTATUS value.
func Exception(code uint32) string {
	if s := exceptionTable.lookup(code); s != "" {
		return s
	}
	return ntStatusTable.lookup(code)
}

// Win32Error names an error code of GetLastError as winerror.h does; some functions
// leave an NTSTATUS there.
func Win32Error(code uint32) string {
	if s := win32ErrorTable.lookup(code); s != "" {
		return s
	}
	return NTStatus(code)
}

// NTStatus names an NTSTATUS value as ntstatus.h does.
func NTStatus(code uint32) string { return ntStatusTable.lookup(code) }

// FastFail names the subcode of a fast-fail exception.
func FastFail(sub uint32) string { return fastFailTable.lookup(sub) }

// BugCheck names a bugcheck code, with or without the minidump bit 0x10000000.
// params says what the parameters mean, "" where that is not recorded. live is
// true for codes that mark live dumps only: the system did not stop.
func BugCheck(code uint32) (name string, params [4]string, live bool) {
	i, ok := slices.BinarySearch(bugCheckTable.codes, code)
	if !ok {
		code &^= minidumpBit
		if i, ok = slices.BinarySearch(bugCheckTable.codes, code); !ok {
			return "", params, false
		}
	}
	_, live = slices.BinarySearch(bugCheckLive, code)
	for k, p := range bugCheckParams[code] {
		params[k] = p.Meaning
	}
	return bugCheckTable.lookup(bugCheckTable.codes[i]), params, live
}

// CLRExceptions lists the types of .NET exceptions that have an HRESULT when
// nothing gives them another, the one that the runtime makes of it first; nil when
// no type is known to. A type that is derived from them may have it too.
func CLRExceptions(hresult uint32) []string {
	names := clrExceptionTable.lookup(hresult)
	if names == "" {
		return nil
	}
	return strings.Split(names, "|")
}

// ThreadState names a KTHREAD_STATE.
func ThreadState(n uint8) string { return threadStateTable.lookup(uint32(n)) }

// WaitReason names a KWAIT_REASON.
func WaitReason(n uint8) string { return waitReasonTable.lookup(uint32(n)) }

// IRPMajor names the major function of an IRP.
func IRPMajor(n uint8) string { return irpMajorTable.lookup(uint32(n)) }
