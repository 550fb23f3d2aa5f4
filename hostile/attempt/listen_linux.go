package attempt

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// doListen waits for one peer, answers it and tells what came of it.
func doListen(_ *interp, s *Step) (string, error) {
	data, err := dataBytes(s.Data)
	if err != nil {
		return "", err
	}
	at, family, err := peer(s.Network, s.Address)
	if err != nil {
		return "", err
	}
	kind := unix.SOCK_STREAM
	if s.Network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	l, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(l)
	if s.Network == "tcp" {
		_ = unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // else a port rests for a while
	}
	if err := unix.Bind(l, at); err != nil {
		return "", err
	}
	if s.Network == "unix" && !strings.HasPrefix(s.Address, "@") {
		defer func() { _ = unix.Unlink(s.Address) }()
	}
	end := time.Now().Add(s.For.Duration())
	if kind == unix.SOCK_DGRAM {
		return packet(l, data, end)
	}
	if err := unix.Listen(l, 16); err != nil {
		return "", err
	}
	return stream(l, data, end)
}

// stream takes one connection and answers at once, for who connects doesn't
// wait for long.
func stream(l int, data []byte, end time.Time) (string, error) {
	for ready(l, unix.POLLIN, end) {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch err {
		case nil:
		case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
			continue // it is gone already
		default:
			return "", err
		}
		defer unix.Close(fd)
		_ = writeAll(fd, data) // it connected, which is what counts
		_ = unix.Shutdown(fd, unix.SHUT_WR)
		return string(answer(fd)), nil
	}
	return "", unix.ETIMEDOUT
}

// packet takes one packet and answers it.
func packet(l int, data []byte, end time.Time) (string, error) {
	buf := make([]byte, 64<<10)
	for ready(l, unix.POLLIN, end) {
		n, from, err := unix.Recvfrom(l, buf, 0)
		switch err {
		case nil:
		case unix.EAGAIN, unix.EINTR:
			continue
		default:
			return "", err
		}
		if len(data) > 0 {
			_ = unix.Sendto(l, data, 0, from)
		}
		return string(buf[:n]), nil
	}
	return "", unix.ETIMEDOUT
}
