package main

import (
	"os"
	"runtime/debug"
)

// baseMemory is what any dump may take, whatever its size: with the pages of the
// program itself it stays under 64 MB.
const baseMemory = 40 << 20

// largeInputs are dumps whose size says nothing of what their answer takes: for
// them the collector is told to let less garbage stand.
const largeInputs = 1 << 30

// limitMemory tells the collector how much memory is fair for inputs of that
// many bytes: the base, and twice the inputs. It lets garbage grow as large as
// what is alive, which for a small hostile dump is too much. GOMEMLIMIT, where
// it is set, has the last word.
func limitMemory(inputs int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(baseMemory + 2*inputs)
	}
	if inputs > largeInputs && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(30)
	}
}
