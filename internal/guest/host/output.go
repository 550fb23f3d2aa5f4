package host

import (
	"context"
	"io"
	"sync"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// mutes keeps a program's output from being written after Wait has returned,
// which can be before a Write that blocks does.
type mutes struct {
	mu sync.Mutex
	on bool
}

func (m *mutes) set() {
	m.mu.Lock()
	m.on = true
	m.mu.Unlock()
}

func (m *mutes) isSet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// pump writes one of the program's outputs to w. A Write that blocks stops
// this stream and nothing else, by its credits; one that fails discards the
// rest.
func (p *process) pump(side *wire.Stream, w io.Writer, kind message.Output) {
	for {
		b, err := side.Recv(context.Background())
		if err != nil {
			if told, ok := err.(*wire.Error); ok {
				_ = p.sb.breach("output that was given up: " + printable(told.Message))
			}
			return
		}
		var m message.StartResponse
		if err := m.Unmarshal(b.Bytes()); err != nil || m.Event.Data == nil {
			b.Free()
			_ = p.sb.breach("output that is none")
			return
		}
		data := kind.Of(m.Event.Data)
		if data == nil {
			b.Free()
			_ = p.sb.breach("output on the stream of the other one")
			return
		}
		if w != nil && !p.mute.isSet() {
			if _, err := w.Write(data); err != nil {
				w = nil
			}
		}
		b.Free()
	}
}

const (
	firstInput = 4 << 10
	// With what stands before them, these fill a buffer of the receiver and
	// don't need the next larger one.
	mostInput = 128<<10 - message.MaxDataPrefix
	// inputWindow is what may wait in the agent for a program that does not read
	// its input: many do not, and the agent's memory is bounded.
	inputWindow = wire.MinWindow + 128<<10 + wire.FrameCost
	// maxEmptyReads bounds a reader that returns nothing and no error.
	maxEmptyReads = 100
)

// feed sends the program's input. It ends when the program does, or when the
// Read that is under way then returns.
func (p *process) feed() {
	size, empty := firstInput, 0
	for empty < maxEmptyReads {
		b := wire.NewBuf(size)
		n, err := p.cmd.Stdin.Read(b.Bytes())
		if n > 0 {
			b.Truncate(n)
			var store [message.MaxDataPrefix]byte
			b.Prepend(message.InputPrefix(&store, p.cmd.Terminal != nil, n))
			if serr := p.call.SendBuf(context.Background(), b); serr != nil {
				b.Free()
				return
			}
		}
		b.Free()
		if err != nil {
			break
		}
		if empty++; n > 0 {
			empty = 0
		}
		if n == size {
			size = min(4*size, mostInput)
		}
	}
	_ = p.call.CloseSend()
}
