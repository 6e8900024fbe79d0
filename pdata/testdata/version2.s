# Functions with unwind information of version 2, written by hand: assemblers do
# not make it. See README.md for how version2.dll and its golden are made.

	.intel_syntax noprefix
	.text

	.globl version2
version2:
	push rdi
	push rsi
	nop
	pop rsi
	pop rdi
	ret
version2_end:

	.globl version2_inner
version2_inner:
	sub rsp, 0x28
	nop
	add rsp, 0x28
	ret
	.byte 0xcc
version2_inner_end:

	.section .xdata, "dr"
	.balign 4
version2_info:
	.byte 2, 2, 4, 0
	.byte 0x03, 0x16        # epilogs are 3 bytes, one at the end
	.byte 0x00, 0x06        # padding
	.byte 0x02, 0x60        # PUSH_NONVOL rsi
	.byte 0x01, 0x70        # PUSH_NONVOL rdi
version2_inner_info:
	.byte 2, 4, 3, 0
	.byte 0x01, 0x06        # epilogs are 1 byte, none at the end
	.byte 0x02, 0x06        # one begins 2 bytes before the end
	.byte 0x04, 0x42        # ALLOC_SMALL 0x28
	.short 0                # padding to an even number of slots

	.section .pdata, "dr"
	.rva version2, version2_end, version2_info
	.rva version2_inner, version2_inner_end, version2_inner_info
