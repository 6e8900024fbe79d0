// The load configuration and CHPE metadata that Microsoft's runtime library brings.
	.section .rdata,"dr"
	.globl _load_config_used
	.p2align 3
_load_config_used:
	.word 0x140
	.fill 0xc4, 1, 0
	.xword chpe
	.fill 0x70, 1, 0
	.p2align 3
chpe:
	.word 1
	.rva __hybrid_code_map
	.word __hybrid_code_map_count
	.word 0
	.word 0
	.rva __os_arm64x_dispatch_call_no_redirect
	.rva __os_arm64x_dispatch_ret
	.rva __os_arm64x_check_call
	.rva __os_arm64x_check_icall
	.rva __os_arm64x_check_icall_cfg
	.word 0
	.word 0
	.word 0
	.word 0
	.rva __os_arm64x_get_x64_information
	.rva __os_arm64x_set_x64_information
	.rva __arm64x_extra_rfe_table
	.word __arm64x_extra_rfe_table_size
	.rva __os_arm64x_x64_jump
	.fill 16, 1, 0
	.macro pointer name
	.globl \name
	.p2align 3
\name:	.xword 0
	.endm
	pointer __os_arm64x_dispatch_call_no_redirect
	pointer __os_arm64x_dispatch_ret
	pointer __os_arm64x_check_call
	pointer __os_arm64x_check_icall
	pointer __os_arm64x_check_icall_cfg
	pointer __os_arm64x_get_x64_information
	pointer __os_arm64x_set_x64_information
	pointer __os_arm64x_x64_jump
