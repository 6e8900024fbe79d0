package cab

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"dumptriage/dump"
)

// Extract unpacks a file to w and returns how many bytes it wrote. It refuses
// a file that claims more than limit bytes with an error of code Limit before
// it writes any; the folder's data before the file must be unpacked too and
// count. After damage, what was written up to there is right: blocks are
// verified before any of them is. Errors are *dump.Error or w's own.
func (c *Cabinet) Extract(f File, w io.Writer, limit int64) (int64, error) {
	if err := c.extractable(f); err != nil {
		return 0, err
	}
	if f.Size > limit || f.Offset > limit-f.Size {
		return 0, dump.Errorf(dump.Limit, "CFFILE", "%q unpacks to %d bytes after %d others of its folder, more than the limit of %d", f.Name, f.Size, f.Offset, limit)
	}
	blocks, err := c.blocks(c.folders[f.Folder])
	if err != nil {
		return 0, err
	}
	var done, pos int64 // bytes written, position in the folder's unpacked data
	for done < f.Size {
		p, err := blocks.next()
		if errors.Is(err, io.EOF) {
			return done, dump.Errorf(dump.Truncated, "CFFOLDER", "%q has %d bytes by its entry, but its folder ends after %d of them", f.Name, f.Size, done)
		}
		if err != nil {
			return done, err
		}
		part := window(p, pos, f.Offset, f.Offset+f.Size)
		pos += int64(len(p))
		n, err := w.Write(part)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// window returns the part of p, which lies at pos, that is in [from, to).
func window(p []byte, pos, from, to int64) []byte {
	lo := max(0, min(int64(len(p)), from-pos))
	hi := max(lo, min(int64(len(p)), to-pos))
	return p[lo:hi]
}

func (c *Cabinet) extractable(f File) error {
	if f.Folder < 0 || f.Folder >= len(c.folders) || f.Size < 0 || f.Offset < 0 {
		return dump.Errorf(dump.Internal, "CFFILE", "%q is not a file of this cabinet", f.Name)
	}
	if f.Spans {
		return dump.Errorf(dump.UnsupportedFormat, "CFFILE", "%q continues in another cabinet of the set%s: join them with their own tool first", f.Name, c.neighbours())
	}
	return nil
}

// Heads returns the first n bytes (fewer where a file is shorter) of every
// file, in the order of Files. It unpacks each folder once, no further than its
// last file's head, and at most limit bytes in all. A head that could not be
// read is nil, and the error says why the first of them was not.
func (c *Cabinet) Heads(n int, limit int64) ([][]byte, error) {
	heads := make([][]byte, len(c.files))
	byFolder := make([][]int, len(c.folders))
	var first error
	for i, f := range c.files {
		if err := c.extractable(f); err != nil {
			first = cmp.Or(first, err)
			continue
		}
		byFolder[f.Folder] = append(byFolder[f.Folder], i)
	}
	left := limit
	for i, list := range byFolder {
		if len(list) == 0 {
			continue
		}
		used, err := c.folderHeads(c.folders[i], list, heads, n, left)
		left -= used
		first = cmp.Or(first, err)
	}
	return heads, first
}

// folderHeads fills the heads of the listed files, which lie in one folder. It
// returns how many bytes it unpacked.
func (c *Cabinet) folderHeads(fd folder, list []int, heads [][]byte, n int, limit int64) (int64, error) {
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(c.files[a].Offset, c.files[b].Offset) })
	blocks, err := c.blocks(fd)
	if err != nil {
		return 0, err
	}
	open, pos := list, int64(0) // files whose heads are not complete, by offset
	for {
		for len(open) > 0 && int64(len(heads[open[0]])) == min(int64(n), c.files[open[0]].Size) {
			if heads[open[0]] == nil {
				heads[open[0]] = []byte{} // an empty file has an empty head
			}
			open = open[1:]
		}
		if len(open) == 0 {
			return pos, nil
		}
		if pos >= limit {
			return pos, dump.Errorf(dump.Limit, "CFFOLDER", "files begin after more than the limit of %d unpacked bytes", limit)
		}
		p, err := blocks.next()
		if errors.Is(err, io.EOF) {
			return pos, dump.Errorf(dump.Truncated, "CFFOLDER", "%q begins at %d, but its folder ends at %d", c.files[open[0]].Name, c.files[open[0]].Offset, pos)
		}
		if err != nil {
			return pos, err
		}
		for _, i := range open {
			f := c.files[i]
			if f.Offset >= pos+int64(len(p)) {
				break
			}
			heads[i] = append(heads[i], window(p, pos, f.Offset, f.Offset+min(int64(n), f.Size))...)
		}
		pos += int64(len(p))
	}
}
