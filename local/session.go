package local

import (
	"context"

	"tranca"
	"tranca/internal/engine"
)

// Session is one sandbox that lives: for several runs, which find the files of
// those before them, and for programs that outlive the call which started them.
// Close it. Safe for concurrent use.
//
// Runs wait for each other. The policy's ceilings (memory, CPU time, processes,
// disk) hold over all programs of the session together, and one that ends
// programs ends all of them; wall clock and output are each program's own.
// Once its sandbox is no more, every method fails with [tranca.ErrGone] and the
// reason; it is never replaced by another one.
type Session interface {
	// Run runs one request and returns when it has ended and what it left
	// running was killed: everything in the sandbox, where nothing that Start
	// started still runs, and else its process group.
	tranca.Runner
	ID() tranca.ID
	// Info returns what is known of the session.
	Info() tranca.SandboxInfo
	// SetEnv changes the environment of programs that are started later. A name
	// that the policy sets is [tranca.ErrRefused].
	SetEnv(set map[string]string, unset []string) error
	// Start starts a program that lives until it ends, its wall clock runs out,
	// or the session is closed. ctx bounds the start only. Errors wrap
	// [tranca.ErrNotFound], [tranca.ErrInvalid], [tranca.ErrRefused],
	// [tranca.ErrBusy] (64 programs run), [tranca.ErrUnsupported] (a terminal)
	// or [tranca.ErrGone].
	Start(ctx context.Context, r tranca.StartRequest) (Process, error)
	// Process finds a program: "p3" by its id, "412" by the pid of one that
	// runs, "tag=web" as the oldest that runs with that tag. Errors wrap
	// [tranca.ErrNotFound] or [tranca.ErrGone].
	Process(selector string) (Process, error)
	// Processes returns those that run and the last 64 that have ended, oldest
	// first; with a tag, only those that have it.
	Processes(tag string) []tranca.ProcessInfo
	// Files serves the sandbox's files; see [tranca.Files] and, with
	// [tranca.As], its optional abilities.
	Files() tranca.Files
	// Dial connects to a port that a program in the sandbox listens on, as
	// [tranca.PortDialer] does; [tranca.ErrUnsupported] where the backend can't.
	Dial(ctx context.Context, port int) (tranca.PortConn, error)
	// Close ends what runs and destroys the sandbox. Idempotent. It takes its
	// own time, whatever ctx says: nothing may stay behind.
	Close(ctx context.Context) error
}

// Process is a program that was started in a session. The last bytes that it
// wrote, as many as the policy's output limit, are kept, so that anybody can
// read them later or again. Safe for concurrent use.
type Process interface {
	Info() tranca.ProcessInfo
	// Signal sends a signal to the program, or to its process group.
	// [tranca.ErrGone] if it has ended.
	Signal(ctx context.Context, sig tranca.Signal, group bool) error
	// Resize changes the size of its terminal; [tranca.ErrUnsupported] if it has
	// none.
	Resize(ctx context.Context, size tranca.TerminalSize) error
	// Write writes to its standard input and returns when all of it was taken.
	// Two writes are never mixed. Errors wrap [tranca.ErrInvalid] (its input is
	// empty), [tranca.ErrClosed] after CloseStdin, or [tranca.ErrGone].
	Write(ctx context.Context, b []byte) error
	// CloseStdin ends its input. Idempotent.
	CloseStdin(ctx context.Context) error
	// Wait returns how it ended, after all its output.
	Wait(ctx context.Context) (tranca.Exit, error)
	// Follow reads its output, from these offsets on. Any number may follow.
	// Close the follower.
	Follow(stdoutFrom, stderrFrom int64) Follower
}

// Follower reads the output of a process. One goroutine uses it at a time.
type Follower interface {
	// Next returns the next piece of output, in the order it came within each
	// stream; the error is io.EOF after the end and all output. The program
	// waits for one who calls Next in time; who takes nothing for 10 s is left
	// behind, and told what he missed.
	Next(ctx context.Context) (Chunk, error)
	Close()
}

// Chunk is a piece of one output stream.
type Chunk struct {
	Stderr bool
	// Data is valid until the next call of Next. It may be empty where only
	// Dropped is told.
	Data []byte
	// Offset is that of Data's first byte in its stream.
	Offset int64
	// Dropped says that so many bytes before Data are not kept any more.
	Dropped int64
}

// Open makes a sandbox that lives until it is closed; n narrows the policy for
// all that runs in it. It waits in line where bounds are reached.
func (l *Local) Open(ctx context.Context, n tranca.Narrowing) (Session, error) {
	s, err := l.engine.Open(ctx, tranca.CreateRequest{Narrow: n})
	if err != nil {
		return nil, err
	}
	return session{s}, nil
}

// session, process and follower give the engine's types their public form.
type session struct{ *engine.Session }

func (s session) Start(ctx context.Context, r tranca.StartRequest) (Process, error) {
	return wrap(s.Session.Start(ctx, r))
}

func (s session) Process(selector string) (Process, error) {
	return wrap(s.Session.Process(selector))
}

func wrap(p *engine.Process, err error) (Process, error) {
	if err != nil {
		return nil, err
	}
	return process{p}, nil
}

type process struct{ *engine.Process }

func (p process) Follow(stdoutFrom, stderrFrom int64) Follower {
	return follower{p.Process.Follow(engine.FollowOptions{StdoutFrom: stdoutFrom, StderrFrom: stderrFrom})}
}

type follower struct{ *engine.Follower }

func (f follower) Next(ctx context.Context) (Chunk, error) {
	c, err := f.Follower.Next(ctx)
	return Chunk{Stderr: c.Stderr, Data: c.Data, Offset: c.Offset, Dropped: c.Dropped}, err
}
