package pdata

import (
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"dumptriage/dump"
)

// TestUnwindInfoVectors decodes hand-assembled UNWIND_INFO. Each byte's reason
// is beside it; the layout is that of "x64 exception handling".
func TestUnwindInfoVectors(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want UnwindInfo
	}{
		{"nothing", []byte{
			0x01,    // version 1, no flags
			0, 0, 0, // no prolog, codes, frame register
		}, UnwindInfo{Version: 1}},
		{"every operation", []byte{
			0x01, 0x50, // version 1; prolog of 0x50 bytes
			19,         // slots: 1+3+2+3+2+1+1+3+2+1
			0x35,       // frame register 5 (rbp), offset 3*16
			0x50, 0x0a, // PUSH_MACHFRAME, no error code
			0x4c, 0x69, 0x10, 0x00, 0x10, 0x00, // SAVE_XMM128_FAR xmm6 at 0x100010, not scaled
			0x48, 0xf8, 0xff, 0xff, // SAVE_XMM128 xmm15 at 0xffff*16: beyond 16 bits
			0x40, 0x75, 0x08, 0x00, 0x10, 0x00, // SAVE_NONVOL_FAR rdi at 0x100008, not scaled
			0x38, 0x64, 0xff, 0xff, // SAVE_NONVOL rsi at 0xffff*8
			0x30, 0x03, // SET_FPREG
			0x28, 0xf2, // ALLOC_SMALL 15*8+8: the largest
			0x20, 0x11, 0x08, 0x00, 0x08, 0x00, // ALLOC_LARGE info 1: 0x80008, not scaled
			0x10, 0x01, 0xff, 0xff, // ALLOC_LARGE info 0: 0xffff*8
			0x02, 0xf0, // PUSH_NONVOL r15
		}, UnwindInfo{Version: 1, SizeOfProlog: 0x50, FrameRegister: 5, FrameOffset: 0x30, Codes: []UnwindCode{
			{0x50, PushMachFrame, 0, 0},
			{0x4c, SaveXMM128Far, 6, 0x100010},
			{0x48, SaveXMM128, 15, 0xffff0},
			{0x40, SaveNonvolFar, 7, 0x100008},
			{0x38, SaveNonvol, 6, 0x7fff8},
			{0x30, SetFPReg, 0, 0},
			{0x28, AllocSmall, 15, 0x80},
			{0x20, AllocLarge, 1, 0x80008},
			{0x10, AllocLarge, 0, 0x7fff8},
			{0x02, PushNonvol, 15, 0},
		}}},
		{"obsolete forms have no effect but their slots count", []byte{
			0x01, 0x10, 6, 0,
			0x10, 0x66, 0x34, 0x12, // version 1 code 6: two slots
			0x0c, 0x67, 0x78, 0x56, 0x34, 0x12, // code 7: three slots
			0x04, 0x02, // ALLOC_SMALL 8: found only if the others were skipped rightly
		}, UnwindInfo{Version: 1, SizeOfProlog: 0x10, Codes: []UnwindCode{{4, AllocSmall, 0, 8}}}},
		{"handler after an odd number of slots", []byte{
			0x09, 4, 1, 0, // flags EHANDLER (1 << 3)
			0x04, 0x42, // ALLOC_SMALL 0x28
			0xcc, 0xcc, // padding to an even number of slots
			0x78, 0x56, 0x34, 0x12, // handler RVA
		}, UnwindInfo{Version: 1, Flags: FlagEHandler, SizeOfProlog: 4, Codes: []UnwindCode{{4, AllocSmall, 4, 0x28}}, Handler: 0x12345678}},
		{"chain after an even number of slots", []byte{
			0x21, 0, 0, 0, // flags CHAININFO (4 << 3)
			0x00, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0x00, 0x40, 0, 0, // the entry
		}, UnwindInfo{Version: 1, Flags: FlagChainInfo, Chained: true, Chain: RuntimeFunction{0x1000, 0x1040, 0x4000}}},
		{"chain wins over a handler", []byte{
			0x29, 0, 0, 0, // flags CHAININFO | EHANDLER, which exclude each other
			0x00, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0x00, 0x40, 0, 0,
		}, UnwindInfo{Version: 1, Flags: FlagChainInfo | FlagEHandler, Chained: true, Chain: RuntimeFunction{0x1000, 0x1040, 0x4000}}},
		{"version 2, one epilog before the end", []byte{
			0x02, 4, 3, 0,
			0x01, 0x06, // epilogs of 1 byte, info bit 0 clear: none at the end
			0x02, 0x06, // one begins 2 bytes before the end
			0x04, 0x42, // ALLOC_SMALL 0x28
		}, UnwindInfo{Version: 2, SizeOfProlog: 4, EpilogSize: 1, Epilogs: []EpilogV2{{2}}, Codes: []UnwindCode{{4, AllocSmall, 4, 0x28}}}},
		{"version 2, one epilog at the end", []byte{
			0x02, 2, 4, 0,
			0x03, 0x16, // epilogs of 3 bytes, info bit 0: one at the end
			0x00, 0x06, // padding
			0x02, 0x60, 0x01, 0x70, // PUSH_NONVOL rsi, rdi
		}, UnwindInfo{Version: 2, SizeOfProlog: 2, EpilogSize: 3, Epilogs: []EpilogV2{{3}}, Codes: []UnwindCode{{2, PushNonvol, 6, 0}, {1, PushNonvol, 7, 0}}}},
		{"version 2, far epilogs", []byte{
			0x02, 1, 5, 0,
			0x02, 0x16, // 2 bytes, one at the end
			0x34, 0xf6, // 12 bits: 0xf34 before the end
			0xff, 0x16, // 0x1ff before the end
			0x00, 0x06, // padding
			0x01, 0x50, // PUSH_NONVOL rbp
		}, UnwindInfo{Version: 2, SizeOfProlog: 1, EpilogSize: 2, Epilogs: []EpilogV2{{2}, {0xf34}, {0x1ff}}, Codes: []UnwindCode{{1, PushNonvol, 5, 0}}}},
		{"machine frame with an error code", []byte{0x01, 0, 1, 0, 0x00, 0x1a},
			UnwindInfo{Version: 1, Codes: []UnwindCode{{0, PushMachFrame, 1, 0}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := tt.in
			if len(in)%4 != 0 {
				in = append(in, 0, 0)
			}
			got, err := DecodeUnwindInfo(in)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(&tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUnwindInfoRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		code dump.Code
		say  string
	}{
		{"version 0", []byte{0, 0, 0, 0}, dump.BadRecord, "version 0"},
		{"version 4", []byte{4, 0, 0, 0}, dump.BadRecord, "version 4"},
		{"SET_FPREG_LARGE, not of Windows", []byte{1, 0, 3, 0xf5, 4, 0x0b, 0, 0, 0, 0}, dump.BadRecord, "operation 11"},
		{"operation 15", []byte{1, 0, 1, 0, 4, 0x0f}, dump.BadRecord, "operation 15"},
		{"ALLOC_LARGE info 2", []byte{1, 0, 3, 0, 4, 0x21, 0, 0, 0, 0}, dump.BadRecord, "info 2"},
		{"ALLOC_LARGE runs past the count", []byte{1, 0, 1, 0, 4, 0x01, 8, 0}, dump.BadRecord, "needs"},
		{"ALLOC_LARGE u32 runs past the count", []byte{1, 0, 2, 0, 4, 0x11, 8, 0, 0, 0}, dump.BadRecord, "needs"},
		{"SAVE_XMM128_FAR runs past the count", []byte{1, 0, 2, 0, 4, 0x69, 8, 0, 0, 0}, dump.BadRecord, "needs"},
		{"SET_FPREG without a register", []byte{1, 0, 1, 0, 4, 0x03}, dump.BadRecord, "frame register"},
		{"PUSH_MACHFRAME info 2", []byte{1, 0, 1, 0, 0, 0x2a}, dump.BadRecord, "MACHFRAME"},
		{"epilog code after the prolog's", []byte{2, 4, 4, 0, 4, 0x42, 1, 0x16, 0, 6, 1, 0x50}, dump.BadRecord, "epilog"},
		{"codes cut", []byte{1, 0, 4, 0, 4, 0x42}, dump.Truncated, "needs 8 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeUnwindInfo(tt.in)
			var e *dump.Error
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Error(), tt.say) {
				t.Errorf("error %v, want %s: ...%s...", err, tt.code, tt.say)
			}
		})
	}
}

// TestUnwindInfoTruncated cuts a chained and a handler info at every byte: each
// prefix must be refused as truncated, none decoded in part.
func TestUnwindInfoTruncated(t *testing.T) {
	for _, whole := range [][]byte{
		{0x21, 6, 3, 0, 6, 0x42, 4, 0x01, 0x00, 0x10, 0, 0, 0, 0x10, 0, 0, 0x40, 0x10, 0, 0, 0, 0x40, 0, 0},
		{0x0a, 6, 3, 0, 1, 0x06, 2, 0x06, 4, 0x42, 0, 0, 0x78, 0x56, 0x34, 0x12},
	} {
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

// The format wants infos on 4-byte boundaries; what is not is decoded and flagged.
func TestUnwindInfoUnaligned(t *testing.T) {
	im := withTable([]byte{0xcc, 0xcc, 1, 4, 1, 0, 4, 0x42}, 0x1000, 0x1010, 0x4002).open(t)
	u, err := im.UnwindInfo(0x4002)
	if err != nil || !u.Unaligned || len(u.Codes) != 1 || u.Codes[0].Value != 0x28 {
		t.Errorf("%+v, %v", u, err)
	}
}
