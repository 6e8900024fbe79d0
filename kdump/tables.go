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

// kernelKey chooses a row of the tables of offsets. The structure sizes are part
// of it, because within one build number updates have changed the layout; a
// thread's size of 0 fits any.
type kernelKey struct {
	arch                               dump.Arch
	buildLow, buildHigh                uint32
	ethread, eprocessLow, eprocessHigh int
}

// offsetRow holds the offsets that KDDEBUGGER_DATA64 does not give; 0 is not
// known. See nt_offsets.tsv.
type offsetRow struct {
	kernelKey
	cid, threadCreated, start, win32Start int
	trapFrame, owner                      int // KTHREAD
	pid, imageName, processCreated        int
	stackLimit, stackBase, waitReason     int // KTHREAD, for kernels whose KDBG ends before them
}

// listRow holds the offsets by which a full dump's lists are walked, and what
// they lead to; 0 is not known. See nt_lists.tsv.
type listRow struct {
	kernelKey
	threadHead, threadEntry     int // EPROCESS.ThreadListHead, ETHREAD.ThreadListEntry
	processExit, wow64, session int // EPROCESS
	userDirBase, activeThreads  int // KPROCESS, EPROCESS
	kernelTime, userTime        int // KTHREAD, in ticks of the clock
	threadName                  int // ETHREAD
}

// waitRow holds the offsets by which it is found what a thread waits for, and a
// process's handles; 0 is not known. See nt_waits.tsv.
type waitRow struct {
	kernelKey
	waitList, waitBlock, waitCount, mutants         int // KTHREAD
	alpcMessage, alpcWait, irps                     int // ETHREAD
	handles                                         int // EPROCESS.ObjectTable
	waitingThread, ownerPort, serverThread, message int // KALPC_MESSAGE
}

// vadRow holds where the tree of a process's address descriptors begins, and
// which of vadForms they have. See nt_vads.tsv.
type vadRow struct {
	kernelKey
	root, form int // EPROCESS.VadRoot
}

// fits reports whether a row is of the dump's kernel.
func (k *kernelKey) fits(f *File) bool {
	if f.kd == nil {
		return false
	}
	size, process := f.kd.thread.size, f.kd.process.size
	return k.arch == f.hdr.arch && f.hdr.build >= k.buildLow && f.hdr.build <= k.buildHigh &&
		(k.ethread == 0 || k.ethread == size) && process >= k.eprocessLow && process <= k.eprocessHigh
}

// offsets returns the row for the dump's kernel, or an empty one.
func (f *File) offsets() *offsetRow {
	if f.rows != nil {
		return &f.rows.offsets
	}
	for i := range offsetRows {
		if offsetRows[i].fits(f) {
			return &offsetRows[i]
		}
	}
	return &offsetRow{}
}

// lists returns the row for the dump's kernel, or an empty one.
func (f *File) lists() *listRow {
	if f.rows != nil {
		return &f.rows.lists
	}
	for i := range listRows {
		if listRows[i].fits(f) {
			return &listRows[i]
		}
	}
	return &listRow{}
}

// waits returns the row for the dump's kernel, or an empty one.
func (f *File) waits() *waitRow {
	if f.rows != nil {
		return &f.rows.waits
	}
	for i := range waitRows {
		if waitRows[i].fits(f) {
			return &waitRows[i]
		}
	}
	return &waitRow{}
}

// vads returns the row for the dump's kernel, or an empty one.
func (f *File) vads() *vadRow {
	if f.rows != nil {
		return &f.rows.vads
	}
	for i := range vadRows {
		if vadRows[i].fits(f) {
			return &vadRows[i]
		}
	}
	return &vadRow{}
}

// vadForm returns the form of the dump's descriptors, nil when it is not known.
func (f *File) vadForm() *vadForm {
	if f.rows != nil && f.rows.form != nil {
		return f.rows.form
	}
	if form := f.vads().form; form > 0 && form < len(vadForms) {
		return &vadForms[form]
	}
	return nil
}
