package container

import "golang.org/x/sys/unix"

// hardLimit is the most that this host lets a process of this user set, which
// is the engine's too where it has no more rights.
func hardLimit(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return ^uint64(0)
	}
	return r.Max
}
