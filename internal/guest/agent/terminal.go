package agent

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// terminals is where terminals come from: the sandbox's own, where it has them.
const terminals = "/dev/ptmx"

// defaultTerm is the kind of terminal that a program is told it has, unless its
// environment says so.
const defaultTerm = "TERM=xterm-256color"

// passed is a deadline that ends a wait at once.
var passed = time.Unix(1, 0)

// openTerminal makes a terminal and its ends as the files of a program. It is
// made with the code's user, to whom it belongs then.
func openTerminal(size *message.PTY) (*pipes, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	master, err := openAt(unix.AT_FDCWD, terminals, unix.O_RDWR, 0)
	if err != nil {
		return nil, noTerminal(err)
	}
	p := &pipes{out: [2]int{master, -1}, stop: -1}
	// Not blocking, so that neither reading nor typing costs a thread.
	p.term = os.NewFile(uintptr(master), "terminal")
	program, err := programEnd(master, size)
	if err != nil {
		p.close()
		return nil, noTerminal(err)
	}
	p.theirs = [3]*os.File{program, program, program}
	return p, nil
}

// programEnd unlocks a terminal and opens the other end of it, by the
// descriptor: no path could lead elsewhere.
func programEnd(master int, size *message.PTY) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	if err := setSize(master, size); err != nil {
		return nil, err
	}
	fd, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if no != 0 {
		return nil, no
	}
	return os.NewFile(fd, "terminal"), nil
}

// noTerminal tells a sandbox that has none from one whose terminals are all in
// use.
func noTerminal(err error) error {
	switch err {
	case syscall.ENOSPC, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return busy("no terminal is free: " + err.Error())
	}
	return &wire.Error{Code: wire.CodeUnimplemented,
		Message: "this sandbox has no terminals: opening " + terminals + ": " + err.Error()}
}

func checkSize(size *message.PTY) error {
	const most = 1<<16 - 1
	if size.Cols < 1 || size.Cols > most || size.Rows < 1 || size.Rows > most {
		return invalid("a terminal of " + strconv.FormatUint(uint64(size.Cols), 10) + " by " +
			strconv.FormatUint(uint64(size.Rows), 10) + " characters: each is 1 to 65535")
	}
	return nil
}

func setSize(fd int, size *message.PTY) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ,
		&unix.Winsize{Row: uint16(size.Rows), Col: uint16(size.Cols)})
}

// update gives a program's terminal another size, of which the kernel tells the
// program.
func (a *agent) update(req *message.UpdateRequest) error {
	if req.PTY == nil {
		return invalid("an update of nothing")
	}
	if err := checkSize(req.PTY); err != nil {
		return err
	}
	p, err := a.find(&req.Process)
	if err != nil {
		return err
	}
	if p.term == nil {
		return &wire.Error{Code: wire.CodeUnimplemented, Message: "the program has no terminal"}
	}
	conn, err := p.term.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) { err = setSize(int(fd), req.PTY) })
	if errors.Is(cerr, os.ErrClosed) {
		return syscall.ESRCH
	}
	return errors.Join(cerr, err)
}

// terminalRest bounds what may still be in a terminal when its program has
// ended: the kernel's buffers of one direction.
const terminalRest = 72 << 10

// drainTerminal sends what is in a terminal at this moment. The kernel doesn't
// say how much that is, and a descendant may keep adding.
func drainTerminal(out int, side *wire.Stream) {
	for left := terminalRest; left > 0; {
		n, err := forward(out, min(left, firstRead), side, message.Terminal)
		if n <= 0 || err != nil {
			return
		}
		left -= n
	}
}
