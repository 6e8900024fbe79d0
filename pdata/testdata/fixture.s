# Functions whose prologs use every UNWIND_CODE of version 1, and one function
# with chained information.
# See README.md for how fixture.dll and its goldens are made from this file.

	.intel_syntax noprefix
	.text

	.globl push_alloc_small
push_alloc_small:
	.seh_proc push_alloc_small
	push rbx
	.seh_pushreg rbx
	push r15
	.seh_pushreg r15
	sub rsp, 40
	.seh_stackalloc 40
	.seh_endprologue
	nop
	add rsp, 40
	pop r15
	pop rbx
	ret
	.seh_endproc

	.globl alloc_large_saves
alloc_large_saves:
	.seh_proc alloc_large_saves
	sub rsp, 0x7fff8
	.seh_stackalloc 0x7fff8
	mov [rsp + 0x7fff0], rsi
	.seh_savereg rsi, 0x7fff0
	movaps [rsp + 0x60], xmm6
	.seh_savexmm xmm6, 0x60
	movaps [rsp + 0x20000], xmm15
	.seh_savexmm xmm15, 0x20000
	.seh_endprologue
	ret
	.seh_endproc

	.globl alloc_huge_saves_far
alloc_huge_saves_far:
	.seh_proc alloc_huge_saves_far
	sub rsp, 0x123450
	.seh_stackalloc 0x123450
	mov [rsp + 0x100008], rdi
	.seh_savereg rdi, 0x100008
	movaps [rsp + 0x110010], xmm7
	.seh_savexmm xmm7, 0x110010
	.seh_endprologue
	ret
	.seh_endproc

	.globl frame_pointer
frame_pointer:
	.seh_proc frame_pointer
	push rbp
	.seh_pushreg rbp
	sub rsp, 0xf0
	.seh_stackalloc 0xf0
	lea rbp, [rsp + 0x80]
	.seh_setframe rbp, 0x80
	.seh_endprologue
	lea rsp, [rbp + 0x70]
	pop rbp
	ret
	.seh_endproc

	.globl machine_frame
machine_frame:
	.seh_proc machine_frame
	.seh_pushframe
	push rax
	.seh_stackalloc 8
	.seh_endprologue
	iretq
	.seh_endproc

	.globl machine_frame_code
machine_frame_code:
	.seh_proc machine_frame_code
	.seh_pushframe @code
	push rbp
	.seh_pushreg rbp
	.seh_endprologue
	iretq
	.seh_endproc

	.globl with_handler
with_handler:
	.seh_proc with_handler
	.seh_handler handler, @except, @unwind
	sub rsp, 56
	.seh_stackalloc 56
	.seh_endprologue
	nop
	add rsp, 56
	ret
	.seh_handlerdata
	.long 0x12345678
	.text
	.seh_endproc

	.globl handler
handler:
	xor eax, eax
	ret

# A parent and a child whose information is chained to it, written by hand:
# the child has one code, so that one slot of padding precedes the entry.
	.globl chain_parent
chain_parent:
	push rbx
	sub rsp, 32
	nop
chain_child:
	push rsi
	nop
	pop rsi
chain_end:
	add rsp, 32
	pop rbx
	ret
chain_parent_end:

	.section .xdata, "dr"
	.balign 4
chain_parent_info:
	.byte 1, 5, 2, 0        # version 1, prolog 5, two slots, no frame register
	.byte 5, 0x32           # ALLOC_SMALL 0x20
	.byte 1, 0x30           # PUSH_NONVOL rbx
chain_child_info:
	.byte 0x21, 1, 1, 0     # version 1 | CHAININFO, prolog 1, one slot
	.byte 1, 0x60           # PUSH_NONVOL rsi
	.short 0                # padding to an even number of slots
	.rva chain_parent, chain_child, chain_parent_info
	.section .pdata, "dr"
	.rva chain_parent, chain_child, chain_parent_info
	.rva chain_child, chain_end, chain_child_info
	.rva chain_end, chain_parent_end, chain_parent_info

	.data
	.globl exported_data
exported_data:
	.quad 1

	.bss
	.globl zeroed
zeroed:
	.zero 0x3000
