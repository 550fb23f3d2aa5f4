//go:build !linux

package cli

import "runtime"

// kernel names the system instead: nothing depends on its release.
func kernel() (release, arch string) { return runtime.GOOS, runtime.GOARCH }
