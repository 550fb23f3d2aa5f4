package wire

import (
	"context"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// SendPipe sends one message: prefix and then n bytes out of the pipe whose
// reading end is given, which the kernel moves instead of copying them where it
// can. They are in the pipe already and nobody else reads it. Prefix and bytes
// are at most MaxPayload. After an error they may still be in the pipe.
func (st *Stream) SendPipe(ctx context.Context, prefix []byte, pipe, n int) error {
	total := len(prefix) + n
	head := make([]byte, 0, Headroom)
	head = header{kind: kindMsg, stream: st.id, length: uint32(total)}.append(head)
	return st.sendWith(ctx, append(head, prefix...), cost(total), false, func() error {
		return st.s.move(pipe, n)
	})
}

// move writes n bytes out of a pipe. What can't be spliced is copied, so that a
// frame that was begun is whole.
func (s *Session) move(pipe, n int) error {
	if socket, ok := s.conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			n -= splice(raw, pipe, n)
		}
	}
	for n > 0 {
		m, err := s.copyPiece(pipe, n)
		if err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// splice returns how many bytes it moved. Where it is fewer than n the kernel
// can't, or the socket has ended, which a write then tells.
func splice(to syscall.RawConn, pipe, n int) (moved int) {
	_ = to.Write(func(fd uintptr) bool {
		for moved < n {
			m, err := unix.Splice(pipe, nil, int(fd), nil, n-moved, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false // the socket is full
			case err != nil || m <= 0:
				return true
			default:
				moved += int(m)
			}
		}
		return true
	})
	return moved
}

// copyPiece writes some of n bytes out of a pipe.
func (s *Session) copyPiece(pipe, n int) (int, error) {
	b := NewBuf(min(n, 64<<10))
	defer b.Free()
	m, err := unix.Read(pipe, b.Bytes())
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if m == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	_, err = s.conn.Write(b.Bytes()[:m])
	return m, err
}
