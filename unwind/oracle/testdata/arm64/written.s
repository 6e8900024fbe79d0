// Frames that compilers lay seldom or never, with every unwind code that an
// instruction stands for. Built by build.sh.

	.text
	.macro function name
	.globl \name
	.p2align 2
	.def \name; .scl 2; .type 32; .endef
	.seh_proc \name
\name:
	.endm

// save_next, with the pairs in one block.
	function next_pairs
	stp x19, x20, [sp, #-96]!
	.seh_save_regp_x x19, 96
	stp x21, x22, [sp, #16]
	.seh_save_next
	stp x23, x24, [sp, #32]
	.seh_save_next
	stp x25, x26, [sp, #48]
	.seh_save_next
	stp x27, x28, [sp, #64]
	.seh_save_next
	stp x29, x30, [sp, #80]
	.seh_save_fplr 80
	add x29, sp, #80
	.seh_add_fp 80
	.seh_endprologue
	mov x19, #1
	mov x22, #2
	mov x23, #3
	mov x26, #4
	mov x28, #5
	bl callee
	sub sp, sp, #64
	nop
	.seh_startepilogue
	sub sp, x29, #80
	.seh_add_fp 80
	ldp x29, x30, [sp, #80]
	.seh_save_fplr 80
	ldp x27, x28, [sp, #64]
	.seh_save_next
	ldp x25, x26, [sp, #48]
	.seh_save_next
	ldp x23, x24, [sp, #32]
	.seh_save_next
	ldp x21, x22, [sp, #16]
	.seh_save_next
	ldp x19, x20, [sp], #96
	.seh_save_regp_x x19, 96
	.seh_endepilogue
	ret
	.seh_endproc

// save_lrpair, save_reg_x, single registers, and two epilogs of one shape.
	function lr_pair
	str x23, [sp, #-64]!
	.seh_save_reg_x x23, 64
	stp x21, x30, [sp, #16]
	.seh_save_lrpair x21, 16
	str x24, [sp, #32]
	.seh_save_reg x24, 32
	stp x25, x26, [sp, #40]
	.seh_save_regp x25, 40
	.seh_endprologue
	mov x21, x0
	mov x23, x1
	mov x24, #9
	mov x25, #10
	cbz x0, 1f
	bl callee
	.seh_startepilogue
	ldp x25, x26, [sp, #40]
	.seh_save_regp x25, 40
	ldr x24, [sp, #32]
	.seh_save_reg x24, 32
	ldp x21, x30, [sp, #16]
	.seh_save_lrpair x21, 16
	ldr x23, [sp], #64
	.seh_save_reg_x x23, 64
	.seh_endepilogue
	ret
1:	bl touch
	mov x26, #1
	.seh_startepilogue
	ldp x25, x26, [sp, #40]
	.seh_save_regp x25, 40
	ldr x24, [sp, #32]
	.seh_save_reg x24, 32
	ldp x21, x30, [sp, #16]
	.seh_save_lrpair x21, 16
	ldr x23, [sp], #64
	.seh_save_reg_x x23, 64
	.seh_endepilogue
	b callee
	.seh_endproc

// A call that does not return is the last instruction, so that the return
// address is the next function's.
	function ends_in_call
	stp x29, x30, [sp, #-32]!
	.seh_save_fplr_x 32
	mov x29, sp
	.seh_set_fp
	str x19, [sp, #16]
	.seh_save_reg x19, 16
	.seh_endprologue
	mov x19, #1
	bl callee
	.seh_endproc

// Every form of save_any_reg: single, pair, with and without pre-decrement.
	function any_registers
	stp x29, x30, [sp, #-16]!
	.seh_save_fplr_x 16
	stp q6, q7, [sp, #-32]!
	.seh_save_any_reg_px q6, 32
	str q8, [sp, #-16]!
	.seh_save_any_reg_x q8, 16
	stp d9, d10, [sp, #-16]!
	.seh_save_any_reg_px d9, 16
	str d11, [sp, #-16]!
	.seh_save_any_reg_x d11, 16
	stp x5, x6, [sp, #-16]!
	.seh_save_any_reg_px x5, 16
	str x7, [sp, #-16]!
	.seh_save_any_reg_x x7, 16
	sub sp, sp, #256
	.seh_stackalloc 256
	stp x19, x20, [sp, #32]
	.seh_save_any_reg_p x19, 32
	str x21, [sp, #72]
	.seh_save_any_reg x21, 72
	stp q10, q11, [sp, #96]
	.seh_save_any_reg_p q10, 96
	str q12, [sp, #144]
	.seh_save_any_reg q12, 144
	stp d13, d14, [sp, #176]
	.seh_save_any_reg_p d13, 176
	str d15, [sp, #200]
	.seh_save_any_reg d15, 200
	.seh_endprologue
	mov x19, #1
	mov x20, #2
	mov x21, #3
	bl callee
	.seh_startepilogue
	ldr x21, [sp, #72]
	.seh_save_any_reg x21, 72
	ldp x19, x20, [sp, #32]
	.seh_save_any_reg_p x19, 32
	add sp, sp, #256
	.seh_stackalloc 256
	add sp, sp, #96
	.seh_stackalloc 96
	add sp, sp, #16
	.seh_stackalloc 16
	ldp x29, x30, [sp], #16
	.seh_save_fplr_x 16
	.seh_endepilogue
	ret
	.seh_endproc

// Floating-point saves of all four forms, and nop for stores to homes.
	function floats
	stp d8, d9, [sp, #-112]!
	.seh_save_fregp_x d8, 112
	stp d10, d11, [sp, #16]
	.seh_save_fregp d10, 16
	str d12, [sp, #32]
	.seh_save_freg d12, 32
	stp x29, x30, [sp, #48]
	.seh_save_fplr 48
	mov x29, sp
	.seh_set_fp
	stp x0, x1, [sp, #64]
	.seh_nop
	stp x2, x3, [sp, #80]
	.seh_nop
	str d14, [sp, #-16]!
	.seh_save_freg_x d14, 16
	.seh_endprologue
	fmov d8, #1.0
	bl callee
	sub sp, sp, #32
	.seh_startepilogue
	mov sp, x29
	.seh_set_fp
	nop
	.seh_nop
	ldp x29, x30, [sp, #48]
	.seh_save_fplr 48
	ldr d12, [sp, #32]
	.seh_save_freg d12, 32
	ldp d10, d11, [sp, #16]
	.seh_save_fregp d10, 16
	ldp d8, d9, [sp], #112
	.seh_save_fregp_x d8, 112
	.seh_endepilogue
	ret
	.seh_endproc

// A signed return address, kept in x30 and on the stack.
	function signed_frame
	pacibsp
	.seh_pac_sign_lr
	stp x19, x20, [sp, #-32]!
	.seh_save_r19r20_x 32
	str x30, [sp, #16]
	.seh_save_reg x30, 16
	.seh_endprologue
	mov x19, #1
	bl callee
	mov x20, x0
	.seh_startepilogue
	ldr x30, [sp, #16]
	.seh_save_reg x30, 16
	ldp x19, x20, [sp], #32
	.seh_save_r19r20_x 32
	autibsp
	.seh_pac_sign_lr
	.seh_endepilogue
	ret
	.seh_endproc

// Allocations of all three sizes: 16-byte units below 512, 32 KB and 256 MB.
	function allocations
	stp x29, x30, [sp, #-16]!
	.seh_save_fplr_x 16
	sub sp, sp, #496
	.seh_stackalloc 496
	sub sp, sp, #7, lsl #12
	.seh_stackalloc 28672
	sub sp, sp, #16, lsl #12
	.seh_stackalloc 65536
	.seh_endprologue
	bl callee
	.seh_startepilogue
	add sp, sp, #16, lsl #12
	.seh_stackalloc 65536
	add sp, sp, #7, lsl #12
	.seh_stackalloc 28672
	add sp, sp, #496
	.seh_stackalloc 496
	ldp x29, x30, [sp], #16
	.seh_save_fplr_x 16
	.seh_endepilogue
	ret
	.seh_endproc

// One function of three entries: the middle part saves more registers, and
// control falls into it and out of it. The assembler writes no such entries, so
// these are spelled out.
	.globl parts
	.p2align 2
parts:
	stp x29, x30, [sp, #-64]!
	mov x29, sp
	str x19, [sp, #16]
	mov x19, x0
	bl callee
	cbz x0, parts_rest
parts_middle:
	stp x21, x22, [sp, #32]
	str x23, [sp, #48]
	mov x21, #1
	mov x22, #2
	mov x23, #3
	bl callee
	ldr x23, [sp, #48]
	ldp x21, x22, [sp, #32]
parts_rest:
	mov x0, x19
	bl callee
	ldr x19, [sp, #16]
	mov sp, x29
	ldp x29, x30, [sp], #64
	ret
parts_end:

	.section .xdata, "dr"
	.p2align 2
parts_data: // str x19, [sp, #16]; set_fp; save_fplr_x 64; end
	.long 2 << 27 | (parts_middle - parts) / 4
	.byte 0xd0, 0x02, 0xe1, 0x87, 0xe4, 0xe3, 0xe3, 0xe3
middle_data: // its own: x23, x21 and x22; end_c; its function's. The same for its end
	.long 3 << 27 | 1 << 22 | (parts_rest - parts_middle) / 4
	.long 6
	.byte 0xd1, 0x06, 0xc8, 0x84, 0xe5, 0xd0, 0x02, 0xe1, 0x87, 0xe4, 0xe3, 0xe3
rest_data: // end_c, its function's; the epilog at its end shares the codes from index 1
	.long 2 << 27 | 1 << 22 | 1 << 21 | (parts_end - parts_rest) / 4
	.byte 0xe5, 0xd0, 0x02, 0xe1, 0x87, 0xe4, 0xe3, 0xe3
	.section .pdata, "dr"
	.p2align 2
	.rva parts
	.rva parts_data
	.rva parts_middle
	.rva middle_data
	.rva parts_rest
	.rva rest_data

// Functions of packed data in the shapes that clang does not choose, by the
// documentation's table of canonical prologs. Fields of the word: flag 1, length
// << 2, RegF << 13, RegI << 16, H << 20, CR << 21, frame size / 16 << 23.
	.text
	.globl packed_homes
packed_homes: // RegI 2, H, CR 3, 80 bytes of saves and 16 of frame record
	stp x19, x20, [sp, #-80]!
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp x29, x30, [sp, #-16]!
	mov x29, sp
	mov x19, #1
	mov x20, #2
	bl callee
	ldp x29, x30, [sp], #16
	ldp x19, x20, [sp], #80
	ret
packed_homes_end:
	.globl packed_homes_only
packed_homes_only: // H, CR 3: the first store of parameters makes the room
	stp x0, x1, [sp, #-64]!
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x29, x30, [sp, #-16]!
	mov x29, sp
	bl callee
	ldp x29, x30, [sp], #16
	add sp, sp, #64
	ret
packed_homes_only_end:
	.globl packed_signed
packed_signed: // RegF 1, RegI 3, CR 2, 48 bytes of saves and 48 of frame record and locals
	pacibsp
	stp x19, x20, [sp, #-48]!
	str x21, [sp, #16]
	stp d8, d9, [sp, #24]
	stp x29, x30, [sp, #-48]!
	mov x29, sp
	mov x19, #1
	mov x20, #2
	mov x21, #3
	bl callee
	ldp x29, x30, [sp], #48
	ldp d8, d9, [sp, #24]
	ldr x21, [sp, #16]
	ldp x19, x20, [sp], #48
	autibsp
	ret
packed_signed_end:
	.globl packed_large
packed_large: // RegI 1, CR 1, 16 bytes of saves and 4112 of locals, which takes two instructions
	sub sp, sp, #16
	stp x19, x30, [sp]
	sub sp, sp, #4080
	sub sp, sp, #32
	mov x19, x0
	bl callee
	add sp, sp, #32
	add sp, sp, #4080
	ldp x19, x30, [sp]
	add sp, sp, #16
	ret
packed_large_end:

	.section .pdata, "dr"
	.rva packed_homes
	.long 1 | (packed_homes_end - packed_homes) / 4 << 2 | 2 << 16 | 1 << 20 | 3 << 21 | 6 << 23
	.rva packed_homes_only
	.long 1 | (packed_homes_only_end - packed_homes_only) / 4 << 2 | 1 << 20 | 3 << 21 | 5 << 23
	.rva packed_signed
	.long 1 | (packed_signed_end - packed_signed) / 4 << 2 | 1 << 13 | 3 << 16 | 2 << 21 | 6 << 23
	.rva packed_large
	.long 1 | (packed_large_end - packed_large) / 4 << 2 | 1 << 16 | 1 << 21 | 258 << 23
