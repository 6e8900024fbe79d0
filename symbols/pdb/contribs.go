package pdb

import (
	"slices"
	"sort"

	"dumptriage/dump"
)

// contribution is a piece of the image that one module contributed.
type contribution struct {
	rva    uint32 // in the image as linked
	size   uint32
	module uint16
}

// contributions are sorted by address.
type contributions struct{ list []contribution }

// Versions of the section contribution substream.
const (
	contribV1     = 0xEFFE0000 + 19970605
	contribV2     = 0xEFFE0000 + 20140516
	contribV1Size = 28
	contribV2Size = 32
	contribChunk  = 4096 // records read at a time
)

func (f *File) readContributions() *contributions {
	out := &contributions{}
	f.note(f.parseContributions(out))
	byRVA := func(a, b contribution) int {
		return int(int64(a.rva) - int64(b.rva))
	}
	if !slices.IsSortedFunc(out.list, byRVA) {
		slices.SortStableFunc(out.list, byRVA)
	}
	return out
}

func (f *File) parseContributions(out *contributions) error {
	s, p := f.dbi.s, f.dbi.contribs
	if s == nil || p.size == 0 {
		return nil
	}
	c, err := s.cursor(p.off, min(p.size, 4), "section contributions")
	if err != nil {
		return err
	}
	size := int64(contribV1Size)
	switch v := c.U32(); v {
	case contribV1:
	case contribV2:
		size = contribV2Size
	default:
		return dump.Errorf(dump.UnsupportedFormat, "section contributions", "version %#x is not known", v)
	}
	off, left := p.off+4, (p.size-4)/size
	for left > 0 {
		n := min(left, contribChunk)
		c, err := s.cursor(off, n*size, "section contributions")
		if err != nil {
			return err
		}
		for range n {
			section := c.U16()
			c.U16()
			at, length := c.U32(), c.U32()
			c.U32()
			module := c.U16()
			c.Skip(int(size) - 18)
			if rva, ok := f.sourceRVA(section, at); ok && length > 0 {
				out.list = append(out.list, contribution{rva, length, module})
			}
		}
		off, left = off+n*size, left-n
	}
	return nil
}

// find returns the contribution that covers an address of the image as linked.
func (c *contributions) find(rva uint32) (contribution, bool) {
	i := sort.Search(len(c.list), func(i int) bool { return c.list[i].rva > rva })
	// Pieces do not overlap, but an empty-looking one may begin at the same address.
	for k := i - 1; k >= 0 && k >= i-4; k-- {
		if rva-c.list[k].rva < c.list[k].size {
			return c.list[k], true
		}
	}
	return contribution{}, false
}
