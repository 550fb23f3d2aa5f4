package agent

import (
	"context"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

const (
	// leastMoved is what the last read must have brought for the next bytes to be
	// moved rather than copied: a little that is moved costs more, and whole pages
	// of memory for it.
	leastMoved = 64 << 10
	// mostMoved is as many whole pages as one message holds.
	mostMoved = wire.MaxPayload - 4<<10
)

// mover moves output to the host by a pipe of its own, without copying it. The
// program's pipe won't do: the program can read it too, and then bytes would be
// missing that the host was told of.
type mover struct {
	pipe [2]int // open where state is moving
	state
}

type state int

const (
	unknown state = iota
	moving
	unable
)

// able reports whether it can move. Its pipe is made at the first call: few
// programs print so much.
func (m *mover) able() bool {
	if m.state != unknown {
		return m.state == moving
	}
	m.state = unable
	if unix.Pipe2(m.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return false
	}
	m.state = moving
	size, err := unix.FcntlInt(uintptr(m.pipe[1]), unix.F_SETPIPE_SZ, mostMoved)
	if err != nil || size < mostMoved {
		m.close()
	}
	return m.state == moving
}

// close has everything copied from now on.
func (m *mover) close() {
	if m.state == moving {
		_ = unix.Close(m.pipe[0])
		_ = unix.Close(m.pipe[1])
	}
	m.state = unable
}

// forward is forward by moving. Where it isn't able to it has taken nothing.
func (m *mover) forward(out int, side *wire.Stream, kind message.Output) (int, error) {
	n, err := unix.Splice(out, nil, m.pipe[1], nil, mostMoved, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return -1, nil
	case err != nil:
		m.close()
		return -1, nil //nolint:nilerr // it is read instead
	case n == 0:
		return 0, nil
	}
	var store [message.MaxDataPrefix]byte
	if side.SendPipe(context.Background(), message.DataPrefix(&store, kind, int(n)), m.pipe[0], int(n)) != nil {
		m.close() // there is something left in its pipe
	}
	return int(n), nil
}
