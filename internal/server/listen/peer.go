package listen

import (
	"context"
	"net"
)

// Peer is who is at the other end of a connection.
type Peer struct {
	// Local says that the connection came by the unix socket.
	Local bool
	// UID is the user of a local one, as the kernel told it when the connection
	// was made; -1 where it told nothing.
	UID int
}

type peerKey struct{}

// WithPeer is for [net/http.Server.ConnContext].
func WithPeer(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(interface{ Peer() Peer }); ok {
		return context.WithValue(ctx, peerKey{}, c.Peer())
	}
	return ctx
}

// PeerOf returns who sent a request. Where that is not known it is nobody
// local.
func PeerOf(ctx context.Context) Peer {
	p, ok := ctx.Value(peerKey{}).(Peer)
	if !ok {
		return Peer{UID: -1}
	}
	return p
}

// Allowed reports whether a local peer may use a server of user uid: the same
// user, and root.
func (p Peer) Allowed(uid int) bool {
	return p.Local && (p.UID == uid || p.UID == 0)
}

// writeBuffer is what the kernel may hold for a local client, in bytes.
const writeBuffer = 512 << 10

// unixConn is a connection by the socket.
type unixConn struct {
	*net.UnixConn
	peer Peer
}

func (c *unixConn) Peer() Peer { return c.peer }

// unixListener says of each connection who made it.
type unixListener struct{ *net.UnixListener }

func (l unixListener) Accept() (net.Conn, error) {
	c, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	// As the kernel's bounds allow: output goes in large pieces, and a client
	// that is woken by each part of one takes longer for all.
	_ = c.SetWriteBuffer(writeBuffer)
	return &unixConn{UnixConn: c, peer: Peer{Local: true, UID: peerUID(c)}}, nil
}
