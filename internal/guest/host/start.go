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

// Start starts a program, beside those that run. The machine begins anew where
// none does. While programs are being killed it waits for their end.
func (sb *sandbox) Start(ctx context.Context, cmd tranca.Command) (tranca.Process, error) {
	req, err := request(cmd)
	if err != nil {
		return nil, err
	}
	p := newProcess(sb, cmd)
	first, err := sb.claim(ctx, p)
	if err != nil {
		return nil, err
	}
	if first {
		err = sb.begin(ctx)
	}
	if err == nil {
		err = p.start(ctx, req)
	}
	if err != nil {
		sb.release(p)
		close(p.done) // of a Kill that came meanwhile
		return nil, err
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
	pty, err := terminal(cmd.Terminal)
	if err != nil {
		return nil, err
	}
	req := message.StartRequest{
		Process: message.ProcessConfig{Cmd: cmd.Args[0], Args: cmd.Args[1:], Envs: cmd.Env, Cwd: cmd.Dir},
		PTY:     pty,
		NoStdin: cmd.Stdin == nil, EndGroup: cmd.EndGroup,
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
// happened: nothing of it may stay alive. Where others run beside it, it is the
// agent that kills it, since its call is given up.
func (p *process) startUnanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return p.sb.breach("no answer to a start in " + answerTimeout.String())
	}
	if !p.sb.condemnAlone(p) {
		return err
	}
	defer p.sb.pardon()
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if kerr := p.sb.killPrograms(kill); kerr != nil {
		// What can't be killed can't be used again either.
		p.sb.sess.Fail(fmt.Errorf("%w: a start was given up and can't be killed: %w", tranca.ErrGone, kerr))
	}
	return err
}
