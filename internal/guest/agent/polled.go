package agent

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// mostThreaded is how many programs at once are followed by threads that wait
// for them in the kernel, which is quickest. Each takes three. What runs beyond
// that is followed by Go's poller, for the agent's threads are bounded.
const mostThreaded = 8

// pumpPolled is pump for a program that Go's poller follows.
func (p *pipes) pumpPolled(f *os.File, side *wire.Stream, out message.Output) {
	defer func() { _ = side.CloseSend() }()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	size := firstRead
	for {
		b, n, err := readPolled(conn, size)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// Told to stop: what is there at this moment still counts.
			p.drainPolled(side, out)
			return
		}
		if err != nil {
			return // as a terminal's end is told
		}
		if n == 0 {
			b.Free()
			return
		}
		sendOutput(b, n, side, out)
		if n == size {
			size = min(4*size, mostRead)
		}
	}
}

// readPolled reads once into a new buffer, which the caller frees; 0 bytes are
// the end. The buffer is made only when there may be something to read.
func readPolled(conn syscall.RawConn, size int) (b *wire.Buf, n int, err error) {
	werr := conn.Read(func(fd uintptr) bool {
		b = wire.NewBuf(size)
		for {
			n, err = unix.Read(int(fd), b.Bytes())
			if err != syscall.EINTR {
				break
			}
		}
		if err == syscall.EAGAIN {
			b.Free()
			b = nil
			return false
		}
		return true
	})
	if werr != nil {
		err = werr
	}
	if err != nil {
		b.Free()
		return nil, 0, err
	}
	return b, n, nil
}

func (p *pipes) drainPolled(side *wire.Stream, out message.Output) {
	fd := p.out[0]
	if out == message.Stderr {
		fd = p.out[1]
	}
	if out == message.Terminal {
		drainTerminal(fd, side)
		return
	}
	drain(fd, side, out)
}

// sendOutput sends the n bytes that were read into b, and frees it. Where nobody
// takes them any more they are dropped, so that the program doesn't stop.
func sendOutput(b *wire.Buf, n int, side *wire.Stream, out message.Output) {
	defer b.Free()
	b.Truncate(n)
	var store [message.MaxDataPrefix]byte
	b.Prepend(message.DataPrefix(&store, out, n))
	_ = side.SendBuf(context.Background(), b)
}

// WaitPIDFD waits until the process of a pidfd has ended, without a thread, and
// closes it. An error says that it can't be waited for like this.
func WaitPIDFD(pidfd int) error {
	// Else it would be taken for a file that blocks.
	err := syscall.SetNonblock(pidfd, true)
	f := os.NewFile(uintptr(pidfd), "pidfd")
	defer f.Close()
	if err != nil {
		return err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0
	})
}
