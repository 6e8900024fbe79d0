package codes

import "slices"

// Param is what a bugcheck's parameter means.
type Param struct {
	Meaning string
	Kind    ParamKind
}

// ParamKind says how a parameter's value is to be read.
type ParamKind string

// The kinds. Values of every kind may have names of their own: see BugCheckValue.
const (
	KindNumber   ParamKind = ""         // nothing is known of it
	KindAddress  ParamKind = "addr"     // of data
	KindCode     ParamKind = "ip"       // of an instruction
	KindStatus   ParamKind = "status"   // NTSTATUS or exception code, perhaps sign-extended
	KindTrap     ParamKind = "trap"     // of a KTRAP_FRAME
	KindContext  ParamKind = "cxr"      // of a CONTEXT
	KindRecord   ParamKind = "exr"      // of an EXCEPTION_RECORD
	KindDecimal  ParamKind = "dec"      // a count or a time
	KindIRQL     ParamKind = "irql"     // an interrupt request level
	KindValue    ParamKind = "val"      // one of a few values
	KindSub      ParamKind = "sub"      // says what the other parameters mean
	KindFastFail ParamKind = "fastfail" // the subcode of a fast fail
	KindTag      ParamKind = "tag"      // a pool tag, four characters
	KindThread   ParamKind = "thread"   // of an ETHREAD
	KindProcess  ParamKind = "process"  // of an EPROCESS
	KindIRP      ParamKind = "irp"      // of an IRP
	KindDevice   ParamKind = "device"   // of a DEVICE_OBJECT
	KindDriver   ParamKind = "driver"   // of a DRIVER_OBJECT
	KindText     ParamKind = "text"     // of a string of bytes
	KindUnicode  ParamKind = "unicode"  // of a UNICODE_STRING
	KindWHEA     ParamKind = "whea"     // of a WHEA_ERROR_RECORD
	KindPower    ParamKind = "power"    // of a TRIAGE_9F_POWER
	KindPnP      ParamKind = "pnp"      // of a TRIAGE_9F_PNP
	KindFxDevice ParamKind = "fxdevice" // of a POP_FX_DEVICE
	KindDPC      ParamKind = "dpc"      // of a DPC_WATCHDOG_GLOBAL_TRIAGE_BLOCK
	KindPRCB     ParamKind = "prcb"     // of a processor's KPRCB
	KindSerial   ParamKind = "serial"   // a part of a serial number, which tells whose system it is
	KindBoot     ParamKind = "boot"     // of a DEVICE_OBJECT, or of a UNICODE_STRING
	KindKASAN    ParamKind = "kasan"    // access and shadow code of the kernel's address sanitizer
)

// BugCheckClass is the kind of failure that a bugcheck stands for.
type BugCheckClass string

// The classes.
const (
	ClassDriver    BugCheckClass = "driver"
	ClassMemory    BugCheckClass = "memory" // something was damaged earlier
	ClassHardware  BugCheckClass = "hardware"
	ClassStorage   BugCheckClass = "storage"
	ClassProcess   BugCheckClass = "process"
	ClassPower     BugCheckClass = "power"
	ClassHang      BugCheckClass = "hang"
	ClassVideo     BugCheckClass = "video"
	ClassVerifier  BugCheckClass = "verifier"
	ClassSecurity  BugCheckClass = "security"
	ClassRequested BugCheckClass = "requested" // somebody asked for it
	ClassLive      BugCheckClass = "live"      // the system went on
	ClassOther     BugCheckClass = "other"
)

// BugCheckText is a bugcheck in plain words.
type BugCheckText struct {
	Class   BugCheckClass
	Summary string   // one sentence, "" when there is none
	Steps   []string // what would tell more
}

// BugCheckValue is what the value of a parameter means.
type BugCheckValue struct {
	Text       string
	Unverified bool
	// Params says what the parameters are when that value is given; a zero entry
	// leaves what BugCheckParams says.
	Params [4]Param
}

// IRQL names an interrupt request level by wdm.h. The lowest are the same on all
// processors; those above are of 64-bit Windows or of x86. "" for what is none.
func IRQL(n uint64, pointerSize int) string {
	names := [...]string{"PASSIVE_LEVEL", "APC_LEVEL", "DISPATCH_LEVEL"}
	high := map[uint64]string{13: "CLOCK_LEVEL", 14: "IPI_LEVEL", 15: "HIGH_LEVEL"}
	device := uint64(12)
	if pointerSize == 4 {
		high = map[uint64]string{27: "PROFILE_LEVEL", 28: "CLOCK_LEVEL", 29: "IPI_LEVEL", 30: "POWER_LEVEL", 31: "HIGH_LEVEL"}
		device = 26
	}
	switch {
	case n < uint64(len(names)):
		return names[n]
	case n <= device:
		return "of a device"
	}
	return high[n]
}

