// Package local is the whole of tranca inside a Go program: it runs code that
// somebody else wrote behind a boundary on this host.
//
//	l, err := local.New()
//	if err != nil {
//		return err
//	}
//	defer l.Close()
//	res, err := l.Run(ctx, "print(6*7)")
//
// The program that calls [New] is the operator: it says what the code may do,
// by a policy, before anything runs. Without a word of its own the default
// policy is in force, on the weakest backend of this module that holds all of
// it on this host. What the policy asks and the host can't enforce is a
// [tranca.RefusalError], with what is missing and what mends it; there is no
// silent fallback.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tranca"
	builtin "tranca/internal/app/backends"
	"tranca/internal/backend"
	"tranca/internal/engine"
	"tranca/internal/image"
	"tranca/internal/interpreter"
	"tranca/internal/policy"
	"tranca/internal/policyfile"
)

// Local runs code on this host. Make one with [New]. Safe for concurrent use.
type Local struct {
	engine *engine.Engine
}

// Option changes what [New] makes.
type Option func(*settings) error

type settings struct {
	backends []tranca.Backend
	policy   *tranca.Policy
	config   engine.Config
	ready    int
}

// WithBackend uses this backend instead of those of this module; given more
// than once, these backends. It may be of any implementation that passes
// tranca/backendtest. The backend is closed by [Local.Close], and by New where
// that fails.
//
// Giving one backend names it, and a name is consent: without a policy of its
// own, the default policy's floor comes down to the level of that backend. A
// policy that is given keeps its floor.
func WithBackend(b tranca.Backend) Option {
	return func(s *settings) error {
		s.backends = append(s.backends, b)
		return nil
	}
}

// WithPolicy puts a policy in force. Begin with [DefaultPolicy] or
// [ParsePolicy] and change what should be different.
func WithPolicy(p tranca.Policy) Option {
	return func(s *settings) error { return s.setPolicy(p) }
}

// WithPolicyFile puts a policy file in force. One that others can write, or
// that lies inside a writable mount of its own, is refused.
func WithPolicyFile(path string) Option {
	return func(s *settings) error {
		p, _, err := policyfile.Find(policyfile.Options{Path: path})
		if err != nil {
			return err
		}
		return s.setPolicy(p)
	}
}

func (s *settings) setPolicy(p tranca.Policy) error {
	if s.policy != nil {
		return fmt.Errorf("%w: two policies are given: only one can be in force", tranca.ErrInvalid)
	}
	s.policy = &p
	return nil
}

// WithMaxInFlight bounds how many runs are under way; more wait in line. The
// default is twice the number of CPUs, at least 4.
func WithMaxInFlight(n int) Option {
	return func(s *settings) error {
		s.config.MaxInFlight = n
		return positive("in flight", n)
	}
}

// WithMaxQueue bounds how many runs wait; more fail with [tranca.ErrBusy]. The
// default is 4096.
func WithMaxQueue(n int) Option {
	return func(s *settings) error {
		s.config.MaxQueue = n
		return positive("in the queue", n)
	}
}

// WithMaxSandboxes bounds how many sandboxes there are at once, those of runs
// and those of sessions together; more wait in line. The default is 64 more than
// how many runs are under way at most.
func WithMaxSandboxes(n int) Option {
	return func(s *settings) error {
		s.config.MaxSandboxes = n
		return positive("in sandboxes", n)
	}
}

// WithMaxTotal bounds the sums of the memory, in bytes, and of the CPUs, in
// thousandths, that all sandboxes at once may use by their policies; more wait
// in line, and what could never fit is refused. 0 is no bound, which is the
// default.
func WithMaxTotal(memory, milliCPUs int64) Option {
	return func(s *settings) error {
		s.config.MaxMemory, s.config.MaxMilliCPUs = memory, milliCPUs
		if memory < 0 || milliCPUs < 0 {
			return fmt.Errorf("%w: a sum of %d bytes and %d thousandths of a CPU: want 0 or more", tranca.ErrInvalid, memory, milliCPUs)
		}
		return nil
	}
}

// WithProfile adds a further policy, which a [tranca.Request] may name: 1 to 64
// of a-z, 0-9, '-', '_' and '.'. The policy that is in force without a name is
// called "default".
func WithProfile(name string, p tranca.Policy) Option {
	return func(s *settings) error {
		s.config.Profiles = append(s.config.Profiles, engine.Profile{Name: name, Policy: p})
		return nil
	}
}

