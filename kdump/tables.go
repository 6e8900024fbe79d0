package kdump

import (
	_ "embed" // nt_builds.bin
	"encoding/binary"
	"sort"

	"dumptriage/dump"
)

//go:generate go run gen_tables.go

//go:embed nt_builds.bin
var ntBuilds string

// ntBuildSize is the size of a record of nt_builds.bin, big-endian and sorted:
// TimeDateStamp u32, SizeOfImage in pages u16, build u16, revision u16.
const ntBuildSize = 10

// ntBuild is a version 10.0.build.revision of the kernel.
type ntBuild struct{ build, revision uint16 }

// lookupBuild finds the exact version of a kernel image.
func lookupBuild(timeDateStamp, sizeOfImage uint32) (ntBuild, bool) {
	const pageSize = 4096
	if sizeOfImage%pageSize != 0 || sizeOfImage/pageSize > 0xffff {
		return ntBuild{}, false
	}
	var rec [ntBuildSize]byte
	at := func(i int) uint64 {
		copy(rec[:], ntBuilds[i*ntBuildSize:])
		return binary.BigEndian.Uint64(rec[:]) >> 16
	}
	want := uint64(timeDateStamp)<<16 | uint64(sizeOfImage/pageSize)
	n := len(ntBuilds) / ntBuildSize
	i := sort.Search(n, func(i int) bool { return at(i) >= want })
	if i == n || at(i) != want {
		return ntBuild{}, false
	}
	return ntBuild{binary.BigEndian.Uint16(rec[6:]), binary.BigEndian.Uint16(rec[8:])}, true
}

// offsetRow holds the offsets that KDDEBUGGER_DATA64 does not give; 0 is not
// known. The structure sizes choose the row, because within one build number
// updates have changed the layout. See nt_offsets.tsv.
type offsetRow struct {
	arch                                  dump.Arch
	buildLow, buildHigh                   uint32
	ethread, eprocessLow, eprocessHigh    int
	cid, threadCreated, start, win32Start int
	trapFrame, owner                      int // KTHREAD
	pid, imageName, processCreated        int
	stackLimit, stackBase, waitReason     int // KTHREAD, for kernels whose KDBG ends before them
}

// offsets returns the row for the dump's kernel, or an empty one.
func (f *File) offsets() *offsetRow {
	if f.kd != nil {
		size, process := f.kd.thread.size, f.kd.process.size
		for i := range offsetRows {
			r := &offsetRows[i]
			if r.arch == f.hdr.arch && f.hdr.build >= r.buildLow && f.hdr.build <= r.buildHigh &&
				(r.ethread == 0 || r.ethread == size) && process >= r.eprocessLow && process <= r.eprocessHigh {
				return r
			}
		}
	}
	return &offsetRow{}
}
