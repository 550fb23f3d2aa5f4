package seccomp

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// reachEnv names the socket file that the probes below try to reach.
const reachEnv = "TRANCA_SECCOMP_SOCKET"

// way is one way to talk to a socket file of somebody else.
type way struct {
	host   int  // the type of the socket behind the file
	free   bool // it works without the filter
	kind   int
	obtain func(family, kind, protocol int) (int, error)
	act    func(fd int, to unix.Sockaddr) error
}

var ways = map[string]way{
	"stream socket":            {unix.SOCK_STREAM, true, unix.SOCK_STREAM, unix.Socket, connect},
	"datagram socket":          {unix.SOCK_DGRAM, true, unix.SOCK_DGRAM, unix.Socket, send},
	"datagram pair, sendto":    {unix.SOCK_DGRAM, true, unix.SOCK_DGRAM, onePeer, send},
	"datagram pair, connect":   {unix.SOCK_DGRAM, true, unix.SOCK_DGRAM, onePeer, connect},
	"raw pair, sendto":         {unix.SOCK_DGRAM, true, unix.SOCK_RAW, onePeer, send},
	"stream pair, sendto":      {unix.SOCK_STREAM, false, unix.SOCK_STREAM, onePeer, send},
	"stream pair, connect":     {unix.SOCK_STREAM, false, unix.SOCK_STREAM, onePeer, connect},
	"stream pair, lone":        {unix.SOCK_STREAM, false, unix.SOCK_STREAM, lonePeer, connect},
	"stream pair, dissolved":   {unix.SOCK_STREAM, false, unix.SOCK_STREAM, onePeer, dissolve},
	"stream pair, to datagram": {unix.SOCK_DGRAM, false, unix.SOCK_STREAM, onePeer, send},
	"seqpacket pair, sendto":   {unix.SOCK_SEQPACKET, false, unix.SOCK_SEQPACKET, onePeer, send},
	"seqpacket pair, connect":  {unix.SOCK_SEQPACKET, false, unix.SOCK_SEQPACKET, onePeer, connect},
	"seqpacket pair, lone":     {unix.SOCK_SEQPACKET, false, unix.SOCK_SEQPACKET, lonePeer, connect},
	"seqpacket, to datagram":   {unix.SOCK_DGRAM, false, unix.SOCK_SEQPACKET, onePeer, send},
	"TCP socket":               {unix.SOCK_STREAM, false, unix.SOCK_STREAM, inet, connect},
}

// run goes the way and returns where it ended.
func (w way) run() unix.Errno {
	fd, err := w.obtain(unix.AF_UNIX, w.kind, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(fd)
	return errnoOf(w.act(fd, &unix.SockaddrUnix{Name: os.Getenv(reachEnv)}))
}

// onePeer returns one end of a pair and leaves the other open.
func onePeer(family, kind, protocol int) (int, error) {
	fds, err := unix.Socketpair(family, kind, protocol)
	return fds[0], err
}

// lonePeer returns one end of a pair whose other end is closed.
func lonePeer(family, kind, protocol int) (int, error) {
	fds, err := unix.Socketpair(family, kind, protocol)
	if err == nil {
		err = unix.Close(fds[1])
	}
	return fds[0], err
}

func inet(_, kind, _ int) (int, error) { return unix.Socket(unix.AF_INET, kind, 0) }

func connect(fd int, to unix.Sockaddr) error {
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err := unix.Write(fd, []byte("x"))
	return err
}

func send(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, []byte("x"), 0, to) }

// dissolve tries to get rid of the peer before connecting anew.
func dissolve(fd int, to unix.Sockaddr) error {
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	_ = unix.Connect(fd, &unix.SockaddrUnix{})
	return connect(fd, to)
}

// TestUnixSocketOfHost: without unix sockets, nothing that the filter lets a
// program make reaches a socket file of the host. The control without the
// filter shows that the datagram pairs would, and no other pair.
func TestUnixSocketOfHost(t *testing.T) {
	for name, w := range ways {
		if reached(t, strict, name, w) {
			t.Errorf("%s reaches a socket file under the filter", name)
		}
		if got := reached(t, unfiltered, name, w); got != w.free {
			t.Errorf("%s without the filter: reached is %v, want %v", name, got, w.free)
		}
	}
}

// reached reports whether something of a child arrived at a socket of this
// process. What it sent is queued before it ends, so there is nothing to wait
// for.
func reached(t *testing.T, filter, name string, w way) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	t.Setenv(reachEnv, path)
	host := listen(t, w.host, path)
	probeErrno(t, filter, name)
	ready := []unix.PollFd{{Fd: int32(host), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// listen makes a socket file that takes connections or datagrams.
func listen(t *testing.T, kind int, path string) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if kind == unix.SOCK_DGRAM {
		return fd
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	return fd
}
