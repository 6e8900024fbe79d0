package oracle

import (
	"slices"

	"dumptriage/pdata"
)

// describes reports whether unwind data names any operation.
func describes(info *pdata.UnwindInfo) bool {
	return len(info.Codes) > 0 || info.V3 != nil && len(info.V3.Prolog) > 0
}

// builds reports whether codes build a frame, other than the processor's own
// machine frame, which is there at the first instruction.
func builds(info *pdata.UnwindInfo) bool {
	if info.V3 != nil {
		return slices.ContainsFunc(info.V3.Prolog, func(o pdata.OperationV3) bool { return o.Op != pdata.WODPushCanonicalFrame })
	}
	return slices.ContainsFunc(info.Codes, func(c pdata.UnwindCode) bool { return c.Op != pdata.PushMachFrame })
}

// machineFrame reports whether a function is entered by a trap, and whether
// with an error code.
func machineFrame(info *pdata.UnwindInfo) (errorCode, ok bool) {
	if info.V3 != nil {
		n := len(info.V3.Prolog)
		if n == 0 || info.V3.Prolog[n-1].Op != pdata.WODPushCanonicalFrame {
			return false, false
		}
		return info.V3.Prolog[n-1].Value == 1, true
	}
	n := len(info.Codes)
	if n == 0 || info.Codes[n-1].Op != pdata.PushMachFrame {
		return false, false
	}
	return info.Codes[n-1].Info == 1, true
}
