//go:build linux && !amd64

package trial

import "errors"

// KVM wraps [errors.ErrUnsupported]: how a machine of this architecture starts
// is not known here.
func KVM() (Result, error) { return Result{}, errors.ErrUnsupported }
