package cab

import (
	"encoding/binary"
	"math/rand/v2"
)

// testFolder is a folder for buildCab: packed blocks and the sizes that they
// unpack to.
type testFolder struct {
	method uint16 // CFFOLDER.typeCompress
	packed [][]byte
	plain  []int
}

// testFile is a CFFILE for buildCab.
type testFile struct {
	name         string
	size, offset uint32
	folder       uint16
	date, clock  uint16
}

// testCab lays out a cabinet by [MS-CAB] 2.
type testCab struct {
	flags       uint16
	reserve     bool // 5, 3 and 2 bytes of reserved area after header, folder, data
	sumReserve  bool // the checksums take in the data's reserved area
	noChecksum  bool
	folders     []testFolder
	files       []testFile
	cabinetSize uint32 // 0: the right one
}

func (c testCab) build() []byte {
	le := binary.LittleEndian
	folderReserve, dataReserve := 0, 0
	flags := c.flags
	head := make([]byte, 36)
	if c.reserve {
		flags |= 4
		folderReserve, dataReserve = 3, 2
		head = append(head, 5, 0, 3, 2, 'h', 'h', 'h', 'h', 'h')
	}
	if flags&1 != 0 {
		head = append(head, "before.cab\x00disk 1\x00"...)
	}
	if flags&2 != 0 {
		head = append(head, "after.cab\x00disk 3\x00"...)
	}
	var files []byte
	for _, f := range c.files {
		files = le.AppendUint32(files, f.size)
		files = le.AppendUint32(files, f.offset)
		files = le.AppendUint16(files, f.folder)
		files = le.AppendUint16(files, f.date)
		files = le.AppendUint16(files, f.clock)
		files = le.AppendUint16(files, 0x20) // archive
		files = append(append(files, f.name...), 0)
	}
	filesAt := len(head) + len(c.folders)*(8+folderReserve)
	dataAt := filesAt + len(files)
	var folders, data []byte
	for _, f := range c.folders {
		folders = le.AppendUint32(folders, uint32(dataAt+len(data)))
		folders = le.AppendUint16(folders, uint16(len(f.packed)))
		folders = le.AppendUint16(folders, f.method)
		folders = append(folders, make([]byte, folderReserve)...)
		for i, p := range f.packed {
			sizes := le.AppendUint16(nil, uint16(len(p)))
			sizes = le.AppendUint16(sizes, uint16(f.plain[i]))
			reserved := []byte("rs")[:dataReserve]
			sum := xorWords(p) ^ xorWords(sizes)
			if c.sumReserve {
				sum = xorWords(p) ^ xorWords(append(sizes[:4:4], reserved...))
			}
			if c.noChecksum {
				sum = 0
			}
			data = le.AppendUint32(data, sum)
			data = append(data, sizes...)
			data = append(data, reserved...)
			data = append(data, p...)
		}
	}
	copy(head, "MSCF")
	size := uint32(dataAt + len(data))
	if c.cabinetSize != 0 {
		size = c.cabinetSize
	}
	le.PutUint32(head[8:], size)
	le.PutUint32(head[16:], uint32(filesAt))
	head[24], head[25] = 3, 1
	le.PutUint16(head[26:], uint16(len(c.folders)))
	le.PutUint16(head[28:], uint16(len(c.files)))
	le.PutUint16(head[30:], flags)
	return append(append(append(head, folders...), files...), data...)
}

// xorWords is the checksum, byte by byte: whole words little-endian, the rest
// with its last byte lowest.
func xorWords(p []byte) (sum uint32) {
	whole := len(p) &^ 3
	for i := range whole {
		sum ^= uint32(p[i]) << (i % 4 * 8)
	}
	for i := whole; i < len(p); i++ {
		sum ^= uint32(p[i]) << ((len(p) - 1 - i) * 8)
	}
	return sum
}

// lzxFolder packs data with the test encoder.
func lzxFolder(data []byte, window int, plan []testBlock, e8 int32) testFolder {
	f := testFolder{method: uint16(3 | window<<8), packed: encodeLZX(data, window, plan, e8)}
	for at := 0; at < len(data); at += 32768 {
		f.plain = append(f.plain, min(32768, len(data)-at))
	}
	return f
}

// testData makes bytes that exercise a packer: text that repeats near and far,
// runs, noise, and calls with targets within and beyond the data.
func testData(seed uint64, size int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := []string{"ntdll", "!Nt", "WaitFor", "Single", "Object", "kernel32", "+0x14", "\n", "Thread", "00007ffe`"}
	var out []byte
	for len(out) < size {
		switch rng.IntN(8) {
		case 0:
			n := 1 + rng.IntN(60)
			for range n {
				out = append(out, byte(rng.Uint32()))
			}
		case 1:
			b := byte(rng.Uint32())
			for range 1 + rng.IntN(700) {
				out = append(out, b)
			}
		case 2, 3:
			target := rng.Int32N(int32(2*size)) - int32(size)
			if rng.IntN(4) == 0 {
				target = int32(rng.Uint32())
			}
			out = append(out, 0xe8)
			out = binary.LittleEndian.AppendUint32(out, uint32(target))
		case 4:
			if len(out) > 100 {
				from := rng.IntN(len(out) - 50)
				out = append(out, out[from:from+50]...)
			}
		default:
			for range 1 + rng.IntN(9) {
				out = append(out, words[rng.IntN(len(words))]...)
			}
		}
	}
	return out[:size]
}

// testPlan cuts size bytes into blocks of mixed kinds.
func testPlan(seed uint64, size int) (plan []testBlock) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for size > 0 {
		n := min(size, 1+rng.IntN(60000))
		plan = append(plan, testBlock{kind: uint(1 + rng.IntN(3)), size: n})
		size -= n
	}
	return plan
}
