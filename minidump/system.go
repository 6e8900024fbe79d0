package minidump

import (
	"fmt"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// SystemInfo is the SystemInfo stream (MINIDUMP_SYSTEM_INFO).
type SystemInfo struct {
	ProcessorArchitecture uint16 // PROCESSOR_ARCHITECTURE_*
	ProcessorLevel        uint16 // x86 and AMD64: family
	ProcessorRevision     uint16 // x86 and AMD64: model in the high byte, stepping in the low
	NumberOfProcessors    uint8
	ProductType           uint8
	MajorVersion          uint32
	MinorVersion          uint32
	BuildNumber           uint32
	PlatformID            uint32
	CSDVersion            string
	SuiteMask             uint16
	CPU                   [24]byte // CPU_INFORMATION, a union that the architecture decides
}

// PROCESSOR_ARCHITECTURE_* values and platform ids.
const (
	archIntel        = 0
	archARM          = 5
	archAMD64        = 9
	archIA32OnWin64  = 10
	archARM64        = 12
	systemInfoSize   = 56
	platformWindows  = 2 // VER_PLATFORM_WIN32_NT; 0 and 1 are older Windows
	platformWinCE    = 3
	platformNotWinNT = 0x8000 // Breakpad gives other systems ids from here on
)

// platformNames names the platform ids that Breakpad and Crashpad give to
// systems other than Windows.
var platformNames = map[uint32]string{
	platformWinCE: "Windows CE", 0x8000: "Unix", 0x8101: "macOS", 0x8102: "iOS", 0x8201: "Linux", 0x8202: "Solaris",
	0x8203: "Android", 0x8204: "PS3", 0x8205: "NaCl", 0x8206: "Fuchsia",
}

// checkPlatform refuses dumps of other systems. A platform id that nobody gives
// is more likely damage and only noted.
func (f *File) checkPlatform() *dump.Error {
	c, _ := f.open(StreamSystemInfo, fixedLimit)
	if c == nil {
		f.platform = platformWindows
		return nil
	}
	at := c.FileOffset() + 20
	c.Seek(20)
	f.platform = c.U32()
	name, known := platformNames[f.platform]
	switch {
	case c.Err() != nil || f.platform <= platformWindows:
		return nil
	case known:
		what := fmt.Sprintf("a minidump of %s, not Windows", name)
		if f.platform == platformWinCE {
			what = "a minidump of Windows CE, which is not supported"
		}
		return &dump.Error{Code: dump.UnsupportedPlatform, Stream: "SystemInfo", Offset: at, Size: 4, Msg: what}
	case f.platform&^0xfff == platformNotWinNT:
		return &dump.Error{Code: dump.UnsupportedPlatform, Stream: "SystemInfo", Offset: at, Size: 4, Msg: fmt.Sprintf("a minidump of platform %#x, not Windows", f.platform)}
	}
	f.note(&dump.Error{Code: dump.BadRecord, Stream: "SystemInfo", Offset: at, Size: 4, Msg: fmt.Sprintf("unknown platform id %#x, taken for Windows", f.platform)})
	return nil
}

// SystemInfo returns the SystemInfo stream.
func (f *File) SystemInfo() (*SystemInfo, error) {
	return f.systemInfo.get(f, (*File).decodeSystemInfo)
}

func (f *File) decodeSystemInfo() (*SystemInfo, *dump.Error) {
	c, fs := f.open(StreamSystemInfo, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	s := &SystemInfo{ProcessorArchitecture: c.U16(), ProcessorLevel: c.U16(), ProcessorRevision: c.U16(),
		NumberOfProcessors: c.U8(), ProductType: c.U8(), MajorVersion: c.U32(), MinorVersion: c.U32(),
		BuildNumber: c.U32(), PlatformID: c.U32()}
	csd := c.U32()
	s.SuiteMask = c.U16()
	c.Skip(2)
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	s.CSDVersion = f.texts(fs).utf16(int64(csd), "the service pack string")
	copy(s.CPU[:], c.Bytes(min(len(s.CPU), c.Left()))) // older writers end before it
	return s, fs.done()
}

// Arch returns the processor architecture in the terms of package dump.
func (s *SystemInfo) Arch() dump.Arch {
	switch s.ProcessorArchitecture {
	case archIntel, archIA32OnWin64:
		return dump.X86
	case archAMD64:
		return dump.AMD64
	case archARM64:
		return dump.ARM64
	case archARM:
		return dump.ARM
	}
	return dump.ArchUnknown
}

// CPUVendor returns the CPUID vendor string of an x86 dump. Dumps of other
// architectures hold feature bits in its place.
func (s *SystemInfo) CPUVendor() string {
	if s.Arch() != dump.X86 {
		return ""
	}
	vendor := cursor.CString(s.CPU[:12])
	if strings.ContainsFunc(vendor, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return vendor
}

// Arch returns the architecture of the dump. Without a SystemInfo stream it is
// taken from the threads' contexts, and Damage says so.
func (f *File) Arch() dump.Arch {
	a, _ := f.arch.get(f, (*File).decodeArch)
	return a
}

func (f *File) decodeArch() (dump.Arch, *dump.Error) {
	if s, _ := f.SystemInfo(); s != nil {
		a := s.Arch()
		if a == dump.ArchUnknown {
			f.note(&dump.Error{Code: dump.BadRecord, Stream: "SystemInfo", Offset: -1, Size: -1, Msg: fmt.Sprintf("unknown processor architecture %d", s.ProcessorArchitecture)})
		}
		return a, nil
	}
	a := f.inferArch()
	e := &dump.Error{Code: dump.BadRecord, Stream: "SystemInfo", Offset: -1, Size: -1, Msg: "missing: the processor architecture is not known"}
	if a != dump.ArchUnknown {
		e.Msg = fmt.Sprintf("missing: the processor architecture %s is inferred from the threads' contexts", a)
	}
	f.note(e)
	return a, nil
}

// inferArch looks for the architecture bits of ContextFlags where each
// architecture's CONTEXT keeps them.
func (f *File) inferArch() dump.Arch {
	records, _ := f.ThreadList()
	w := window{f: &f.input, fs: f.faults("ThreadList")}
	for _, t := range records[:min(len(records), 16)] {
		c, err := w.at(t.Context.Offset, int(min(t.Context.Size, 0x40)))
		if err != nil {
			continue
		}
		first := c.U32()
		c.Seek(0x30)
		second := c.U32()
		switch {
		case c.Err() == nil && second&^0x1ff == 0x100000:
			return dump.AMD64
		case first&^0x1ff == 0x400000:
			return dump.ARM64
		case first&^0x1ff == 0x10000:
			return dump.X86
		}
	}
	return dump.ArchUnknown
}

// System implements dump.Source.
func (f *File) System() *dump.System {
	s, _ := f.system.get(f, (*File).decodeSystem)
	return s
}

func (f *File) decodeSystem() (*dump.System, *dump.Error) {
	out := &dump.System{Arch: f.Arch()}
	if s, _ := f.SystemInfo(); s != nil {
		out.Major, out.Minor, out.Build = s.MajorVersion, s.MinorVersion, s.BuildNumber
		out.ServicePack, out.ProductType, out.SuiteMask = s.CSDVersion, s.ProductType, s.SuiteMask
		out.CPUCount, out.CPUVendor = uint32(s.NumberOfProcessors), s.CPUVendor()
		if out.Arch == dump.X86 || out.Arch == dump.AMD64 {
			out.CPUFamily = uint32(s.ProcessorLevel)
			out.CPUModel, out.CPUStepping = uint32(s.ProcessorRevision>>8), uint32(s.ProcessorRevision&0xff)
		}
	}
	if m, _ := f.MiscInfo(); m != nil {
		if m.Power != nil {
			out.CPUMHz = m.Power.CurrentMHz
		}
		out.BuildLab = m.BuildString
		splitRevision(out)
	}
	return out, nil
}

// splitRevision tells the update build revision, which Crashpad writes where the
// service pack belongs, from a service pack: the build string ends with the
// whole version then ("Windows NT 10.0.22000.282").
func splitRevision(s *dump.System) {
	n, err := strconv.ParseUint(s.ServicePack, 10, 32)
	if err == nil && strings.HasSuffix(s.BuildLab, fmt.Sprintf(" %d.%d.%d.%s", s.Major, s.Minor, s.Build, s.ServicePack)) {
		s.Revision, s.ServicePack = uint32(n), ""
	}
}
