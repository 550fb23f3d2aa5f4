package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
	"tranca/internal/policy"
)

// maxMessage bounds one message of the client, so that code of the largest
// size that the engine takes gets through in JSON's escapes.
const maxMessage = 64 << 20

// Runner runs each request in a fresh sandbox.
type Runner interface {
	// Run is [tranca.Runner]'s. before and after are called with the sandbox's
	// files directly before the program starts and when it has ended; what it
	// left running may live meanwhile. Both are called at most once, and after
	// only if before was.
	Run(ctx context.Context, req tranca.Request, before, after func(context.Context, tranca.Files)) (*tranca.Result, error)
}

// Session is one sandbox that keeps its files in between. Once it has ended,
// for whatever reason, errors wrap [tranca.ErrGone] or [tranca.ErrClosed].
type Session interface {
	// Run runs one request, after those that came before.
	Run(ctx context.Context, req tranca.Request) (*tranca.Result, error)
	Files() tranca.Files
	// Start starts a program that outlives the call.
	Start(ctx context.Context, command []string) (Process, error)
	// Process finds one by its id: "p1". Errors wrap [tranca.ErrNotFound], or
	// [tranca.ErrGone] where it ended so long ago that it is forgotten.
	Process(id string) (Process, error)
	// Close ends what runs in it and destroys it. Idempotent.
	Close(ctx context.Context) error
}

// Process is a program that outlives the call that started it.
type Process interface {
	Info() tranca.ProcessInfo
	Signal(ctx context.Context, sig tranca.Signal, group bool) error
	Wait(ctx context.Context) (tranca.Exit, error)
	// Output returns what it has written to its two streams from these offsets
	// on, at most so many bytes of each. Where there is nothing it waits for
	// something, or the program's end, until wait is done.
	Output(wait context.Context, stdoutFrom, stderrFrom int64, most int) (stdout, stderr Piece, err error)
}

// Piece is a stretch of an output stream.
type Piece struct {
	Data []byte
	// From is where it begins: later than asked where that is not kept any more.
	From int64
}

// Config is what a server is made from.
type Config struct {
	// Version is told to the client.
	Version string
	// Policy is in force, Narrow included, which goes with every request.
	Policy tranca.Policy
	Narrow tranca.Narrowing
	// Runner runs calls without a session, where the policy keeps no files.
	Runner Runner
	// OpenSession opens a session: one that the agent asks for, or the one
	// that calls without a session share where the policy keeps files. That
	// one is opened when the first call comes, and again when it is gone.
	OpenSession func(context.Context) (Session, error)
	// Logger takes one line for each call, and the SDK's warnings.
	Logger *slog.Logger
	// Report takes each error in full, for the operator.
	Report func(error)
}

// Server serves one client. Make it with New.
type Server struct {
	cfg      Config
	policy   tranca.Policy // narrowed
	server   *mcp.Server
	sessions *sessions

	// life ends when the server closes, and ends what runs.
	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	ended bool // no further call begins
	calls sync.WaitGroup
}

// New makes a server. The error wraps [tranca.ErrRefused] where Narrow asks
// for more than the policy gives.
func New(cfg Config) (*Server, error) {
	p, problems := policy.Narrow(cfg.Policy, cfg.Narrow)
	if len(problems) > 0 {
		return nil, &tranca.RefusalError{Problems: problems}
	}
	s := &Server{
		cfg: cfg, policy: p, sessions: newSessions(p.KeepFiles, cfg.OpenSession),
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.server = mcp.NewServer(
		&mcp.Implementation{Name: "tranca", Title: "tranca", Version: cfg.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       slog.New(warnings{cfg.Logger.Handler()}),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		},
	)
	s.addTools()
	return s, nil
}

const instructions = "What code that these tools run may do is in their descriptions: the operator decided it beforehand, and no argument changes it. For work that takes several steps on the same files, make a session and give it with each call."

// Serve speaks the protocol over in and out until in ends or ctx does, which
// also ends the runs that are under way: the client that closes its side has
// shut down. It returns when no run is left. The error is ctx's cause, or says that the
// connection broke.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serve(ctx, &mcp.IOTransport{
		Reader: &watched{in, s.end}, Writer: unclosed{out}, MaxLineLength: maxMessage,
	})
}

func (s *Server) serve(ctx context.Context, t mcp.Transport) error {
	// The SDK waits for calls that are under way before it lets go, so these
	// must end first.
	untie := context.AfterFunc(ctx, s.end)
	defer untie()
	// Nor can a client that has ended, but does not read what is still written
	// to it, keep its sandboxes.
	closed := make(chan error, 1)
	go func() {
		<-s.life.Done()
		s.drain()
		closed <- s.sessions.closeAll(ctx)
	}()
	err := s.server.Run(ctx, t)
	s.end()
	if lost := <-closed; lost != nil || ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), lost)
	}
	return err
}

// drain lets no call begin any more and waits for those that are under way.
func (s *Server) drain() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.calls.Wait()
}

// warnings is a handler that lets only warnings and errors through: the SDK
// reports each step of its life, which no operator asks for.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// begin ties a call to the server's life: whichever of client, caller and
// server goes first ends its run.
func (s *Server) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return s.life, func() {} // it is cancelled already
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	untie := context.AfterFunc(s.life, cancel)
	return ctx, func() {
		untie()
		cancel()
		s.calls.Done()
	}
}

// watched tells when its reader has ended, which the SDK keeps to itself until
// the last call is answered.
type watched struct {
	io.Reader
	ended func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil {
		w.ended()
	}
	return n, err
}

func (w *watched) Close() error { return nil }

// unclosed keeps standard output open for whoever else owns it.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
