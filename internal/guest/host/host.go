// Package host turns a [machine.Machine] into a [tranca.Sandbox]: the host's
// side of the guest agent.
//
// Every byte that comes from the guest is hostile. Lengths and counts are
// bounded, answers have deadlines, the order of events is enforced, and no
// name or text of the guest is used but as data. A guest that breaks the rules
// gets no second chance: its machine is closed, and everything that waits for
// it fails with [tranca.ErrProtocol].
//
// The guest is believed in one thing, which no one else knows: with which code
// or signal a program ended. Whether a limit ended it is asked of the machine.
package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
	"tranca/internal/machine"
)

// The deadlines. They are for a guest that is broken or hostile, so they are
// long enough for one that is only slow.
const (
	// answerTimeout is for an answer, or for the next part of one.
	answerTimeout = 30 * time.Second
	// removeTimeout is for removing a tree, which is one answer.
	removeTimeout = 5 * time.Minute
	// writeTimeout is for the guest to take what was written to it.
	writeTimeout = 30 * time.Second
	// drainTimeout is for the output and the end of a program that was killed.
	drainTimeout = 2 * time.Second
	// killTimeout is for an agent that is asked to kill all programs.
	killTimeout = 5 * time.Second
	// observeTimeout is for reading the machine's counters.
	observeTimeout = 5 * time.Second
	// closeTimeout is for closing the machine of a guest that broke the rules.
	closeTimeout = 10 * time.Second
)

// Pinger is the ability of a sandbox to say whether its guest agent answers.
// Find it with [tranca.As].
type Pinger interface {
	// Ping returns when the guest agent has answered.
	Ping(ctx context.Context) error
}

// New makes a sandbox of a machine and takes it over: closing the sandbox
// closes it. It does not wait for the guest agent; what it is asked first waits
// for it.
func New(m machine.Machine, spec tranca.Spec) (tranca.Sandbox, error) {
	sb := &sandbox{
		m: m, id: spec.ID, cpuTime: spec.Policy.Limits.CPUTime,
		closing:  make(chan struct{}, 1),
		ended:    make(chan struct{}),
		programs: programs{running: make(map[*process]struct{})},
	}
	sb.sess = wire.New(m.Stream(), wire.Config{WriteTimeout: writeTimeout})
	go sb.run()
	return sb, nil
}

type sandbox struct {
	m    machine.Machine
	id   tranca.ID
	sess *wire.Session
	// cpuTime is the policy's limit.
	cpuTime time.Duration

	closing chan struct{} // a lock that a context can wait for
	ended   chan struct{} // closed when the session has ended

	mu            sync.Mutex
	programs      programs
	closed        bool // by the owner
	machineClosed bool
	fileTooBig    bool // a program of the last spell died of SIGXFSZ
}

// run is the sandbox's reading goroutine.
func (sb *sandbox) run() {
	defer close(sb.ended)
	if errors.Is(sb.explain(context.Background(), sb.sess.Run()), tranca.ErrProtocol) {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		// An error is found again, and told, when the owner closes the sandbox.
		_ = sb.closeMachine(ctx)
	}
}

// breach ends the session of a guest that broke the rules, and returns the
// error that everybody gets.
func (sb *sandbox) breach(what string) error {
	sb.sess.Fail(fmt.Errorf("%w: %s", tranca.ErrProtocol, what))
	return sb.explain(context.Background(), sb.sess.Err())
}

func (sb *sandbox) ID() tranca.ID { return sb.id }

func (sb *sandbox) Enforcement() []tranca.Enforcement {
	return slices.Clone(sb.m.Enforcement())
}

// ImageDigest is [tranca.ImageDigester], by the same ability of the machine.
func (sb *sandbox) ImageDigest() string {
	if d, ok := sb.m.(tranca.ImageDigester); ok {
		return d.ImageDigest()
	}
	return ""
}

func (sb *sandbox) Files() tranca.Files { return files{sb} }

// Ping is [Pinger].
func (sb *sandbox) Ping(ctx context.Context) error {
	return sb.unary(ctx, answerTimeout, message.MethodPing, &message.Empty{}, &message.Empty{})
}

