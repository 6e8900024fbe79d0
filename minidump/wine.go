package minidump

import (
	"fmt"
	"sort"

	"dumptriage/dump"
)

// trustedMemory64 returns the ranges of Memory64List whose bytes are where the
// list says.
//
// Wine (measured with 8.0) leaves out memory that it cannot read but keeps its
// range, so that the file is shorter than promised and every byte after the
// first such range belongs elsewhere. The headers of modules tell how far the
// bytes are in place; what follows the last proven one is not used.
func (f *File) trustedMemory64() []dump.Range {
	list, err := f.Memory64List()
	if err == nil || !f.Has(StreamWineHostModules) {
		return list
	}
	proven := f.provenRanges(list)
	fs := f.faults(StreamName(StreamMemory64List))
	if left := len(list) - proven; left > 0 {
		fs.add(&dump.Error{Code: dump.BadRecord, Offset: list[proven].Off, Size: -1,
			Msg: fmt.Sprintf("Wine left memory out without saying where: the last %d of %d ranges may be misplaced and are not used", left, len(list))})
	}
	return list[:proven]
}

// provenRanges returns how many of the leading ranges are in place: all up to
// the last one that begins a module with its MZ, before the first that should
// and does not.
func (f *File) provenRanges(list []dump.Range) int {
	modules, _ := f.ModuleList()
	bases := make([]uint64, len(modules))
	for i := range modules {
		bases[i] = modules[i].Base
	}
	sort.Slice(bases, func(i, j int) bool { return bases[i] < bases[j] })
	proven := 0
	for i, r := range list {
		k := sort.Search(len(bases), func(k int) bool { return bases[k] >= r.VA })
		if k == len(bases) || bases[k] != r.VA || r.Size < 2 {
			continue
		}
		var magic [2]byte
		if n, _ := f.r.ReadAt(magic[:], r.Off); n < 2 || magic != [2]byte{'M', 'Z'} {
			break
		}
		proven = i + 1
	}
	return proven
}