type bugCheckValueKey struct {
	code  uint32
	param uint8 // 0 to 3
	value uint64
	// Where what the value means depends on another parameter: which, from 1, and its value.
	by uint8
	of uint64
}

// withoutMinidumpBit returns the code under which the tables know a bugcheck.
func withoutMinidumpBit(code uint32) uint32 {
	if _, ok := slices.BinarySearch(bugCheckTable.codes, code); !ok {
		return code &^ minidumpBit
	}
	return code
}

// Documentation is what the public reference says of a bugcheck's parameters. Its
// text is part of the JSON contract.
type Documentation string

// The kinds of documentation.
const (
	Documented   Documentation = "documented"
	NoParameters Documentation = "none"         // its page says that it has none
	Undocumented Documentation = "undocumented" // its page does not say, or none was found
)

// BugCheckDocumented tells whether the public reference says what a bugcheck's
// parameters are.
func BugCheckDocumented(code uint32) Documentation {
	code = withoutMinidumpBit(code)
	if _, ok := bugCheckParams[code]; ok {
		return Documented
	}
	if _, ok := slices.BinarySearch(bugCheckNoParams, code); ok {
		return NoParameters
	}
	return Undocumented
}

// BugCheckParams returns what the parameters of a bugcheck mean when they have
// these values. unverified is set when that was not checked against the page of
// the reference.
func BugCheckParams(code uint32, values [4]uint64) (params [4]Param, unverified bool) {
	code = withoutMinidumpBit(code)
	params = bugCheckParams[code]
	_, unverified = slices.BinarySearch(bugCheckUnverified, code)
	for i := range values {
		v, ok := bugCheckValue(code, i, values)
		if !ok {
			continue
		}
		unverified = unverified || v.Unverified
		for k, p := range v.Params {
			if p != (Param{}) {
				params[k] = p
			}
		}
	}
	return params, unverified
}

// BugCheckValueOf returns what the value of a parameter (0 to 3) means when the
// parameters have these values.
func BugCheckValueOf(code uint32, param int, values [4]uint64) (BugCheckValue, bool) {
	if param < 0 || param > 3 {
		return BugCheckValue{}, false
	}
	return bugCheckValue(withoutMinidumpBit(code), param, values)
}

// bugCheckValue looks for a meaning that depends on another parameter first.
func bugCheckValue(code uint32, param int, values [4]uint64) (BugCheckValue, bool) {
	key := bugCheckValueKey{code: code, param: uint8(param), value: values[param]}
	for by, of := range values {
		key.by, key.of = uint8(by+1), of
		if v, ok := bugCheckValues[key]; ok && by != param {
			return v, true
		}
	}
	key.by, key.of = 0, 0
	v, ok := bugCheckValues[key]
	return v, ok
}

// StackOverflowSteps is what would tell more of a kernel stack that overflowed.
func StackOverflowSteps() []string { return []string{stepStackUse, stepUpdate} }

// bugCheckTextKey is a code, and the value of parameter 1 where that makes it another
// kind of failure.
type bugCheckTextKey struct {
	code    uint32
	value   uint64
	special bool
}

// BugCheckTextOf says in plain words what a bugcheck with this first parameter is.
func BugCheckTextOf(code uint32, first uint64) BugCheckText {
	known := withoutMinidumpBit(code)
	if first>>31 == 1<<33-1 { // a status, sign-extended
		first = uint64(uint32(first))
	}
	if t, ok := bugCheckTexts[bugCheckTextKey{known, first, true}]; ok {
		return t
	}
	if t, ok := bugCheckTexts[bugCheckTextKey{code: known}]; ok {
		return t
	}
	t := BugCheckText{Class: ClassOther, Steps: []string{stepReference}}
	if _, _, live := BugCheck(code); live {
		t.Class = ClassLive
	}
	return t
}

// SecondaryData names a record of secondary data by its GUID, as it stands in the
// file, and says what it holds; "" when it is not known.
func SecondaryData(guid [16]byte) (name, holds string) {
	d := secondaryData[guid]
	return d[0], d[1]
}
