package gvisor

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/sentryspec"
	"tranca/internal/machine"
)

// countTime bounds one question for the Sentry's counters.
const countTime = 2 * time.Second

// box is one booted sandbox: a [confine.Box] over Sentry and file server, and
// what only the Sentry can count.
type box struct {
	*confine.Box
	words *words // the Sentry's
	begun bool   // of Begin alone, which is called by one at a time

	mu      sync.Mutex // held over a question
	control *net.UnixConn
	base    sentryspec.Counters // at the last Begin
	last    sentryspec.Counters // what was answered last
	seen    uint64              // the most processes that an answer has shown since
}

var (
	_ machine.Machine     = (*box)(nil)
	_ machine.KillByAgent = (*box)(nil)
)

// adopt takes over what was started.
func (m *box) adopt(k *kernel, files *confine.Agent) {
	m.control, m.words = k.control, listen(k.diagnosis)
	// The Sentry dies first: its file server then ends by itself.
	m.Attend("gVisor's Sentry", k.child, k.diagnosis)
	m.Attend("gVisor's file server", files.Child, files.Diagnosis)
	m.Adopt(k.stream, files.Scratch)
	m.HoldsKernel(m.alive)
	m.Hold(k.control)
	m.Hold(files.Stream)
}

// Begin gives the next program fresh counters. Those of the Sentry are for the
// first one.
func (m *box) Begin(ctx context.Context) error {
	if m.begun {
		m.mu.Lock()
		m.ask()
		m.base, m.seen = m.last, 0
		m.mu.Unlock()
	}
	m.begun = true
	return m.Box.Begin(ctx)
}

// alive reports whether a program lives, as was answered last.
func (m *box) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.Processes > 0
}

// Observe reads the counters of the host's kernel, and of the Sentry those that
// only it has. A Sentry that has been taken over can keep refused forks to
// itself, and nothing else.
func (m *box) Observe(ctx context.Context) (machine.Observation, error) {
	o, err := m.Box.Observe(ctx)
	if err != nil {
		return o, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask()
	o.Usage.ProcessesPeak = m.peak()
	if m.last.Refused > m.base.Refused && !slices.Contains(o.Usage.Hit, tranca.HitPIDs) {
		o.Usage.Hit = slices.Insert(o.Usage.Hit, 0, tranca.HitPIDs)
	}
	return o, nil
}

// peak is the highest number of processes since Begin, or the highest that was
// seen where that of an earlier program was higher. The caller holds mu.
func (m *box) peak() int64 {
	if m.last.Peak > m.base.Peak {
		return int64(min(m.last.Peak, 1<<31))
	}
	return int64(min(m.seen, 1<<31))
}

// ask has the Sentry count. One that does not answer is asked no more: what it
// said last stands. The caller holds mu.
func (m *box) ask() {
	if m.control == nil {
		return
	}
	var b [sentryspec.CountersSize]byte
	err := m.control.SetDeadline(time.Now().Add(countTime))
	if err == nil {
		_, err = m.control.Write([]byte{sentryspec.Ask})
	}
	if err == nil {
		_, err = io.ReadFull(m.control, b[:])
	}
	if err != nil {
		m.control = nil
		return
	}
	m.last = sentryspec.ParseCounters(&b)
	m.seen = max(m.seen, m.last.Processes)
}

// Kill ends the machine. See [machine.KillByAgent].
func (m *box) Kill(ctx context.Context) error { return m.KillMachine(ctx) }

// KillsAgent is [machine.KillByAgent]: from outside the code's processes can't
// be told from the agent.
func (m *box) KillsAgent() bool { return true }

// LastWords is [machine.Obituary].
func (m *box) LastWords() string {
	select {
	case <-m.words.done:
	case <-time.After(100 * time.Millisecond):
	}
	return m.words.all()
}
