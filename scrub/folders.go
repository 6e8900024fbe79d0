package scrub

import (
	"bytes"
	"cmp"
	"slices"
)

// hideFolders puts backslashes in the place of the folders of paths in what is kept:
// those that a reader told of, and those of PDBs in images.
func (s *scrubber) hideFolders(blocks []block) {
	for va, n := range s.rec.folders {
		for k := range n {
			if at := byteAt(blocks, va+uint64(k)); at != nil {
				*at = [2]byte{'\\', 0}[k%2]
			}
		}
	}
	for i := range blocks {
		hidePDB(blocks[i].data, "RSDS", 24)
		hidePDB(blocks[i].data, "NB10", 16)
	}
}

// byteAt finds a byte in ascending blocks, nil when none has it.
func byteAt(blocks []block, va uint64) *byte {
	i, _ := slices.BinarySearchFunc(blocks, va, func(b block, va uint64) int { return cmp.Compare(b.last(), va) })
	if i == len(blocks) || va < blocks[i].va {
		return nil
	}
	return &blocks[i].data[va-blocks[i].va]
}

// hidePDB does so in CodeView records, which begin with a signature and have the path of
// a PDB behind so many bytes.
func hidePDB(data []byte, signature string, header int) {
	for {
		i := bytes.Index(data, []byte(signature))
		if i < 0 || len(data)-i < header {
			return
		}
		path := data[i+header:]
		if end := bytes.IndexByte(path, 0); end >= 0 {
			path = path[:end]
		}
		for k := range max(0, bytes.LastIndexAny(path, "\\/")) {
			path[k] = '\\'
		}
		data = data[i+len(signature):]
	}
}
