package pdata

import (
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"dumptriage/dump"
)

// everyWOD has one of each operation. The pool's bytes follow the tables of
// "x64 unwind information v3": code in the low bits, register above it.
var everyWOD = []byte{
	0x03, 0x50, // version 3, no flags; prolog of 0x50 bytes
	23,                                                                     // words of payload: 12 offsets, 33 bytes of pool, 1 of padding
	12,                                                                     // operations; no epilogs
	0x48, 0x40, 0x38, 0x30, 0x2c, 0x28, 0x20, 0x18, 0x10, 0x08, 0x06, 0x00, // where the instructions begin
	0x69, 0x10, 0x00, 0x10, 0x00, // 9 | 6<<4: SAVE_XMM128_FAR xmm6 at 0x100010, not scaled
	0xfa, 0xff, 0xff, // 10 | 15<<4: SAVE_XMM128 xmm15 at 0xffff*16
	0x3d, 0x08, 0x00, 0x10, 0x00, // 5 | 7<<3: SAVE_NONVOL_FAR rdi at 0x100008, not scaled
	0xfe, 0xff, 0xff, // 6 | 31<<3: SAVE_NONVOL r31 at 0xffff*8
	0x00, 0x35, // SET_FPREG rbp (5), 3*16
	0xf8,                         // 8 | 15<<4: ALLOC_SMALL (15+1)*8
	0x01, 0x08, 0x00, 0x08, 0x00, // ALLOC_HUGE 0x80008, not scaled
	0x02, 0xff, 0xff, // ALLOC_LARGE 0xffff*8
	0x60, 0x65, // 32 | 1<<6, 5 | 12<<3: PUSH2 r21 (1 + 5<<2), r12
	0xf7,       // 7 | 30<<3: PUSH_CONSECUTIVE_2 r30 and r31
	0x7c,       // 4 | 15<<3: PUSH r15
	0x03, 0x01, // PUSH_CANONICAL_FRAME of type 1
	0xcc, // padding to a whole word
}

// allocPush is a prolog {push rbx; sub rsp, 20h} and its operations.
var (
	allocPush = []OperationV3{{1, WODAllocSmall, 0, 0, 0x20}, {0, WODPush, 3, 0, 0}}
	epilogOps = []OperationV3{{0, WODAllocSmall, 0, 0, 0x20}, {4, WODPush, 3, 0, 0}}
	threeEnds = []byte{ // two full descriptors and one that inherits
		0x03, 5, 13, 2 | 3<<5, // 2 offsets, 3 descriptors of 8, 3 and 7 bytes, 5 of pool, 1 of padding: 26 bytes
		1, 0, // sub begins at 1, push at 0
		0x10, 0x20, 0x00, 0x00, 0x00, 0x05, 0, 4, // 2<<3: two operations; 0x20 from begin; pool byte 0; ret at 5; add at 0, pop at 4
		0x00, 0x10, 0x00, // inherits; 0x10 behind the one before
		0x08, 0x18, 0x00, 0x02, 0x00, 0x07, 0, // one operation; 0x18 further on; pool byte 2; ret at 7
		0x38, 0x1c, // ALLOC_SMALL (3+1)*8; PUSH rbx: 4 | 3<<3
		0x02, 0x05, 0x00, // ALLOC_LARGE 5*8
		0xcc,
	}
)

