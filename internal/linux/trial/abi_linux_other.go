//go:build linux && !amd64

package trial

import "errors"

// X32 wraps [errors.ErrUnsupported]: processors of this architecture have no
// such ABI.
func X32() (Result, error) { return Result{}, errors.ErrUnsupported }

// IA32 wraps [errors.ErrUnsupported], as X32 does.
func IA32() (Result, error) { return Result{}, errors.ErrUnsupported }
