package cab

import "encoding/binary"

const (
	e8Most = 32768 * blockSize // frames from this position on (1 GB) are not translated
	e8Tail = 10                // bytes at a frame's end in which no call may begin
)

// undoE8 turns the absolute targets of x86 CALL instructions (0xE8), which
// LZX's encoder made of relative ones because they compress better, back into
// relative ones. at is the frame's position in the folder's data and size the
// translation size from the stream's header.
func undoE8(frame []byte, at, size int32) {
	for i := 0; i < len(frame)-e8Tail; i++ {
		if frame[i] != 0xe8 {
			continue
		}
		operand := frame[i+1 : i+5]
		target := int32(binary.LittleEndian.Uint32(operand))
		pos := at + int32(i)
		if target >= -pos && target < size {
			if target >= 0 {
				target -= pos
			} else {
				target += size
			}
			binary.LittleEndian.PutUint32(operand, uint32(target))
		}
		i += 4
	}
}