func TestUnwindInfoV3(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want UnwindInfo
	}{
		{"nothing", []byte{3, 0, 0, 0}, UnwindInfo{Version: 3, V3: &UnwindInfoV3{}}},
		{"every operation", everyWOD, UnwindInfo{Version: 3, SizeOfProlog: 0x50, V3: &UnwindInfoV3{Prolog: []OperationV3{
			{0x48, WODSaveXMM128Far, 6, 0, 0x100010},
			{0x40, WODSaveXMM128, 15, 0, 0xffff0},
			{0x38, WODSaveNonvolFar, 7, 0, 0x100008},
			{0x30, WODSaveNonvol, 31, 0, 0x7fff8},
			{0x2c, WODSetFPReg, 5, 0, 0x30},
			{0x28, WODAllocSmall, 0, 0, 0x80},
			{0x20, WODAllocHuge, 0, 0, 0x80008},
			{0x18, WODAllocLarge, 0, 0, 0x7fff8},
			{0x10, WODPush2, 21, 12, 0},
			{0x08, WODPushConsecutive2, 30, 31, 0},
			{0x06, WODPush, 15, 0, 0},
			{0x00, WODPushCanonicalFrame, 0, 0, 1},
		}}}},
		{"epilogs ascending from the begin", threeEnds, UnwindInfo{Version: 3, SizeOfProlog: 5, V3: &UnwindInfoV3{Prolog: allocPush, Epilogs: []EpilogV3{
			{Offset: 0x20, Last: 5, Operations: epilogOps},
			{Offset: 0x30, Last: 5, Operations: epilogOps},
			{Offset: 0x48, Last: 7, Operations: []OperationV3{{0, WODAllocLarge, 0, 0, 0x28}}},
		}}}},
		{"epilogs descending from the end", []byte{
			0x03, 5, 8, 2 | 2<<5, // 2 + 8 + 3 + 2 bytes and padding
			1, 0,
			0x10, 0xfa, 0xff, 0x00, 0x00, 0x05, 0, 4, // 6 before the end
			0x04 &^ 7, 0xe0, 0xff, // 0x20 before that one
			0x38, 0x1c, 0xcc,
		}, UnwindInfo{Version: 3, SizeOfProlog: 5, V3: &UnwindInfoV3{Prolog: allocPush, Epilogs: []EpilogV3{
			{Offset: -6, Last: 5, Operations: epilogOps}, {Offset: -0x26, Last: 5, Operations: epilogOps},
		}}}},
		{"a large prolog and a large epilog, handler after an odd number of words", []byte{
			3 | (8|1)<<3, 0x34, 9, 1 | 1<<5, // LARGE and EHANDLER; 1 + 2 + 3+4+2 + 5 bytes and padding
			0x12,       // the prolog's size is 0x1234
			0x2d, 0x12, // u16: the sub begins at 0x122d
			0x0a, 0x00, 0x20, 0x00, 0x00, 0x34, 0x01, 0x02, 0x01, // flags 2, one operation; at 0x2000; u16: last at 0x134, add at 0x102
			0x01, 0x00, 0x00, 0x10, 0x00, // ALLOC_HUGE 0x100000
			0xcc,
			0xcc, 0xcc, // to the next multiple of four: 4 + 18 + 2
			0x78, 0x56, 0x34, 0x12,
		}, UnwindInfo{Version: 3, Flags: FlagLarge | FlagEHandler, SizeOfProlog: 0x1234, Handler: 0x12345678, V3: &UnwindInfoV3{
			Prolog:  []OperationV3{{0x122d, WODAllocHuge, 0, 0, 0x100000}},
			Epilogs: []EpilogV3{{Offset: 0x2000, Last: 0x134, Operations: []OperationV3{{0x102, WODAllocHuge, 0, 0, 0x100000}}}},
		}}},
		{"a fragment whose epilogs lead to the parent: the flag is inherited too", []byte{
			3 | 4<<3, 4, 6, 1 | 2<<5, // CHAININFO; 1 + 7 + 3 + 1 bytes
			0,
			0x09, 0x10, 0x00, 0x00, 0x00, 0x04, 0, // flags 1, one operation
			0x02 &^ 2, 0x20, 0x00,
			0x38,
			0x00, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0x00, 0x40, 0, 0, // the parent's entry
		}, UnwindInfo{Version: 3, Flags: FlagChainInfo, SizeOfProlog: 4, Chained: true, Chain: RuntimeFunction{0x1000, 0x1040, 0x4000}, V3: &UnwindInfoV3{
			Prolog: []OperationV3{{0, WODAllocSmall, 0, 0, 0x20}},
			Epilogs: []EpilogV3{
				{Offset: 0x10, Last: 4, ToParent: true, Operations: []OperationV3{{0, WODAllocSmall, 0, 0, 0x20}}},
				{Offset: 0x30, Last: 4, ToParent: true, Operations: []OperationV3{{0, WODAllocSmall, 0, 0, 0x20}}},
			},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeUnwindInfo(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(&tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUnwindInfoV3Refused(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		code dump.Code
		say  string
	}{
		{"reserved flag", []byte{3 | 0x10<<3, 0, 0, 0}, dump.UnsupportedFormat, "reserved"},
		{"reserved flag of an epilog", []byte{3, 0, 4, 1 << 5, 0x0c, 0, 0, 0, 0, 0, 0, 0x08}, dump.UnsupportedFormat, "reserved"},
		{"offsets run past the payload", []byte{3, 0, 1, 3, 0, 0}, dump.BadRecord, "needs"},
		{"no high byte of the size", []byte{3 | 8<<3, 0, 0, 0}, dump.BadRecord, "needs"},
		{"descriptor runs past the payload", []byte{3, 0, 1, 1 << 5, 0x08, 0}, dump.BadRecord, "needs"},
		{"operations run past the pool", []byte{3, 0, 1, 1, 0, 0x01}, dump.BadRecord, "pool"},
		{"an epilog's operations begin behind the pool", []byte{3, 0, 4, 1 << 5, 0x08, 0, 0, 2, 0, 0, 0, 0x08}, dump.BadRecord, "pool"},
		{"first epilog inherits", []byte{3, 0, 2, 1 << 5, 0, 0, 0, 0}, dump.BadRecord, "inherit"},
		{"epilogs in both directions", []byte{3, 0, 6, 2 << 5, 0x08, 0x10, 0, 0, 0, 0, 0, 0x00, 0xf8, 0xff, 0x08, 0}, dump.BadRecord, "signs"},
		{"to a parent that there is not", []byte{3, 0, 4, 1 << 5, 0x09, 0x10, 0, 0, 0, 0, 0, 0x08}, dump.BadRecord, "parent"},
		{"r31 and the next", []byte{3, 0, 1, 1, 0, 0xff}, dump.BadRecord, "r31"},
		{"code 0x0b", []byte{3, 0, 1, 1, 0, 0x0b}, dump.BadRecord, "operation 0xb"}, // low four bits 11: none
		{"code 0x10", []byte{3, 0, 1, 1, 0, 0x10}, dump.BadRecord, "operation 0x10"},
		{"code 0x82", []byte{3, 0, 1, 1, 0, 0x82}, dump.BadRecord, "operation 0x82"}, // low four bits 2, but not the whole byte
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := DecodeUnwindInfo(tt.in)
			var e *dump.Error
			if u != nil || !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Error(), tt.say) {
				t.Errorf("%+v, %v, want %s: ...%s...", u, err, tt.code, tt.say)
			}
		})
	}
}

// Every first byte of an operation is decoded as the specification's dispatch
// table orders it, or refused.
func TestWODDispatch(t *testing.T) {
	for b := range 256 {
		want, known := OpV3(0), true
		switch {
		case b == 0, b == 1, b == 2, b == 3:
			want = OpV3(b)
		case b&7 == 4, b&7 == 5, b&7 == 6, b&7 == 7:
			want = OpV3(b & 7)
		case b&15 == 8, b&15 == 9, b&15 == 10:
			want = OpV3(b & 15)
		case b&63 == 0x20:
			want = WODPush2
		default:
			known = false
		}
		if b == 0xff { // r31 and the register behind it
			known = false
		}
		u, err := DecodeUnwindInfo([]byte{3, 0, 3, 1, 0, byte(b), 0, 0, 0, 0})
		if (err == nil) != known || known && u.V3.Prolog[0].Op != want {
			t.Errorf("%#x: %+v, %v; want %d (known %t)", b, u, err, want, known)
		}
	}
}

// Whatever is cut off, all is refused, as truncated.
func TestUnwindInfoV3Truncated(t *testing.T) {
	handler := append([]byte{3 | 1<<3}, threeEnds[1:]...) // 4 + 26 bytes
	handler = append(handler, 0xcc, 0xcc, 0x78, 0x56, 0x34, 0x12)
	for _, whole := range [][]byte{everyWOD, threeEnds, handler} {
		if _, err := DecodeUnwindInfo(whole); err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			u, err := DecodeUnwindInfo(whole[:n])
			var e *dump.Error
			if u != nil || !errors.As(err, &e) || e.Code != dump.Truncated {
				t.Errorf("%d of %d bytes: %+v, %v", n, len(whole), u, err)
			}
		}
	}
}

func TestEpilogV3Start(t *testing.T) {
	rf := RuntimeFunction{Begin: 0x1000, End: 0x1040}
	for offset, want := range map[int32]uint32{0: 0x1000, 0x3f: 0x103f, -1: 0x103f, -0x40: 0x1000, 0x40: 0, -0x41: 0, -32768 * 7: 0, 32767 * 7: 0} {
		e := EpilogV3{Offset: offset}
		if got, ok := e.Start(rf); got != want || ok != (want != 0) {
			t.Errorf("%d: %#x, %t; want %#x", offset, got, ok, want)
		}
	}
	last := EpilogV3{Offset: 0x100}
	if got, ok := last.Start(RuntimeFunction{Begin: 0xffffff80, End: 0xffffffff}); ok {
		t.Errorf("beyond 32 bits: %#x", got)
	}
}