// WithReady keeps up to n sandboxes booted ahead, each for one use, for the
// policy that was asked for last, unless it has mounts or an image. It spares a run the
// wait for the boot and costs some 2 MiB for each. Without it none are kept.
// It applies to the backends of this module.
func WithReady(n int) Option {
	return func(s *settings) error {
		s.ready = n
		return positive("booted ahead", n)
	}
}

// WithObserver tells each step of each run to f, which is called from several
// goroutines and must not block.
func WithObserver(f func(tranca.Event)) Option {
	return func(s *settings) error {
		s.config.Observer = f
		return nil
	}
}

// WithLogger takes what an operator should know and no result says. Without
// it nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) error {
		s.config.Logger = l
		return nil
	}
}

func positive(what string, n int) error {
	if n <= 0 {
		return fmt.Errorf("%w: %d runs %s: want at least 1", tranca.ErrInvalid, n, what)
	}
	return nil
}

// DefaultPolicy returns the policy that is in force where none is given.
func DefaultPolicy() tranca.Policy { return policy.Default() }

// ParsePolicy reads a policy in YAML or JSON. name stands in errors, which
// tell the line and wrap [tranca.ErrInvalid].
func ParsePolicy(name string, data []byte) (tranca.Policy, error) {
	return policy.Parse(name, data)
}

// Languages returns the languages that a request may name. Whether a sandbox
// has the interpreter shows when code is run: [tranca.ErrNotFound].
func Languages() []string { return interpreter.Names() }

// New makes a Local. Nothing is started yet but what backends do for
// themselves. Errors wrap [tranca.ErrInvalid], [tranca.ErrRefused] or
// [tranca.ErrNotFound] (a policy file).
func New(opts ...Option) (*Local, error) {
	var s settings
	var err error
	for _, o := range opts {
		err = errors.Join(err, o(&s))
	}
	var l *Local
	if err == nil {
		l, err = s.build()
	}
	if err != nil {
		for _, b := range s.backends {
			if b != nil {
				err = errors.Join(err, b.Close(context.Background()))
			}
		}
		return nil, err
	}
	return l, nil
}

func (s *settings) build() (*Local, error) {
	var backends *backend.Registry
	var err error
	given := s.backends
	if len(s.backends) > 0 {
		backends, err = backend.NewRegistry(s.backends...)
	} else {
		backends, err = builtin.All(s.ready)
	}
	if err != nil {
		return nil, err
	}
	s.config.Backends = backends
	s.config.Images = image.New(image.Options{})
	s.config.MaxTTL = -1        // whoever opens a session here closes it
	s.backends = backends.All() // closed by New where this fails
	if s.config.Policy, err = s.effective(given); err != nil {
		return nil, err
	}
	e, err := engine.New(s.config)
	if err != nil {
		return nil, err
	}
	return &Local{engine: e}, nil
}

// effective returns the policy that was given, or the default one; that one
// names a backend that was given alone.
func (s *settings) effective(given []tranca.Backend) (tranca.Policy, error) {
	if s.policy != nil {
		return *s.policy, nil
	}
	p := policy.Default()
	if len(given) != 1 {
		return p, nil
	}
	b := given[0]
	name, floor := b.Name(), p.Floor
	if level := levelOf(b); level != 0 {
		floor = min(floor, level)
	}
	return policy.Apply(p, policy.Overrides{Backend: &name, Floor: &floor})
}

// levelOf returns the level that a backend says it has, or else has shown; 0
// where neither is to be had. Then the floor stands, and each run tells why
// the backend can't be used.
func levelOf(b tranca.Backend) tranca.Level {
	if level := backend.Level(b); level != 0 {
		return level
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := b.Probe(ctx)
	if err != nil {
		return 0
	}
	return report.Level
}

// Run runs Python code in a fresh sandbox and returns when nothing of it is
// left. A program that fails, or that a limit ends, is a result; see
// [tranca.Runner].
func (l *Local) Run(ctx context.Context, code string) (*tranca.Result, error) {
	return l.engine.Run(ctx, tranca.Request{Code: code})
}

// RunRequest is Run for everything else that a request can say: another
// language, a command, arguments, input, live output, narrowing.
func (l *Local) RunRequest(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	return l.engine.Run(ctx, req)
}

// Policy returns the policy that is in force.
func (l *Local) Policy() tranca.Policy { return l.engine.Policy() }

// Close ends what runs, destroys every sandbox and closes the backends. It
// returns when nothing is left. Idempotent.
func (l *Local) Close() error { return l.engine.Close(context.Background()) }
