//go:build !linux

package listen

import (
	"fmt"
	"net"

	"tranca"
)

// Socket is the server's unix socket.
type Socket struct{ net.Listener }

// Unix says that this system has no such socket: there is no server where
// nothing can be run.
func Unix(string) (*Socket, error) {
	return nil, fmt.Errorf("%w: a server runs on Linux only; --server names one there", tranca.ErrUnsupported)
}

// Check reports nothing.
func (*Socket) Check() error { return nil }

// Path returns nothing.
func (*Socket) Path() string { return "" }

func peerUID(*net.UnixConn) int { return -1 }
