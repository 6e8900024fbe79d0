package report

import (
	"encoding/hex"
)

// HexDump is a piece of memory to show.
type HexDump struct {
	Address  uint64
	Physical bool
	Wanted   int    // bytes asked for
	Data     []byte // those that could be read, from Address on
	Reason   string // why the next one could not, "" when all could
	File     string // that has the next one, "" none or not known
	Pages    []MemoryPage
}

// MemoryPage is what a dump of a whole system knows of a page of virtual memory that
// bytes were asked of.
type MemoryPage struct {
	Address  uint64 // of the first byte that was asked for
	Size     int
	State    string // in one word, such as demand_zero
	Words    string // the same in words, with the entry that decided
	Readable bool   // in memory
	Entry    uint64 // page table entry, 0 none
	Physical uint64 // address, 0 none
	File     string // that has the bytes, "" none or not known
	// PageFile and PageOffset, in bytes, are where a paged-out page lies. PageFile is
	// -1 when only the place is known; HasPlace says that there is one.
	PageFile   int
	PageOffset uint64
	HasPlace   bool
}

// MemoryPageJSON is what is known of a page.
type MemoryPageJSON struct {
	Address    string  `json:"address" jsonschema_description:"of the first byte that was asked for"`
	Size       int     `json:"size"`
	State      string  `json:"state" jsonschema:"enum=valid,enum=transition,enum=prototype,enum=demand_zero,enum=reserved,enum=paged_out,enum=mapped_file,enum=not_mapped,enum=not_in_dump,enum=table_missing,enum=non_canonical,enum=unresolved" jsonschema_description:"of a demand_zero page the data are zeros that nobody has written"`
	Entry      string  `json:"entry,omitempty" jsonschema_description:"the page table entry or prototype PTE that decided"`
	Physical   string  `json:"physical,omitempty" jsonschema_description:"physical address"`
	File       string  `json:"file,omitempty" jsonschema_description:"that has the bytes"`
	PageFile   *int    `json:"page_file,omitempty" jsonschema_description:"number of the paging file"`
	PageOffset *uint64 `json:"page_file_offset,omitempty" jsonschema_description:"in bytes"`
}

// BytesJSON is a piece of memory.
type BytesJSON struct {
	Address  string `json:"address"`
	Physical bool   `json:"physical" jsonschema_description:"the address is that of physical memory"`
	Wanted   int    `json:"wanted" jsonschema_description:"bytes asked for"`
	Read     int    `json:"read" jsonschema_description:"bytes from the address on that the dump holds"`
	Data     string `json:"data" jsonschema_description:"hexadecimal, two digits a byte"`
	Reason   string `json:"reason,omitempty" jsonschema_description:"why the next byte cannot be read"`
	File     string `json:"file,omitempty" jsonschema_description:"that has the next byte"`

	Pages []MemoryPageJSON `json:"pages,omitempty" jsonschema_description:"of virtual memory of a dump of a whole system: each page that bytes were asked of, as far as they could be read and the next one"`
}

func bytesJSON(d *HexDump, h hexer) *BytesJSON {
	if d == nil {
		return nil
	}
	b := &BytesJSON{Address: h.addr(d.Address), Physical: d.Physical, Wanted: d.Wanted, Read: len(d.Data), Data: hex.EncodeToString(d.Data), Reason: d.Reason, File: d.File}
	for i := range d.Pages {
		p := &d.Pages[i]
		j := MemoryPageJSON{Address: h.addr(p.Address), Size: p.Size, State: p.State, Entry: h.known(p.Entry), Physical: h.known(p.Physical), File: p.File}
		if p.HasPlace {
			j.PageOffset = &p.PageOffset
			if p.PageFile >= 0 {
				j.PageFile = &p.PageFile
			}
		}
		b.Pages = append(b.Pages, j)
	}
	return b
}

// hexDump writes memory as the debugger's db does: sixteen bytes a line with a
// dash in their middle, then their characters.
func (t *text) hexDump(d *HexDump) {
	const width = 16
	for at := 0; at < len(d.Data); at += width {
		row := d.Data[at:min(at+width, len(d.Data))]
		digits := make([]byte, 0, 3*width)
		chars := make([]byte, 0, width)
		for i := range width {
			sep := byte(' ')
			if i == width/2 && i < len(row) {
				sep = '-'
			}
			if i > 0 {
				digits = append(digits, sep)
			}
			if i >= len(row) {
				digits = append(digits, "  "...)
				continue
			}
			digits = hex.AppendEncode(digits, row[i:i+1])
			c := byte('.')
			if row[i] >= 0x20 && row[i] < 0x7f {
				c = row[i]
			}
			chars = append(chars, c)
		}
		t.line("", "%s  %s  %s", t.addr(d.Address+uint64(at)), digits, chars)
	}
	t.pageNotes(d)
	if d.Reason != "" {
		reason := d.Reason
		if d.File != "" {
			reason += ": " + d.File
		}
		t.line(sgrYellow, "%s  %s", t.addr(d.Address+uint64(len(d.Data))), clean(reason))
	}
}

// pageNotes says of which bytes above the pages are in memory in an unusual way, or
// are not in it.
func (t *text) pageNotes(d *HexDump) {
	for i := range d.Pages {
		p := &d.Pages[i]
		if p.State == "valid" || p.Address >= d.Address+uint64(len(d.Data)) {
			continue
		}
		what := p.Words
		if !p.Readable {
			what += ", shown as zeros"
		}
		t.line(sgrYellow, "%s  %s", t.addr(p.Address), clean(what))
	}
}
