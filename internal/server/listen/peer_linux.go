package listen

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID asks the kernel who connected; -1 is nobody.
func peerUID(c *net.UnixConn) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil || cred.Pid == 0 {
		return -1
	}
	return int(cred.Uid)
}
