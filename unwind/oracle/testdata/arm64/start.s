// What the compiler and the written functions call.

	.text
	.globl __chkstk
	.p2align 2
__chkstk: // touches the pages of an allocation, which changes nothing here
	ret
	.globl callee
callee:
	ret
	.globl touch
touch:
	ret
	.data
	.globl _fltused
_fltused:
	.long 0
