package host

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/agent"
	"tranca/internal/machine"
)

// fakeMachine is a machine that confines nothing: an agent in this process over
// a pair of sockets, with counters that a test sets.
type fakeMachine struct {
	stream  io.ReadWriteCloser
	limit   chan tranca.Reason
	onKill  func()
	onClose func()

	mu     sync.Mutex
	obs    machineCounts
	begun  int
	killed int
	closed int
}

type machineCounts struct {
	usage tranca.Usage
	limit tranca.Reason
}

func (m *fakeMachine) Stream() io.ReadWriteCloser { return m.stream }

func (m *fakeMachine) Begin(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun++
	m.obs = machineCounts{}
	return nil
}

func (m *fakeMachine) Observe(context.Context) (o machine.Observation, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return machine.Observation{Usage: m.obs.usage, Limit: m.obs.limit}, nil
}

func (m *fakeMachine) Limit() <-chan tranca.Reason { return m.limit }

func (m *fakeMachine) Kill(context.Context) error {
	m.mu.Lock()
	m.killed++
	m.mu.Unlock()
	if m.onKill != nil {
		m.onKill()
	}
	return nil
}

func (m *fakeMachine) Close(context.Context) error {
	m.mu.Lock()
	m.closed++
	m.mu.Unlock()
	m.stream.Close()
	if m.onClose != nil {
		m.onClose()
	}
	return nil
}

func (m *fakeMachine) Enforcement() []tranca.Enforcement {
	return []tranca.Enforcement{{Item: tranca.ItemIsolation, Mechanism: "none", Status: tranca.StatusWaived}}
}

func (m *fakeMachine) set(c machineCounts) {
	m.mu.Lock()
	m.obs = c
	m.mu.Unlock()
}

func (m *fakeMachine) counts() (begun, killed, closed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun, m.killed, m.closed
}

// socketPair returns the two ends of a byte stream as a sandbox has them.
func socketPair(t testing.TB) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "guest")
}

// recorder is a launcher that remembers what it started, so that the machine
// can kill it.
type recorder struct {
	agent.Direct
	before   func(agent.Program) // called before each start, where set
	mu       sync.Mutex
	children []agent.Child
}

func (r *recorder) Launch(p agent.Program) (agent.Child, error) {
	if r.before != nil {
		r.before(p)
	}
	c, err := r.Direct.Launch(p)
	if err == nil {
		r.mu.Lock()
		r.children = append(r.children, c)
		r.mu.Unlock()
	}
	return c, err
}

func (r *recorder) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.children {
		_ = c.Signal(int(unix.SIGKILL), true)
	}
	r.children = nil
}

// agentConfig is what the tests' agent serves with.
func agentConfig(t testing.TB) agent.Config {
	return agent.Config{
		Launcher: &recorder{},
		Env:      []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/bin", "HOME=/", "LANG=C.UTF-8"},
		Workdir:  t.TempDir(), Files: true,
		FSUID: uint32(os.Geteuid()), FSGID: uint32(os.Getegid()),
	}
}

// newSandbox makes a sandbox with a real agent behind it and closes it with the
// test.
func newSandbox(t testing.TB, change func(*agent.Config)) (*sandbox, *fakeMachine, agent.Config) {
	t.Helper()
	ours, theirs := socketPair(t)
	cfg := agentConfig(t)
	if change != nil {
		change(&cfg)
	}
	m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
	if r, ok := cfg.Launcher.(*recorder); ok {
		m.onKill = r.kill
	}
	served := make(chan error, 1)
	go func() { served <- agent.Serve(theirs, cfg) }()
	sb, err := New(m, tranca.Spec{ID: "itest"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
		// A host that goes with something unread resets the stream.
		if err := <-served; err != nil && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("the agent ended with: %v", err)
		}
	})
	return sb.(*sandbox), m, cfg
}

// within returns a context that ends long after anything should have happened.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
