package host

import (
	"context"
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/guest/message"
)

// maxPID is Linux's bound (PID_MAX_LIMIT).
const maxPID = 1 << 22

// Start starts a program. One runs at a time: counters and limits are those of
// the machine, so two programs could not be told apart.
func (sb *sandbox) Start(ctx context.Context, cmd tranca.Command) (tranca.Process, error) {
	req, err := request(cmd)
	if err != nil {
		return nil, err
	}
	p := newProcess(sb, cmd)
	if err := sb.claim(ctx, p); err != nil {
		return nil, err
	}
	err = sb.begin(ctx)
	if err == nil {
		err = p.start(ctx, req)
	}
	if err != nil {
		sb.release(p, 0)
		close(p.done) // of a Kill that came meanwhile
		return nil, err
	}
	if sb.wasKilled(p) {
		// The Kill may have come before there was anything to kill. If this one
		// fails too, the next will find the program.
		_ = sb.killPrograms(ctx)
	}
	return p, nil
}

// request checks a command and makes its message.
func request(cmd tranca.Command) ([]byte, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, fmt.Errorf("%w: a command without a program", tranca.ErrInvalid)
	}
	if len(cmd.Args)-1 > message.MaxArgs || len(cmd.Env) > message.MaxEnvs {
		return nil, fmt.Errorf("%w: a command with %d arguments and %d variables; at most %d and %d",
			tranca.ErrInvalid, len(cmd.Args)-1, len(cmd.Env), message.MaxArgs, message.MaxEnvs)
	}
	for i, arg := range cmd.Args {
		if err := checkString(fmt.Sprintf("argument %d", i), arg); err != nil {
			return nil, err
		}
	}
	for name, value := range cmd.Env {
		if name == "" || strings.Contains(name, "=") {
			return nil, fmt.Errorf("%w: environment variable %.40q: an empty name, or a '=' in it", tranca.ErrInvalid, name)
		}
		if err := checkString(fmt.Sprintf("environment variable %.40q", name), name+"="+value); err != nil {
			return nil, err
		}
	}
	if cmd.Dir != "" {
		if err := checkPath(cmd.Dir); err != nil {
			return nil, err
		}
	}
	req := message.StartRequest{
		Process: message.ProcessConfig{Cmd: cmd.Args[0], Args: cmd.Args[1:], Envs: cmd.Env, Cwd: cmd.Dir},
		NoStdin: cmd.Stdin == nil,
	}
	if len(cmd.Args[0]) > message.MaxPath {
		return nil, fmt.Errorf("%w: the program's name is longer than %d bytes", tranca.ErrInvalid, message.MaxPath)
	}
	b := req.Append(nil)
	if len(b) > message.MaxStart {
		return nil, fmt.Errorf("%w: arguments and environment take %d bytes; at most %d: give long input by stdin or a file",
			tranca.ErrInvalid, len(b), message.MaxStart)
	}
	return b, nil
}

func checkString(what, s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("%w: %s holds a NUL at byte %d", tranca.ErrInvalid, what, i)
	}
	if len(s) >= message.MaxString {
		return fmt.Errorf("%w: %s is %d bytes long; less than %d fit: give long input by stdin or a file",
			tranca.ErrInvalid, what, len(s), message.MaxString)
	}
	return nil
}

// claim makes p the sandbox's program.
func (sb *sandbox) claim(ctx context.Context, p *process) error {
	if err := sb.sess.Err(); err != nil {
		return sb.explain(ctx, err)
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return fmt.Errorf("%w: the sandbox", tranca.ErrClosed)
	}
	if sb.running != nil {
		return fmt.Errorf("%w: the sandbox is running a program, and runs one at a time: wait for its end or kill it",
			tranca.ErrBusy)
	}
	sb.running = p
	sb.fileTooBig = false
	return nil
}

// release makes the sandbox idle again after p, which a signal has ended, or 0.
func (sb *sandbox) release(p *process, sig tranca.Signal) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.running == p {
		sb.running = nil
		sb.fileTooBig = sig == tranca.SIGXFSZ
	}
}

// begin resets the machine's counters.
func (sb *sandbox) begin(ctx context.Context) error {
	select {
	case <-sb.m.Limit(): // of the program before
	default:
	}
	if err := sb.m.Begin(ctx); err != nil {
		return fmt.Errorf("preparing the sandbox for a program: %w", err)
	}
	return nil
}

// start asks the guest for the program and takes the first event.
func (p *process) start(ctx context.Context, req []byte) error {
	sb := p.sb
	wait, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	call, err := sb.sess.Open(wait, message.MethodStart, 2, req, p.cmd.Stdin == nil)
	if err != nil {
		return sb.explain(wait, err)
	}
	var first message.StartResponse
	err = sb.answer(wait, call.Stream, &first)
	switch {
	case err == nil && first.Event.Start != nil && first.Event.Start.PID > 0 && first.Event.Start.PID <= maxPID:
		p.pid = int(first.Event.Start.PID)
		p.call = call
		p.run()
		return nil
	case err == nil || isEOF(err):
		err = sb.breach("a program that did not begin with its start")
	case wait.Err() != nil:
		err = p.startUnanswered(ctx, err)
	}
	call.Close()
	return err
}

// startUnanswered cleans up after a start of which it isn't known whether it
// happened: nothing of it may stay alive.
func (p *process) startUnanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return p.sb.breach("no answer to a start in " + answerTimeout.String())
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if kerr := p.sb.killPrograms(kill); kerr != nil {
		// What can't be killed can't be used again either.
		p.sb.sess.Fail(fmt.Errorf("%w: a start was given up and can't be killed: %w", tranca.ErrGone, kerr))
	}
	return err
}
