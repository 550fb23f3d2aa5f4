package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

const (
	// maxConnections bounds the connections to ports at one moment. For each,
	// some of what the host sends waits in the agent's memory for a peer that does
	// not read.
	maxConnections = 64
	// connectTime is for a listener whose queue is full.
	connectTime = 10 * time.Second
)

// dial connects to a port of the sandbox's loopback for the length of the call.
func (a *agent) dial(c *wire.Call) error {
	var req message.DialRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	if req.Port < 1 || req.Port > 65535 {
		return invalid("port " + strconv.FormatUint(uint64(req.Port), 10) + ": it is 1 to 65535")
	}
	if !take(&a.connections, 1, maxConnections) {
		return busy(strconv.Itoa(maxConnections) + " connections are open, which is the most")
	}
	defer a.connections.Add(-1)
	// A caller who gives up, and the session's end, end every wait.
	var peer atomic.Pointer[os.File]
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-c.Reseted():
		case <-a.sess.Done():
		case <-over:
			return
		}
		if f := peer.Load(); f != nil {
			_ = f.SetDeadline(passed)
		}
	}()
	f, err := a.connect(c, int(req.Port), &peer)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.Send(context.Background(), nil, false); err != nil {
		abort(f)
		return nil
	}
	return a.relay(c, f)
}

// connect tries the loopback of both families. Nobody listens where both refuse.
func (a *agent) connect(c *wire.Call, port int, peer *atomic.Pointer[os.File]) (*os.File, error) {
	v4 := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	v6 := &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
	f, err := a.connectTo(c, unix.AF_INET, v4, peer)
	if err == syscall.ECONNREFUSED {
		f, err = a.connectTo(c, unix.AF_INET6, v6, peer)
	}
	switch err {
	case nil:
		return f, nil
	case syscall.ECONNREFUSED, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.ENETUNREACH:
		// The last three where the host has no IPv6.
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "nothing listens on port " + strconv.Itoa(port)}
	case syscall.ETIMEDOUT:
		return nil, busy("what listens on port " + strconv.Itoa(port) + " accepts nobody")
	}
	return nil, onPath("connecting to", "port "+strconv.Itoa(port), err)
}

func (a *agent) connectTo(c *wire.Call, family int, to unix.Sockaddr, peer *atomic.Pointer[os.File]) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return nil, err
	}
	err = unix.Connect(fd, to)
	f := os.NewFile(uintptr(fd), "port")
	peer.Store(f)
	if a.givenUp(c) {
		_ = f.SetDeadline(passed) // who watches may have looked before
	}
	if err == syscall.EINPROGRESS || err == syscall.EINTR {
		err = connected(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// connected waits for the end of a connect that is under way.
func connected(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	timer := time.AfterFunc(connectTime, func() { _ = f.SetWriteDeadline(passed) })
	defer timer.Stop()
	var result error
	err = conn.Write(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, perr := unix.Poll(fds, 0); perr != nil || n == 0 {
			return false
		}
		no, gerr := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if result = gerr; gerr == nil && no != 0 {
			result = syscall.Errno(no)
		}
		return true
	})
	if err != nil {
		return syscall.ETIMEDOUT
	}
	return result
}

// abort makes the close of a connection a reset.
func abort(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
}

// relay carries bytes both ways until both directions have ended, or one of
// them by a fault, which is the end of the other.
func (a *agent) relay(c *wire.Call, f *os.File) error {
	const why = "the connection was reset"
	var down sync.WaitGroup
	var fromPeer error
	down.Go(func() {
		if fromPeer = toHost(c, f); fromPeer != nil {
			c.Reset(wire.CodeCanceled, why)
			_ = f.SetDeadline(passed)
		}
	})
	byPeer, toPeer := fromHost(c, f)
	if toPeer != nil && !byPeer {
		abort(f)
		_ = f.SetDeadline(passed)
	}
	// A peer that takes nothing more may have answered before.
	down.Wait()
	if toPeer != nil {
		c.Reset(wire.CodeCanceled, why)
	}
	if fromPeer != nil {
		abort(f)
	}
	return nil
}

// toHost sends what the peer sends, up to its end.
func toHost(c *wire.Call, f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	size := firstRead
	for {
		b, n, err := readPolled(conn, size)
		if err != nil {
			return err
		}
		if n == 0 {
			b.Free()
			return c.CloseSend()
		}
		if err := sendChunk(c, b, n); err != nil {
			return err
		}
		if n == size {
			size = min(4*size, mostRead)
		}
	}
}

// fromHost writes what the host sends, up to its end. It reports whether it was
// the peer that ended it before.
func fromHost(c *wire.Call, f *os.File) (byPeer bool, err error) {
	for {
		b, err := c.Recv(context.Background())
		if errors.Is(err, io.EOF) {
			return false, shutdown(f)
		}
		if err != nil {
			return false, err
		}
		var chunk message.FileChunk
		if err := chunk.Unmarshal(b.Bytes()); err != nil {
			b.Free()
			return false, err
		}
		_, err = f.Write(chunk.Data)
		b.Free()
		if err != nil {
			return true, err
		}
	}
}

// shutdown ends the direction to the peer.
func shutdown(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if err == syscall.ENOTCONN {
		err = nil // the peer has ended both
	}
	return errors.Join(cerr, err)
}
