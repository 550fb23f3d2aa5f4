package listen

import (
	"net"
	"sync"
)

// Limit returns a listener with at most n connections open at once. More wait
// to be accepted until one is closed.
func Limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, n), done: make(chan struct{})}
}

type limited struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// Peer returns who is at the other end.
func (c *counted) Peer() Peer {
	if p, ok := c.Conn.(interface{ Peer() Peer }); ok {
		return p.Peer()
	}
	return Peer{UID: -1}
}

// CloseWrite ends one direction, which every connection of this package can.
func (c *counted) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
