package agent

import (
	"errors"
	"strconv"
	"syscall"

	"tranca/internal/guest/wire"
)

func invalid(text string) error {
	return &wire.Error{Code: wire.CodeInvalidArgument, Message: text}
}

// busy refuses what would be too much at this moment.
func busy(text string) error {
	return &wire.Error{Code: wire.CodeUnavailable, Message: text}
}

// pathError is an error of the system with what was done to which path.
type pathError struct {
	op, path string
	err      error
}

func (e *pathError) Error() string {
	return e.op + " " + strconv.Quote(e.path) + ": " + e.err.Error()
}

func (e *pathError) Unwrap() error { return e.err }

func onPath(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &pathError{op, path, err}
}

// toWire makes an error one that can be told.
func toWire(err error) *wire.Error {
	var told *wire.Error
	if errors.As(err, &told) {
		return told
	}
	code := wire.CodeInternal
	var no syscall.Errno
	if errors.As(err, &no) {
		code = codeOf(no)
	}
	return &wire.Error{Code: code, Message: err.Error()}
}

// codeOf is the one table from errno to code.
func codeOf(no syscall.Errno) wire.Code {
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR:
		return wire.CodeNotFound
	case syscall.EEXIST:
		return wire.CodeAlreadyExists
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return wire.CodePermissionDenied
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMLINK:
		return wire.CodeResourceExhausted
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EBUSY,
		syscall.ETXTBSY, syscall.EINTR:
		return wire.CodeUnavailable
	case syscall.ESRCH:
		return wire.CodeFailedPrecondition
	case syscall.EINVAL, syscall.E2BIG, syscall.ENOEXEC, syscall.ELOOP, syscall.ENAMETOOLONG,
		syscall.EISDIR, syscall.ENOTEMPTY, syscall.EXDEV, syscall.ENXIO, syscall.ENODEV,
		syscall.EILSEQ, syscall.EOVERFLOW, syscall.ESPIPE:
		return wire.CodeInvalidArgument
	}
	return wire.CodeInternal
}
