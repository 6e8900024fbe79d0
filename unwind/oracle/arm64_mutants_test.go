//go:build oracle

package oracle

import "testing"

var arm64Mutants = []mutant{
	{"prologs are taken for done", "pdata/arm64info.go", "if at < n {", "if at < n && at < 0 {"},
	{"a prolog's instruction counts before it is executed", "pdata/arm64info.go", "return u.skip(dst, 0, n-at)", "return u.skip(dst, 0, n-at-1)"},
	{"epilogs are not seen", "pdata/arm64info.go", "u.epilogAt(offset); in {", "u.epilogAt(offset); in && i < 0 {"},
	{"an epilog's return is not in it", "pdata/arm64info.go", "known[index] = int16(n + 1)", "known[index] = int16(n)"},
	{"the one epilog at the end has no return", "pdata/arm64info.go", "u.Epilogs = []ARM64Epilog{{u.Length - uint32(n+1)*arm64WordLen,", "u.Epilogs = []ARM64Epilog{{u.Length - uint32(n)*arm64WordLen,"},
	{"a part's prolog goes on behind end_c", "pdata/arm64info.go", "case code.Op == ARM64End || code.Op == ARM64EndC:", "case code.Op == ARM64End:"},
	{"epilogs begin with the first code", "pdata/arm64info.go", "return u.skip(dst, e.Index, at-", "return u.skip(dst, e.Index*0, at-"},
	{"nop stands for no instruction", "pdata/arm64codes.go", "return c.Op < ARM64TrapFrame || ", "return c.Op != ARM64Nop && c.Op < ARM64TrapFrame || "},
	{"alloc_s counts units of 8", "pdata/arm64codes.go", "Value: b * 16}", "Value: b * 8}"},
	{"alloc_m counts units of 8", "pdata/arm64codes.go", "Value: v & 0x7ff * 16}", "Value: v & 0x7ff * 8}"},
	{"alloc_l counts units of 8", "pdata/arm64codes.go", "uint32(c.U8())) * 16}", "uint32(c.U8())) * 8}"},
	{"save_fplr_x has no least size", "pdata/arm64codes.go", "pair(ARM64SavePre, 29, (b&0x3f+1)*8)", "pair(ARM64SavePre, 29, (b&0x3f)*8)"},
	{"save_reg_x has no least size", "pdata/arm64codes.go", "Reg: uint8(19 + v>>5&0xf), Count: 1, Value: (v&0x1f + 1) * 8}", "Reg: uint8(19 + v>>5&0xf), Count: 1, Value: v & 0x1f * 8}"},
	{"save_reg_x names its register as save_reg does", "pdata/arm64codes.go", "Reg: uint8(19 + v>>5&0xf)", "Reg: uint8(19 + v>>6&0xf)"},
	{"save_lrpair counts single registers", "pdata/arm64codes.go", "19 + 2*(v>>6&0x7)", "19 + (v>>6&0x7)"},
	{"save_any_reg pairs count units of 8", "pdata/arm64codes.go", "code.Value = rest & 0x3f * 16", "code.Value = rest & 0x3f * 8"},
	{"save_any_reg with pre-decrement counts units of 8", "pdata/arm64codes.go", "(rest&0x3f + 1) * 16", "(rest&0x3f + 1) * 8"},
	{"save_freg_x moves nothing", "unwind/arm64_undo.go", "u.next = 0\n\t\tu.sp += uint64(c.Value)", "u.next = 0"},
	{"save_regp_x moves nothing", "unwind/arm64_undo.go", "why = u.integers(c, u.sp)\n\t\tu.sp += uint64(c.Value)", "why = u.integers(c, u.sp)"},
	{"save_lrpair's lr is at the pair's offset", "unwind/arm64_undo.go", "u.sp+uint64(c.Value)+8)", "u.sp+uint64(c.Value))"},
	{"save_next is ignored", "unwind/arm64_undo.go", "u.next++", "u.next += 0"},
	{"set_fp and add_fp are ignored", "unwind/arm64_undo.go", "u.sp = fp - uint64(c.Value)", "_ = fp"},
	{"add_fp adds", "unwind/arm64_undo.go", "u.sp = fp - uint64(c.Value)", "u.sp = fp + uint64(c.Value)"},
	{"signatures stay on return addresses", "unwind/arm64.go", "return v & mask", "return v"},
	{"leaf functions have no caller", "unwind/arm64.go", "return t, f.exact() && known &&", "return t, f.exact() && !known &&"},
	{"call sites are looked up with the return address", "unwind/arm64.go", "s := w.site(f.Lookup)\n", "s := w.site(f.IP)\n"},
	{"packed: signing takes no instruction", "pdata/arm64packed.go", "if p.cr == crChainPAC {\n\t\tc = append", "if p.cr == crChainPAC && !chained {\n\t\tc = append"},
	{"packed: storing parameters takes no instruction", "pdata/arm64packed.go", "homes = 4", "homes = 0"},
	{"packed: the epilog stores parameters too", "pdata/arm64packed.go", "if p.homes && prolog {", "if p.homes {"},
	{"packed: large frames take one instruction", "pdata/arm64packed.go", "if p.locSize > maxAlloc {", "if p.locSize > 1<<30 {"},
	{"packed: a pair with lr makes the room itself", "pdata/arm64packed.go", "(*c)[0].Op == ARM64SaveLRPair:", "(*c)[0].Op == ARM64End:"},
	{"packed: floats are saved without d8", "pdata/arm64packed.go", "floats += 8", "floats += 0"},
	{"packed: epilogs are not seen", "pdata/arm64packed.go", "at >= start && start >= 0", "at < start && start < 0"},
}

// TestARM64Mutants is TestMutants for the ARM64 unwinder, over the checked-in
// image.
func TestARM64Mutants(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	root := moduleRoot(t)
	tryMutants(t, root, t.TempDir(), "arm64 mutants", arm64Mutants, []string{"1", arm64Image(t)})
}
