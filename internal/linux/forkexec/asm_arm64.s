#include "textflag.h"

// func rawVfork(trap, a1, a2, a3 uintptr) (r1, errno uintptr)
//
// On arm64 the return address is in a register already, so a leaf without a
// frame is enough.
TEXT ·rawVfork(SB),NOSPLIT|NOFRAME,$0-48
	MOVD	trap+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$0, R5
	SVC
	CMN	$4095, R0
	BCC	ok
	NEG	R0, R0
	MOVD	$-1, R4
	MOVD	R4, r1+32(FP)
	MOVD	R0, errno+40(FP)
	RET
ok:
	MOVD	R0, r1+32(FP)
	MOVD	ZR, errno+40(FP)
	RET
