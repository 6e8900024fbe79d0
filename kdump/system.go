package kdump

import (
	"math"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// System implements dump.Source. The exact version comes from the kernel image's
// time stamp and size.
func (f *File) System() *dump.System {
	f.systemOnce.Do(f.readSystem)
	return &f.system
}

func (f *File) readSystem() {
	h, s := f.hdr, &f.system
	s.Arch, s.Build = h.arch, h.build
	s.Major, s.Minor = versionOfBuild(h.build)
	s.NTVersion, s.Revision = f.ntVersion()
	if h.cpus.ok {
		s.CPUCount = h.cpus.v
	}
	if h.productType.ok && h.productType.v <= 3 {
		s.ProductType = uint8(h.productType.v)
	}
	if h.suite.ok {
		s.SuiteMask = uint16(h.suite.v)
	}
	if h.uptime.ok && h.uptime.v <= math.MaxInt64/100 {
		s.Uptime = time.Duration(h.uptime.v) * 100
	}
	f.readProcessorType()
	if f.kd != nil && f.kd.ntBuildLab != 0 {
		b := make([]byte, 128)
		n, _ := f.mem.ReadAt(b, f.kd.ntBuildLab)
		if n > 0 {
			s.BuildLab = printable(b[:n])
		}
	}
}

// versionOfBuild returns the version number that belongs to a build number;
// zeros when it is none that was released.
func versionOfBuild(build uint32) (major, minor uint32) {
	switch {
	case build >= 9800 && build <= 99999: // Windows 10 from its previews on
		return 10, 0
	case build == 9600:
		return 6, 3
	case build == 9200:
		return 6, 2
	case build == 7600 || build == 7601:
		return 6, 1
	case build >= 6000 && build <= 6003:
		return 6, 0
	case build == 3790:
		return 5, 2
	case build == 2600:
		return 5, 1
	}
	return 0, 0
}

// readProcessorType reads vendor, model and frequency from the first KPRCB:
// CpuType u8, CpuID u8, then stepping and model, each a byte.
func (f *File) readProcessorType() {
	ps := f.processors()
	if len(ps) == 0 {
		return
	}
	s, p, k := &f.system, &ps[0], &f.kd.prcb
	const slowest, fastest = 100, 10000
	if p.mhz >= slowest && p.mhz <= fastest {
		s.CPUMHz = uint32(p.mhz)
	}
	if f.hdr.arch == dump.ARM64 {
		return
	}
	var name [12]byte
	if n, _ := f.mem.ReadAt(name[:], p.va+uint64(k.vendor)); k.vendor != 0 && p.va != 0 && n == len(name) {
		if vendor := cursor.CString(name[:]); len(vendor) == len(name) && printable(name[:]) == vendor {
			s.CPUVendor = vendor
		}
	}
	if p.family != 0 {
		s.CPUFamily, s.CPUModel, s.CPUStepping = uint32(p.family), uint32(p.model), uint32(p.stepping)
	}
}
