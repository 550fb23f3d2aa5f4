package seccomp

import "errors"

// The classes of error. They are the package's own, not those of package
// tranca: the guest agent links this package, and what the vocabulary links
// would cost each start.
var (
	// ErrInvalid: what was asked is malformed.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: the kernel lacks it.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnsupported: this package does not know it.
	ErrUnsupported = errors.New("unsupported")
)
