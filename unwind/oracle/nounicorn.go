//go:build !oracle

package oracle

import "dumptriage/dump"

// machine stands in for the emulator, which this build lacks.
type machine struct{}

func newMachine(dump.Arch) (*machine, error)           { return nil, ErrNotBuilt }
func (*machine) mapMemory(uint64, int) ([]byte, error) { return nil, ErrNotBuilt }
func (*machine) protect(uint64, int)                   {}
func (*machine) watch(uint64, int, uint64) error       { return ErrNotBuilt }
func (*machine) arm64() *[33]uint64                    { return new([33]uint64) }
func (*machine) gprs() *[17]uint64                     { return new([17]uint64) }
func (*machine) xmms() *[16][2]uint64                  { return new([16][2]uint64) }
func (*machine) load()                                 {}
func (*machine) step(uint64) bool                      { return false }
func (*machine) reset(uint64)                          {}
func (*machine) dirty() (low, high uint64)             { return 0, 0 }
func (*machine) writes(func(va, size uint64))          {}
func (*machine) changed(uint64, int)                   {}
