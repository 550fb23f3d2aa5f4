//go:build linux && !amd64

package trial

import "errors"

func x32() (Result, error) { return Result{}, errors.ErrUnsupported }

func ia32() (Result, error) { return Result{}, errors.ErrUnsupported }
