package dwarf

import (
	"debug/dwarf"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Forms, and an attribute of older compilers; tags and the other attributes are those
// of the standard library.
const (
	attrLinkageOld dwarf.Attr = 0x2007 // DW_AT_MIPS_linkage_name

	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSData         = 0x0d
	formStrp          = 0x0e
	formUData         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUData      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// value is an attribute's value. Form 0 means that there is none; the forms that
// differ in size alone are one here.
type value struct {
	form uint16
	// u is the number, offset, index or reference as coded. Of a string in place it
	// is where it begins, from the cursor's beginning on; of a block nothing.
	u uint64
}

func (v value) there() bool { return v.form != 0 }

// encoding is what the sizes of forms depend on.
type encoding struct {
	version  uint16
	wide     bool // the 64-bit format, with offsets of eight bytes
	addrSize int
}

func (e *encoding) offset(c *cursor.Cursor) uint64 {
	if e.wide {
		return c.U64()
	}
	return uint64(c.U32())
}

func (e *encoding) address(c *cursor.Cursor) uint64 { return c.Pointer(e.addrSize) }

func u24(c *cursor.Cursor) uint64 { return uint64(c.U16()) | uint64(c.U8())<<16 }

func skip(c *cursor.Cursor, n uint64) {
	if n > uint64(c.Left()) {
		c.Fail(dump.Truncated, "a block of %d bytes, %d left", n, c.Left())
		return
	}
	c.Skip(int(n))
}

// read reads a value and moves behind it.
func (e *encoding) read(c *cursor.Cursor, form uint16, implicit int64) value {
	if form == formIndirect {
		form = uint16(min(c.ULEB128(), 0xffff))
		if form == formIndirect || form == formImplicitConst {
			c.Fail(dump.BadRecord, "form %#x behind an indirect form", form)
		}
	}
	switch form {
	case formString:
		v := value{formString, uint64(c.Offset())}
		c.SkipZ()
		return v
	case formImplicitConst:
		return value{formUData, uint64(implicit)}
	case formFlagPresent:
		return value{formFlag, 1}
	case formData16:
		c.Skip(16)
		return value{formBlock, 0}
	}
	if v, ok := e.readBlock(c, form); ok {
		return v
	}
	return e.readNumber(c, form)
}

func (e *encoding) readBlock(c *cursor.Cursor, form uint16) (value, bool) {
	switch form {
	case formBlock1:
		skip(c, uint64(c.U8()))
	case formBlock2:
		skip(c, uint64(c.U16()))
	case formBlock4:
		skip(c, uint64(c.U32()))
	case formBlock, formExprloc:
		skip(c, c.ULEB128())
	default:
		return value{}, false
	}
	return value{formBlock, 0}, true
}

func (e *encoding) readNumber(c *cursor.Cursor, form uint16) value {
	switch form {
	case formAddr:
		return value{formAddr, e.address(c)}
	case formData1, formFlag:
		return value{formUData, uint64(c.U8())}
	case formData2:
		return value{formUData, uint64(c.U16())}
	case formData4: // version 3 and older have offsets in this form too
		return value{formData4, uint64(c.U32())}
	case formData8:
		return value{formData8, c.U64()}
	case formUData:
		return value{formUData, c.ULEB128()}
	case formSData:
		return value{formUData, uint64(c.SLEB128())}
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return value{form, e.offset(c)}
	case formRefAddr:
		if e.version <= 2 {
			return value{form, e.address(c)}
		}
		return value{form, e.offset(c)}
	case formRef1:
		return value{formRef4, uint64(c.U8())}
	case formRef2:
		return value{formRef4, uint64(c.U16())}
	case formRef4:
		return value{formRef4, uint64(c.U32())}
	case formRef8:
		return value{formRef4, c.U64()}
	case formRefUData:
		return value{formRef4, c.ULEB128()}
	case formRefSup4:
		return value{form, uint64(c.U32())}
	case formRefSig8, formRefSup8:
		return value{form, c.U64()}
	}
	return readIndex(c, form)
}

func readIndex(c *cursor.Cursor, form uint16) value {
	switch form {
	case formStrx, formGNUStrIndex:
		return value{formStrx, c.ULEB128()}
	case formStrx1:
		return value{formStrx, uint64(c.U8())}
	case formStrx2:
		return value{formStrx, uint64(c.U16())}
	case formStrx3:
		return value{formStrx, u24(c)}
	case formStrx4:
		return value{formStrx, uint64(c.U32())}
	case formAddrx, formGNUAddrIndex:
		return value{formAddrx, c.ULEB128()}
	case formAddrx1:
		return value{formAddrx, uint64(c.U8())}
	case formAddrx2:
		return value{formAddrx, uint64(c.U16())}
	case formAddrx3:
		return value{formAddrx, u24(c)}
	case formAddrx4:
		return value{formAddrx, uint64(c.U32())}
	case formRnglistx, formLoclistx:
		return value{form, c.ULEB128()}
	}
	c.Fail(dump.BadRecord, "form %#x is not known", form)
	return value{}
}
