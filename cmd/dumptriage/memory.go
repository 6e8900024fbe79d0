package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/kdump"
	"dumptriage/report"
	"dumptriage/triage"
)

var (
	vaFlag     = &cli.StringFlag{Name: "va", Usage: "show the bytes at a virtual `ADDRESS` (hexadecimal, a backtick in it does no harm)"}
	paFlag     = &cli.StringFlag{Name: "pa", Usage: "show the bytes at a physical `ADDRESS` of a full kernel dump"}
	lengthFlag = &cli.StringFlag{Name: "length", Aliases: []string{"l"}, Value: "0x80", Usage: "how many `BYTES` to show, at most 1 MiB"}
)

// maxHexDump bounds what one call shows.
const maxHexDump = 1 << 20

func memoryCommand() *cli.Command {
	return &cli.Command{
		Name:  "memory",
		Usage: "list the memory that a dump holds and what it knows of protections, or what a process mapped, or show some of it",
		Description: "First the regions that the process had, where the dump describes them; then the ranges of\n" +
			"memory that the dump holds, physical ones of a full kernel dump. Sizes and offsets are\n" +
			"hexadecimal, totals decimal. With --process the ranges that a process of a full kernel dump\n" +
			"reserved or mapped, as !vad lists them.\n" +
			"With --va or --pa the bytes there as the debuggers' db prints them, and why the next cannot be read.",
		ArgsUsage: "DUMP",
		Flags:     systemFlags(vaFlag, paFlag, lengthFlag, processFlag),
		Action: listVerb(report.ListMemory, func(c *cli.Context, d *triage.Dump, l *report.List) error {
			if c.IsSet(vaFlag.Name) || c.IsSet(paFlag.Name) {
				return showMemory(c, d, l)
			}
			if c.IsSet(lengthFlag.Name) {
				return usagef("--length belongs to --va ADDRESS or --pa ADDRESS")
			}
			if c.String(processFlag.Name) != "" {
				return listRegions(c, d, l)
			}
			l.Regions = d.Regions()
			if m, ok := d.Memory().(interface{ Ranges() []dump.Range }); ok {
				l.Ranges = m.Ranges()
			}
			if k, ok := d.Source.(*kdump.File); ok && k.PhysicalMemory() != nil {
				l.Physical = true
				for r := range k.PhysicalMemory().Runs() {
					l.Ranges = append(l.Ranges, r)
				}
			}
			return nil
		}),
	}
}

// listRegions lists what a process has reserved or mapped.
func listRegions(c *cli.Context, d *triage.Dump, l *report.List) error {
	p, err := oneProcess(c, d)
	if err != nil {
		return err
	}
	v, ok := d.ProcessView(p).(*kdump.View)
	if !ok {
		return usagef("%s holds no memory of a whole system", d.Path)
	}
	l.Process, l.OfProcess = p, true
	l.Regions = v.VADs()
	absentRegions(l, p)
	return nil
}

func showMemory(c *cli.Context, d *triage.Dump, l *report.List) error {
	if c.IsSet(vaFlag.Name) && c.IsSet(paFlag.Name) {
		return usagef("--va and --pa exclude each other")
	}
	length, err := strconv.ParseUint(c.String(lengthFlag.Name), 0, 32)
	if err != nil || length == 0 || length > maxHexDump {
		return usagef("--length wants a number of bytes up to 1 MiB, such as 64 or 0x40, not %q", c.String(lengthFlag.Name))
	}
	out := &report.HexDump{Wanted: int(length), Physical: c.IsSet(paFlag.Name)}
	flag := vaFlag.Name
	var mem dump.Memory
	if out.Physical {
		flag = paFlag.Name
		if mem, err = physicalMemory(d); err != nil {
			return err
		}
	} else {
		mem = d.Memory()
		p, err := oneProcess(c, d)
		if err != nil {
			return err
		}
		if p != nil {
			mem, l.Process = d.ProcessView(p).Memory(), p
		}
	}
	if out.Address, err = parseAddress(c.String(flag)); err != nil {
		return usagef("--%s wants a hexadecimal address such as fffff804`5de00000, not %q", flag, c.String(flag))
	}
	readBytes(mem, out)
	l.Bytes = out
	return nil
}

// physicalMemory returns the physical memory of a dump. One that should hold some,
// and is so damaged that nobody knows where, has none to read.
func physicalMemory(d *triage.Dump) (dump.Memory, error) {
	k, ok := d.Source.(*kdump.File)
	switch {
	case ok && k.PhysicalMemory() != nil:
		return k.PhysicalMemory(), nil
	case ok && k.StoresPhysical():
		return dump.NewFileMemory(nil, nil), nil
	}
	return nil, usagef("%s holds no physical memory; use --va", d.Path)
}

// pager is memory whose pages tell what they are.
type pager interface{ Page(va uint64) kdump.Page }

// readBytes reads what is asked for as far as it can be read. Pages that nobody has
// written are zeros, and said to be.
func readBytes(mem dump.Memory, out *report.HexDump) {
	b := make([]byte, out.Wanted)
	pages, paged := mem.(pager)
	done := 0
	for done < len(b) {
		at := out.Address + uint64(done)
		part := b[done:]
		var page kdump.Page
		if paged && at >= out.Address {
			const pageSize = 0x1000
			part = part[:min(len(part), int(pageSize-at%pageSize))]
			page = pages.Page(at)
			out.Pages = append(out.Pages, memoryPage(at, len(part), &page))
			if page.State == kdump.PageDemandZero {
				done += len(part)
				continue
			}
		}
		n, err := mem.ReadAt(part, at)
		done += n
		if err != nil {
			out.Reason, out.File = whyUnreadable(err)
			break
		}
	}
	out.Data = b[:done]
}

func memoryPage(at uint64, size int, p *kdump.Page) report.MemoryPage {
	out := report.MemoryPage{Address: at, Size: size, State: p.State.Key(), Words: p.Describe(), Readable: p.State.Readable(), Entry: p.Entry, Physical: p.Physical, File: p.File()}
	if f := p.PageFile; f != nil {
		out.PageFile, out.PageOffset, out.HasPlace = f.Number, f.Offset, true
	}
	return out
}

// whyUnreadable is the reason of a memory error without its address, which
// stands before it, and the file that has the bytes.
func whyUnreadable(err error) (reason, file string) {
	var page *kdump.PageError
	if errors.As(err, &page) {
		return page.Describe(), page.File()
	}
	var m *dump.MemoryError
	if errors.As(err, &m) {
		if m.Err != nil {
			return m.Err.Error(), ""
		}
		return "not in the dump", ""
	}
	return err.Error(), ""
}

// parseAddress reads an address as the debuggers print it.
func parseAddress(s string) (uint64, error) {
	s = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "0x"), "`", "")
	return strconv.ParseUint(s, 16, 64)
}
