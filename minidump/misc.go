package minidump

import (
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// MiscInfo is the MiscInfo stream (MINIDUMP_MISC_INFO to _5). What the writer
// did not mark as valid, or what lies beyond the size it gives, is nil, "" or
// unknown.
type MiscInfo struct {
	Flags          uint32 // MINIDUMP_MISC*_ bits
	HasPID         bool
	PID            uint32
	HasTimes       bool
	Created        time.Time // to the second
	User, Kernel   time.Duration
	Power          *PowerInfo
	IntegrityLevel *uint32 // SECURITY_MANDATORY_*_RID
	ExecuteFlags   *uint32
	Protected      *uint32
	TimeZone       *TimeZone
	BuildString    string // of the operating system
	DebuggerBuild  string // of the writer (dbghelp or dbgcore)
	XStateSize     uint32 // CONTEXT size with XSTATE; 0 not known
	XStateEnabled  uint64 // XSTATE feature bits
	XStateFeatures []XStateFeature
	ProcessCookie  uint32
	HasCookie      bool
}

// PowerInfo is the processor's speed and idle state.
type PowerInfo struct {
	MaxMHz, CurrentMHz, LimitMHz uint32
	MaxIdleState, IdleState      uint32
}

// TimeZone is the machine's time zone. Biases are minutes; UTC is local time
// plus Bias.
type TimeZone struct {
	ID                                uint32 // TIME_ZONE_ID_*: 0 unknown, 1 standard, 2 daylight
	Bias, StandardBias, DaylightBias  int32
	StandardName, DaylightName        string
	StandardBeginning, DaylightChange [8]uint16 // SYSTEMTIME
}

// XStateFeature places one XSAVE component in an extended context.
type XStateFeature struct {
	Bit          int
	Offset, Size uint32
}

// Flags of MINIDUMP_MISC_INFO.Flags1.
const (
	miscProcessID    = 0x1
	miscProcessTimes = 0x2
	miscPowerInfo    = 0x4
	miscIntegrity    = 0x10
	miscExecuteFlags = 0x20
	miscTimeZone     = 0x40
	miscProtected    = 0x80
	miscBuildString  = 0x100
	miscCookie       = 0x200

	miscSize         = 24 // smallest structure
	maxPath          = 260
	debugBuildChars  = 40
	xstateFeatureMax = 64
	xstateInfoSize   = 16 + xstateFeatureMax*8
)

// MiscInfo returns the MiscInfo stream.
func (f *File) MiscInfo() (*MiscInfo, error) {
	return f.miscInfo.get(f, (*File).decodeMiscInfo)
}

func (f *File) decodeMiscInfo() (*MiscInfo, *dump.Error) {
	c, fs := f.open(StreamMiscInfo, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	size := c.U32()
	if c.Err() == nil && (size < miscSize-12 || size > uint32(c.Len())) {
		fs.errorf(dump.BadRecord, c.FileOffset(), "SizeOfInfo is %d in a stream of %d bytes", size, c.Len())
		size = uint32(c.Len())
	}
	c.Seek(0)
	c = c.Sub(int(size))
	c.Skip(4)
	m := &MiscInfo{Flags: c.U32()}
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	// A structure that ends early is an older one, not damage: what it lacks
	// stays unknown.
	m.readProcess(c)
	m.readPower(c)
	m.readSecurity(c)
	m.readBuild(c)
	m.readXState(c)
	return m, fs.done()
}

func (m *MiscInfo) readProcess(c *cursor.Cursor) {
	pid := c.U32()
	if c.Err() == nil && m.Flags&miscProcessID != 0 {
		m.PID, m.HasPID = pid, true
	}
	created, user, kernel := c.U32(), c.U32(), c.U32()
	if c.Err() == nil && m.Flags&miscProcessTimes != 0 {
		m.HasTimes = true
		if created != 0 {
			m.Created = time.Unix(int64(created), 0).UTC()
		}
		m.User, m.Kernel = time.Duration(user)*time.Second, time.Duration(kernel)*time.Second
	}
}

func (m *MiscInfo) readPower(c *cursor.Cursor) {
	p := PowerInfo{c.U32(), c.U32(), c.U32(), c.U32(), c.U32()}
	if c.Err() == nil && m.Flags&miscPowerInfo != 0 {
		m.Power = &p
	}
}

func (m *MiscInfo) readSecurity(c *cursor.Cursor) {
	optional := func(flag uint32) *uint32 {
		v := c.U32()
		if c.Err() != nil || m.Flags&flag == 0 {
			return nil
		}
		return &v
	}
	m.IntegrityLevel = optional(miscIntegrity)
	m.ExecuteFlags = optional(miscExecuteFlags)
	m.Protected = optional(miscProtected)
	z := TimeZone{ID: c.U32(), Bias: int32(c.U32()), StandardName: cursor.UTF16(c.Bytes(64)), StandardBeginning: systemTime(c),
		StandardBias: int32(c.U32()), DaylightName: cursor.UTF16(c.Bytes(64)), DaylightChange: systemTime(c), DaylightBias: int32(c.U32())}
	if c.Err() == nil && m.Flags&miscTimeZone != 0 {
		m.TimeZone = &z
	}
}

func systemTime(c *cursor.Cursor) (t [8]uint16) {
	for i := range t {
		t[i] = c.U16()
	}
	return t
}

func (m *MiscInfo) readBuild(c *cursor.Cursor) {
	build, debugger := c.Bytes(maxPath*2), c.Bytes(debugBuildChars*2)
	if m.Flags&miscBuildString != 0 && c.Err() == nil {
		m.BuildString, m.DebuggerBuild = cursor.UTF16(build), cursor.UTF16(debugger)
	}
}

// readXState reads XSTATE_CONFIG_FEATURE_MSC_INFO, which is left empty where
// the processor or the writer has none, and the cookie behind it.
func (m *MiscInfo) readXState(c *cursor.Cursor) {
	end := c.Offset() + xstateInfoSize
	size, context, enabled := c.U32(), c.U32(), c.U64()
	var features []XStateFeature
	for bit := range xstateFeatureMax {
		offset, length := c.U32(), c.U32()
		if enabled&(1<<bit) != 0 {
			features = append(features, XStateFeature{bit, offset, length})
		}
	}
	if c.Err() != nil {
		return
	}
	if size >= xstateInfoSize {
		m.XStateSize, m.XStateEnabled, m.XStateFeatures = context, enabled, features
		end = end - xstateInfoSize + int(min(size, uint32(c.Len()))) // a newer one may be longer
	}
	c.Seek(end)
	cookie := c.U32()
	if c.Err() == nil && m.Flags&miscCookie != 0 {
		m.ProcessCookie, m.HasCookie = cookie, true
	}
}
