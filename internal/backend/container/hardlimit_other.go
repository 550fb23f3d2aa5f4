//go:build !linux

package container

// hardLimit is none: the engine's host is a machine of its own.
func hardLimit(int) uint64 { return ^uint64(0) }
