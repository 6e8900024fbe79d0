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
		Usage: "list the memory that a dump holds and what it knows of protections, or show some of it",
		Description: "First the regions that the process had, where the dump describes them; then the ranges of\n" +
			"memory that the dump holds, physical ones of a full kernel dump. Sizes and offsets are hexadecimal, totals decimal.\n" +
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
		k, ok := d.Source.(*kdump.File)
		if !ok || k.PhysicalMemory() == nil {
			return usagef("%s holds no physical memory; use --va", d.Path)
		}
		mem = k.PhysicalMemory()
	} else {
		mem = d.Memory()
		p, err := oneProcess(c, d)
		if err != nil {
			return err
		}
		if p != nil {
			mem, out.Process = d.ProcessView(p).Memory(), p
		}
	}
	if out.Address, err = parseAddress(c.String(flag)); err != nil {
		return usagef("--%s wants a hexadecimal address such as fffff804`5de00000, not %q", flag, c.String(flag))
	}
	b := make([]byte, length)
	n, err := mem.ReadAt(b, out.Address)
	out.Data = b[:n]
	if err != nil {
		out.Reason = whyUnreadable(err)
	}
	l.Bytes = out
	return nil
}

// whyUnreadable is the reason of a memory error without its address, which
// stands before it.
func whyUnreadable(err error) string {
	var m *dump.MemoryError
	if errors.As(err, &m) {
		if m.Err != nil {
			return m.Err.Error()
		}
		return "not in the dump"
	}
	return err.Error()
}

// parseAddress reads an address as the debuggers print it.
func parseAddress(s string) (uint64, error) {
	s = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "0x"), "`", "")
	return strconv.ParseUint(s, 16, 64)
}