// Alive reports whether the sandbox has not ended, as far as is known here
// without asking its guest agent. Find it with [tranca.As].
func (sb *sandbox) Alive() bool {
	select {
	case <-sb.ended:
		return false
	default:
		return sb.sess.Err() == nil
	}
}

// Usage is the machine's, with one thing added that it can't see: the kernel
// doesn't count the writes that a file's size limit refused. A death by SIGXFSZ
// shows one. This is told by the guest; a false word adds a hint at most.
func (sb *sandbox) Usage(ctx context.Context) (tranca.Usage, error) {
	obs, err := sb.observe(ctx)
	if err != nil {
		return tranca.Usage{}, fmt.Errorf("reading the sandbox's counters: %w", err)
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.fileTooBig && !slices.Contains(obs.Usage.Hit, tranca.HitFileSize) {
		obs.Usage.Hit = withFileSize(obs.Usage.Hit)
	}
	return obs.Usage, nil
}

// observe reads the counters, unless that was done a moment ago at the end of
// the last program: whoever runs one asks for its usage right after.
func (sb *sandbox) observe(ctx context.Context) (machine.Observation, error) {
	sb.mu.Lock()
	last := sb.programs.last
	fresh := len(sb.programs.running) == 0 && last != nil && last.err == nil && time.Since(last.at) < time.Millisecond
	sb.mu.Unlock()
	if fresh {
		return last.Observation, nil
	}
	return sb.m.Observe(ctx)
}

// withFileSize puts the hit where the fixed order has it: before the last one.
func withFileSize(hits []tranca.LimitHit) []tranca.LimitHit {
	hits = slices.Clone(hits)
	if i := slices.Index(hits, tranca.HitOutput); i >= 0 {
		return slices.Insert(hits, i, tranca.HitFileSize)
	}
	return append(hits, tranca.HitFileSize)
}

// Kill ends every program. Their Waits have returned, or return at once, when
// Kill does.
func (sb *sandbox) Kill(ctx context.Context) error {
	all := sb.condemn()
	defer sb.pardon()
	err := sb.killPrograms(ctx)
	if werr := awaitAll(ctx, all); err == nil {
		err = werr
	}
	if err != nil {
		return fmt.Errorf("killing the sandbox's programs: %w", err)
	}
	return nil
}

// awaitAll waits for programs that were killed.
func awaitAll(ctx context.Context, all []*process) error {
	for _, p := range all {
		p.hurry()
	}
	for _, p := range all {
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// killPrograms kills from outside, or asks the agent first where that would
// end the agent too.
func (sb *sandbox) killPrograms(ctx context.Context) error {
	if k, ok := sb.m.(machine.KillByAgent); ok && k.KillsAgent() {
		err := sb.unary(ctx, killTimeout, message.MethodKillAll, &message.Empty{}, &message.Empty{})
		if err == nil {
			return nil
		}
	}
	return sb.m.Kill(ctx)
}

// Close destroys the sandbox.
func (sb *sandbox) Close(ctx context.Context) error {
	sb.mu.Lock()
	sb.closed = true
	sb.mu.Unlock()
	all := sb.condemn()
	defer sb.pardon()
	err := sb.closeMachine(ctx)
	sb.sess.Fail(tranca.ErrClosed)
	werr := awaitAll(ctx, all)
	select {
	case <-sb.ended:
	case <-ctx.Done():
		werr = context.Cause(ctx)
	}
	if err == nil {
		err = werr
	}
	if err != nil {
		return fmt.Errorf("closing the sandbox: %w", err)
	}
	return nil
}

// closeMachine closes the machine unless that was done.
func (sb *sandbox) closeMachine(ctx context.Context) error {
	select {
	case sb.closing <- struct{}{}:
		defer func() { <-sb.closing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	sb.mu.Lock()
	done := sb.machineClosed
	sb.mu.Unlock()
	if done {
		return nil
	}
	err := sb.m.Close(ctx)
	sb.mu.Lock()
	sb.machineClosed = err == nil
	sb.mu.Unlock()
	return err
}
