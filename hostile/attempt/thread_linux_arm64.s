#include "textflag.h"

// func startThread(flags uintptr, tid *uint32, fd uintptr) (r uintptr)
//
// The thread never uses its stack, so it has none: it reads from fd, with no
// place for a byte, until there is something or nobody who writes, and ends.
TEXT ·startThread(SB),NOSPLIT,$0-32
	MOVD	flags+0(FP), R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	tid+8(FP), R4
	MOVD	fd+16(FP), R9
	MOVD	$220, R8 // clone
	SVC
	CBZ	R0, thread
	MOVD	R0, r+24(FP)
	RET
thread:
	MOVD	R9, R0
	MOVD	$0, R1
	MOVD	$1, R2
	MOVD	$63, R8 // read
	SVC
end:
	MOVD	$0, R0
	MOVD	$93, R8 // exit
	SVC
	B	end

// func int80(number, a1, a2 uintptr) (r uintptr)
//
// There is no such call here: it is answered as by a kernel that lacks it.
TEXT ·int80(SB),NOSPLIT,$0-32
	MOVD	$-38, R0
	MOVD	R0, r+24(FP)
	RET
