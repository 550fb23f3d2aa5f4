package wire

import "strconv"

// Code is the class of an [Error]. The numbers are those of Connect and gRPC,
// so that the same errors can be told over either.
type Code uint32

// The codes in use. Others are legal on the wire.
const (
	CodeCanceled           Code = 1
	CodeUnknown            Code = 2
	CodeInvalidArgument    Code = 3
	CodeDeadlineExceeded   Code = 4
	CodeNotFound           Code = 5
	CodeAlreadyExists      Code = 6
	CodePermissionDenied   Code = 7
	CodeResourceExhausted  Code = 8
	CodeFailedPrecondition Code = 9
	CodeUnimplemented      Code = 12
	CodeInternal           Code = 13
	CodeUnavailable        Code = 14
)

// Error is why a stream was reset. From the guest it is hostile: show its
// text only quoted.
type Error struct {
	Code Code
	// Message is cut to MaxReason bytes on the wire.
	Message string
}

// Error returns the text and the code.
func (e *Error) Error() string {
	return e.Message + " (code " + strconv.FormatUint(uint64(e.Code), 10) + ")"
}

// ProtocolError says how the other side broke the protocol. It ends the
// session.
type ProtocolError struct {
	// What was wrong; it holds no bytes of the other side but numbers.
	What string
}

// Error returns what was wrong.
func (e *ProtocolError) Error() string { return "wire protocol: " + e.What }

func broken(what string) error { return &ProtocolError{What: what} }
