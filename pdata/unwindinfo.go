package pdata

import (
	"fmt"
	"sync/atomic"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

const (
	infoStream  = "UNWIND_INFO"
	maxInfoSize = 4 + 2*256 + functionSize // header, an even number of slots, trailer
	infoSlots   = 512
)

// infoCache keeps decoded infos by RVA, one a slot: bounded, and free of locks.
type infoCache [infoSlots]atomic.Pointer[cachedInfo]

type cachedInfo struct {
	rva  uint32
	info UnwindInfo
}

func (c *infoCache) slot(rva uint32) *atomic.Pointer[cachedInfo] {
	return &c[(rva*0x9e3779b1)>>23] // the top nine bits: infoSlots
}

// UnwindInfo decodes the UNWIND_INFO at an RVA. Results are cached. Errors are
// *dump.Error: Truncated or OutOfRange when its bytes are not there, BadRecord
// for what the format does not allow, UnsupportedFormat for what version 3
// reserves.
func (im *Image) UnwindInfo(rva uint32) (*UnwindInfo, error) {
	cache := im.infos.Load()
	if cache == nil {
		im.infos.CompareAndSwap(nil, new(infoCache))
		cache = im.infos.Load()
	}
	slot := cache.slot(rva)
	if c := slot.Load(); c != nil && c.rva == rva {
		return &c.info, nil
	}
	c := &cachedInfo{rva: rva}
	if err := im.decodeInfo(&c.info, rva); err != nil {
		return nil, withFile(err, im.name)
	}
	slot.Store(c)
	return &c.info, nil
}

func (im *Image) decodeInfo(u *UnwindInfo, rva uint32) error {
	buf := make([]byte, maxInfoSize)
	n, short := im.layout.read(buf, rva)
	if n == 0 {
		return short
	}
	c := cursor.New(buf[:n], infoStream, -1)
	if err := u.decode(c); err != nil {
		return infoError(err, rva, im.layout.offset(rva), short)
	}
	u.Unaligned = rva%4 != 0
	if u.Chained && u.Chain.UnwindInfo&1 != 0 {
		chain, err := im.direct(u.Chain)
		if err != nil {
			return err
		}
		u.Chain = chain
	}
	return nil
}

// infoError says where in the image the info lies, and when its bytes ran out
// because the image's did, why.
func infoError(err error, rva uint32, off int64, short error) error {
	e, ok := err.(*dump.Error)
	if !ok {
		return err
	}
	placed := *e
	placed.Msg = fmt.Sprintf("at RVA %#x: %s", rva, e.Msg)
	placed.Offset = off
	if e.Code == dump.Truncated {
		placed.Err = short
	}
	return &placed
}

// DecodeUnwindInfo decodes the UNWIND_INFO at the beginning of b, which may be
// longer: information that is not in an image, such as that of code made at
// run time. A chained entry that is indirect is returned as it is.
func DecodeUnwindInfo(b []byte) (*UnwindInfo, error) {
	u := new(UnwindInfo)
	if err := u.decode(cursor.New(b, infoStream, -1)); err != nil {
		return nil, err
	}
	return u, nil
}

// decode reads the header, the codes and what follows them.
func (u *UnwindInfo) decode(c *cursor.Cursor) error {
	b := c.U8()
	u.Version, u.Flags = b&7, b>>3
	if c.Err() == nil {
		switch u.Version {
		case 1, 2:
		case 3:
			return u.decodeV3(c)
		default:
			c.Fail(dump.BadRecord, "unwind information of unknown version %d", u.Version)
		}
	}
	u.SizeOfProlog = uint16(c.U8())
	slots := int(c.U8())
	b = c.U8()
	u.FrameRegister, u.FrameOffset = b&15, uint32(b>>4)*16
	codes := c.Sub(2 * slots)
	if err := c.Err(); err != nil {
		return err
	}
	if u.Version == 2 {
		codes = u.decodeEpilogs(codes)
	}
	if err := u.decodeCodes(codes); err != nil {
		return err
	}
	c.Skip(2 * (slots & 1)) // the trailer follows an even number of slots
	u.decodeTrailer(c)
	return c.Err()
}

// decodeTrailer reads the chained entry or the handler. They exclude each
// other; Windows looks for the chain first.
func (u *UnwindInfo) decodeTrailer(c *cursor.Cursor) {
	switch {
	case u.Flags&FlagChainInfo != 0:
		u.Chained = true
		u.Chain = RuntimeFunction{Begin: c.U32(), End: c.U32(), UnwindInfo: c.U32()}
	case u.Flags&(FlagEHandler|FlagUHandler) != 0:
		u.Handler = c.U32()
	}
}
