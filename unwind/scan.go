package unwind

import "fmt"

const (
	trustedScan   = 160 // words scanned from a frame that is certain
	untrustedScan = 40  // and from one that is itself a guess
	maxUnproven   = 32  // scan frames in a row without proof
)

// scanWords returns how many words of the stack are scanned from a frame.
func scanWords(f *Frame) int {
	if f.Trust == TrustContext || f.Trust == TrustCFI {
		return trustedScan
	}
	return untrustedScan
}

// unprovenLimit is why a walk ends that nothing has proved for long.
func unprovenLimit(why Stop) Stop {
	return Stop{StopLimit, fmt.Sprintf("%d frames found without proof; %s", maxUnproven, why.Detail)}
}

// storedContext reports whether a word on the stack is the program counter in a
// CONTEXT that the thread's capture left there, and not a return address.
func storedContext(f *Frame, word uint64) bool { return word == f.IP && f.Trust == TrustContext }
