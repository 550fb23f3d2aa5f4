package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

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
	mostRead  = wire.MaxPayload - message.MaxDataPrefix
	// After floodReads reads that followed each other within quiet, a pump lets
	// output gather before each read that is not behind: a wake for every few
	// KiB costs more than it carries.
	floodReads = 16
	quiet      = 5 * time.Millisecond
	gather     = 100 * time.Microsecond
)

// makePipes makes the standard files of a program, to be followed by threads
// or by Go's poller.
func makePipes(stdin, threaded bool) (*pipes, error) {
	p := &pipes{out: [2]int{-1, -1}, stop: -1}
	err := p.open(stdin, threaded)
	if err != nil {
		p.close()
		return nil, onPath("making", "the program's pipes", err)
	}
	return p, nil
}

func (p *pipes) open(stdin, threaded bool) (err error) {
	if stdin {
		p.theirs[0], p.stdin, err = input()
	} else {
		p.theirs[0], err = os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	}
	for i := 1; i <= 2 && err == nil; i++ {
		p.out[i-1], p.theirs[i], err = output()
		if err == nil && !threaded {
			p.polled[i-1] = os.NewFile(uintptr(p.out[i-1]), "output")
		}
	}
	if err == nil && threaded {
		p.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	return err
}

// input makes a pipe whose writing end, the agent's, doesn't block a thread.
func input() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	r = os.NewFile(uintptr(fds[0]), "stdin")
	if err := unix.SetNonblock(fds[1], true); err != nil {
		r.Close()
		_ = unix.Close(fds[1])
		return nil, nil, err
	}
	return r, os.NewFile(uintptr(fds[1]), "stdin"), nil
}

// output makes a pipe and returns the descriptor of its reading end.
func output() (r int, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, nil, err
	}
	w = os.NewFile(uintptr(fds[1]), "output")
	if err := unix.SetNonblock(fds[0], true); err != nil {
		w.Close()
		_ = unix.Close(fds[0])
		return -1, nil, err
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return fds[0], w, nil
}

// pump sends what comes out of a program until its pipe ends, or until stop
// can be read; then it sends what is in the pipe at that moment.
//
// It waits in poll on a thread instead of in Go's poller: that one would be
// woken by every write of the program, also while nobody waits for it, and a
// program that writes little at a time would take most of a CPU in wakings.
func pump(out, stop int, side *wire.Stream, kind message.Output) {
	defer func() { _ = side.CloseSend() }()
	fds := []unix.PollFd{{Fd: int32(out), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
	var m mover
	defer m.close()
	size, flood, full, many, last := firstRead, 0, false, false, time.Time{}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && err != syscall.EINTR {
			return
		}
		if fds[1].Revents != 0 {
			drain(out, side, kind)
			return
		}
		if flood >= floodReads && !full {
			_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(gather)}, nil)
		}
		var n int
		var err error
		if many && m.able() {
			n, err = m.forward(out, side, kind)
			full = n == mostMoved
		} else {
			n, err = forward(out, size, side, kind)
			full = n == size
		}
		if err != nil || n == 0 {
			return
		}
		if full {
			size = min(4*size, mostRead)
		}
		many = n >= leastMoved
		now := time.Now()
		if flood++; now.Sub(last) > quiet {
			flood = 0
		}
		last = now
	}
}

// forward reads once and sends what came. It returns 0 at the end of the pipe
// and -1 where there was nothing to be read.
func forward(out, size int, side *wire.Stream, kind message.Output) (int, error) {
	b := wire.NewBuf(size)
	n, err := unix.Read(out, b.Bytes())
	if err == nil && n > 0 {
		sendOutput(b, n, side, kind)
		return n, nil
	}
	b.Free()
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return -1, nil
	}
	return 0, err
}

// drain sends what is in the pipe at this moment, and not what a descendant
// keeps adding.
func drain(out int, side *wire.Stream, kind message.Output) {
	left, err := unix.IoctlGetInt(out, unix.TIOCINQ)
	for err == nil && left > 0 {
		var n int
		n, err = forward(out, min(left, mostRead), side, kind)
		if n == 0 {
			return
		}
		left -= max(n, 0)
	}
}

// feed writes what comes on the call to the program until either ends.
func (p *proc) feed(main *wire.Stream) {
	for {
		b, err := main.Recv(context.Background())
		if err != nil {
			if errors.Is(err, io.EOF) {
				p.closeStdin()
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
		_ = p.write(&req.Data)
		b.Free()
	}
}

// closeStdin is the end of what the host sends. That of what is typed at a
// terminal is nothing that the program could see.
func (p *proc) closeStdin() {
	if p.stdin == nil {
		return
	}
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	p.stdin.Close()
}

// endInput frees whoever writes to a program that has ended.
func (p *proc) endInput() {
	if p.stdin != nil {
		p.stdin.Close()
	}
	if p.term != nil {
		_ = p.term.SetWriteDeadline(passed)
	}
}

// write writes to the program's stdin, or types at its terminal.
func (p *proc) write(in *message.ProcessInput) error {
	to, b := p.stdin, in.Stdin
	if p.term != nil {
		to, b = p.term, in.PTY
	}
	if to == nil || b == nil {
		return invalid("the program has no such input: it has stdin, a terminal, or neither")
	}
	p.stdinMu.Lock()
	defer p.stdinMu.Unlock()
	_, err := to.Write(b)
	return err
}
