package agent

import (
	"context"
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
		var b *wire.Buf
		var n int
		var rerr error
		err := conn.Read(func(fd uintptr) bool {
			// Made only when there may be something to read.
			b = wire.NewBuf(size)
			for {
				n, rerr = unix.Read(int(fd), b.Bytes())
				if rerr != syscall.EINTR {
					break
				}
			}
			if rerr == syscall.EAGAIN {
				b.Free()
				return false
			}
			return true
		})
		if err != nil {
			// Told to stop: what is there at this moment still counts.
			p.drainPolled(side, out)
			return
		}
		if rerr != nil || n <= 0 {
			b.Free()
			return
		}
		full := n == size
		sendOutput(b, n, side, out)
		if full {
			size = min(4*size, mostRead)
		}
	}
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
