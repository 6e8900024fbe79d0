package main

import (
	"fmt"
	"math"

	"github.com/urfave/cli/v2"

	"dumptriage/kdump"
	"dumptriage/minidump"
	"dumptriage/report"
	"dumptriage/triage"
)

func streamsCommand() *cli.Command {
	return &cli.Command{
		Name:  "streams",
		Usage: "list the parts of a dump file: streams, or sections of a kernel dump",
		Description: "With the place of each part in the file and what is wrong with it. Offsets are hexadecimal,\n" +
			"sizes decimal, in bytes.",
		ArgsUsage: "DUMP",
		Flags:     listFlags(),
		Action: listVerb(report.ListStreams, func(_ *cli.Context, d *triage.Dump, l *report.List) error {
			switch src := d.Source.(type) {
			case *minidump.File:
				for _, s := range src.Streams() {
					l.Streams = append(l.Streams, report.Stream{Type: s.Type, HasType: true, Name: s.Name, Offset: s.Offset, Size: s.Size, Note: s.Note})
				}
			case *kdump.File:
				for _, s := range src.Sections() {
					l.Streams = append(l.Streams, report.Stream{Name: s.Name, Offset: s.Offset, Size: s.Size})
				}
				for _, b := range src.Blobs() {
					l.Streams = append(l.Streams, report.Blob(b).Stream())
				}
			case *minidump.UserDump:
				l.Streams = userDumpParts(&src.Header)
			}
			return nil
		}),
	}
}

// userDumpParts lists the parts of an old full user dump, whose header gives
// their places but not their sizes.
func userDumpParts(h *minidump.UserDumpHeader) []report.Stream {
	part := func(name string, offset uint64, note string) report.Stream {
		return report.Stream{Name: name, Offset: int64(min(offset, math.MaxInt64)), Size: -1, Note: note}
	}
	return []report.Stream{
		part("threads", h.ThreadOffset, fmt.Sprintf("%d threads", h.Threads)),
		part("thread states", h.ThreadStateOffset, ""),
		part("modules", h.ModuleOffset, fmt.Sprintf("%d modules", h.Modules)),
		part("memory regions", h.MemoryRegionOffset, fmt.Sprintf("%d regions", h.MemoryRegions)),
		part("memory", h.DataOffset, ""),
		part("debug event", h.DebugEventOffset, ""),
		part("version", h.VersionInfoOffset, ""),
	}
}
