#include "textflag.h"

// func startThread(flags uintptr, tid *uint32, fd uintptr) (r uintptr)
//
// The thread never uses its stack, so it has none: it reads from fd, with no
// place for a byte, until there is something or nobody who writes, and ends.
TEXT ·startThread(SB),NOSPLIT,$0-32
	MOVQ	flags+0(FP), DI
	XORQ	SI, SI
	XORQ	DX, DX
	MOVQ	tid+8(FP), R10
	XORQ	R8, R8
	MOVQ	fd+16(FP), R12
	MOVQ	$56, AX // clone
	SYSCALL
	TESTQ	AX, AX
	JZ	thread
	MOVQ	AX, r+24(FP)
	RET
thread:
	MOVQ	R12, DI
	XORQ	SI, SI
	MOVQ	$1, DX
	XORQ	AX, AX // read
	SYSCALL
end:
	XORQ	DI, DI
	MOVQ	$60, AX // exit
	SYSCALL
	JMP	end

// func int80(number, a1, a2 uintptr) (r uintptr)
TEXT ·int80(SB),NOSPLIT,$0-32
	MOVQ	number+0(FP), AX
	MOVQ	a1+8(FP), BX
	MOVQ	a2+16(FP), CX
	XORQ	DX, DX
	XORQ	SI, SI
	XORQ	DI, DI
	INT	$0x80
	MOVQ	AX, r+24(FP)
	RET
