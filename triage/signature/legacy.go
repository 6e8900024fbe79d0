package signature

import (
	"encoding/binary"
	"hash/crc32"
)

// AddressHashes are the two hashes of a stack's addresses, innermost first, that
// other tools group by. sum is the low 32 bits of the sum of the addresses' low
// halves, as CaptureStackBackTrace returns it; it is blind to order. crc is CRC-32
// (reflected, initial value 0, no inversion at the end) over each address's eight
// bytes, little-endian. Both move with the modules: no id is made from them.
func AddressHashes(addresses []uint64) (sum, crc uint32) {
	// Package crc32 inverts before and after; inverting around it undoes that.
	c := ^uint32(0)
	var b [8]byte
	for _, a := range addresses {
		sum += uint32(a)
		binary.LittleEndian.PutUint64(b[:], a)
		c = crc32.Update(c, crc32.IEEETable, b[:])
	}
	return sum, ^c
}
