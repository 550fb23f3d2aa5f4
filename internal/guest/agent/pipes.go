package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

const (
	// pipeSize is the kernel's usual bound for an unprivileged user. Where it
	// isn't to be had the pipe keeps its size.
	pipeSize = 1 << 20
	// Reads start small, since most programs print little, and grow while they
	// fill the buffer.
	firstRead = 8 << 10
	mostRead  = 128 << 10
)

// makePipes makes the standard files of a program.
func makePipes(stdin bool) (*pipes, error) {
	p := new(pipes)
	err := p.open(stdin)
	if err != nil {
		p.close()
		return nil, onPath("making", "the program's pipes", err)
	}
	return p, nil
}

func (p *pipes) open(stdin bool) (err error) {
	if stdin {
		p.theirs[0], p.ours[0], err = pipe(1)
	} else {
		p.theirs[0], err = os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	}
	for i := 1; i <= 2 && err == nil; i++ {
		p.ours[i], p.theirs[i], err = pipe(0)
		if err == nil {
			_ = control(p.ours[i], func(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize) })
		}
	}
	return err
}

// pipe makes a pipe whose end number own, 0 to read or 1 to write, is the
// agent's: that one doesn't block a thread.
func pipe(own int) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[own], true); err != nil {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// control runs f on a file's descriptor without touching its mode or deadline.
func control(file *os.File, f func(fd int)) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { f(int(fd)) })
}

// pump sends what comes out of a program until the pipe ends, or until its
// deadline and the pipe is empty.
func pump(out *os.File, side *wire.Stream, stderr bool) {
	defer func() { _ = side.CloseSend() }()
	size := firstRead
	for {
		b := wire.NewBuf(size)
		n, err := out.Read(b.Bytes())
		if n > 0 {
			b.Truncate(n)
			send(side, b, stderr)
		}
		b.Free()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(out, side, stderr)
			return
		}
		if err != nil {
			return
		}
		if n == size {
			size = min(4*size, mostRead)
		}
	}
}

// send sends output. Where nobody takes it any more it is dropped, so that the
// program doesn't stop.
func send(side *wire.Stream, b *wire.Buf, stderr bool) {
	var store [message.MaxDataPrefix]byte
	b.Prepend(message.DataPrefix(&store, stderr, len(b.Bytes())))
	_ = side.SendBuf(context.Background(), b)
}

// drain sends what is in the pipe at this moment, and not what a descendant
// keeps adding.
func drain(out *os.File, side *wire.Stream, stderr bool) {
	left := 0
	_ = control(out, func(fd int) { left, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	for left > 0 {
		b := wire.NewBuf(min(left, mostRead))
		var n int
		var err error
		cerr := control(out, func(fd int) { n, err = unix.Read(fd, b.Bytes()) })
		if err == syscall.EINTR {
			b.Free()
			continue
		}
		if cerr != nil || err != nil || n <= 0 {
			b.Free()
			return
		}
		b.Truncate(n)
		send(side, b, stderr)
		b.Free()
		left -= n
	}
}

// feed writes what comes on the call to the program's stdin until either ends.
func (p *proc) feed(main *wire.Stream) {
	for {
		b, err := main.Recv(context.Background())
		if err != nil {
			if p.stdin != nil && errors.Is(err, io.EOF) {
				p.stdinMu.Lock()
				p.stdin.Close()
				p.stdinMu.Unlock()
			}
			return
		}
		var req message.StreamInputRequest
		if err := req.Unmarshal(b.Bytes()); err != nil {
			b.Free()
			main.Reset(wire.CodeInvalidArgument, err.Error())
			return
		}
		// A program that closed its stdin doesn't want the rest; the host may
		// still send it.
		_ = p.writeStdin(req.Data.Stdin)
		b.Free()
	}
}

func (p *proc) writeStdin(b []byte) error {
	if p.stdin == nil {
		return invalid("the program has no stdin")
	}
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	_, err := p.stdin.Write(b)
	return err
}
