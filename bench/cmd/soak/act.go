package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"

	"tranca"
	"tranca/client"
)

// act does one thing as a client of its own, and may give up in the midst of
// it. Its error is something that must not be.
func (l *life) act(ctx context.Context, rnd *rand.Rand) error {
	whole := ctx
	cutShort := rnd.IntN(4) == 0
	if cutShort {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+rnd.IntN(300))*time.Millisecond)
		defer cancel()
	}
	acts := []struct {
		name string
		do   func(context.Context, *client.Client, *rand.Rand) error
	}{
		{"run", l.oneRun}, {"run", l.oneRun}, {"session", l.session}, {"session", l.session},
		{"abandoned session", l.abandon}, {"output", l.follow}, {"files", l.files},
		{"port", l.port}, {"terminal", l.terminal}, {"killed client", l.killedClient},
	}
	a := acts[rnd.IntN(len(acts))]
	c, err := l.server.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	err = a.do(ctx, c, rnd)
	switch {
	case err == nil:
		l.seen.end(a.name)
		return nil
	case ctx.Err() != nil || whole.Err() != nil:
		l.seen.end("given up")
		return nil
	case l.excused(err):
		l.seen.fail(err)
		return nil
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// excused reports whether an error is what somebody hears whose sandbox or
// server was killed, or who came when there was no room.
func (l *life) excused(err error) bool {
	l.mu.Lock()
	ending := l.ending
	l.mu.Unlock()
	if ending {
		return true
	}
	if errors.Is(err, tranca.ErrUnavailable) && strings.Contains(err.Error(), "the guest agent died") {
		return l.seen.diedBooting() // as many as were killed, and no more
	}
	for _, class := range []error{tranca.ErrGone, tranca.ErrClosed, tranca.ErrBusy, tranca.ErrProtocol, errDisturbed} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// errDisturbed is a result that says by itself that the sandbox failed.
var errDisturbed = errors.New("the sandbox was killed")

// check judges a result.
func check(res *tranca.Result, err error, want string) error {
	switch {
	case err != nil:
		return err
	case res.Exit.Reason == tranca.EndError || res.Exit.Reason == tranca.EndClosed:
		return errDisturbed
	case res.Exit.Reason == tranca.EndSignaled && res.Exit.Signal == tranca.SIGKILL:
		return errDisturbed // its agent was killed, and so was it
	case !res.Exit.Success() || string(res.Stdout) != want:
		return fmt.Errorf("ended %s with %.200q, want %.200q; stderr %.200q", res.Exit, res.Stdout, want, res.Stderr)
	}
	return nil
}

func (l *life) oneRun(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	n := rnd.IntN(1 << 20)
	res, err := c.Run(ctx, tranca.Request{Code: fmt.Sprintf("print(%d*2)", n)})
	return check(res, err, fmt.Sprintln(n*2))
}

// within makes a sandbox for what is done in it.
func within(ctx context.Context, c *client.Client, do func(*client.Sandbox) error) error {
	sb, err := c.Create(ctx, tranca.CreateRequest{TTL: time.Minute, IdleTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	err = do(sb)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, sb.Close(closing))
}

func (l *life) session(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	return within(ctx, c, func(sb *client.Sandbox) error {
		total := 0
		for range 1 + rnd.IntN(4) {
			n := rnd.IntN(1000)
			total += n
			code := fmt.Sprintf("import os\nn = %d + (int(open('n').read()) if os.path.exists('n') else 0)\nopen('n', 'w').write(str(n))\nprint(n)", n)
			res, err := sb.Run(ctx, tranca.Request{Code: code})
			if err := check(res, err, fmt.Sprintln(total)); err != nil {
				return err
			}
		}
		return nil
	})
}

// abandon leaves a sandbox and a program in it to their timeouts.
func (l *life) abandon(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	ttl := time.Duration(500+rnd.IntN(2000)) * time.Millisecond
	sb, err := c.Create(ctx, tranca.CreateRequest{TTL: ttl})
	if err != nil {
		return err
	}
	_, err = sb.Start(ctx, tranca.StartRequest{Args: []string{"sleep", "600"}})
	return err
}

func (l *life) follow(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	return within(ctx, c, func(sb *client.Sandbox) error {
		lines := 100 + rnd.IntN(20000)
		p, err := sb.Start(ctx, tranca.StartRequest{Args: []string{"python3", "-c", fmt.Sprintf("for i in range(%d): print(i)", lines)}})
		if err != nil {
			return err
		}
		var want, got bytes.Buffer
		for i := range lines {
			fmt.Fprintln(&want, i)
		}
		f := p.Follow(client.FollowOptions{})
		defer f.Close()
		for {
			chunk, err := f.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if chunk.Dropped > 0 {
				return fmt.Errorf("%d bytes of output were dropped for a reader that reads", chunk.Dropped)
			}
			got.Write(chunk.Data)
		}
		exit, err := p.Wait(ctx)
		switch {
		case err != nil:
			return err
		case exit.Reason == tranca.EndError || exit.Reason == tranca.EndClosed || exit.Signal == tranca.SIGKILL:
			return errDisturbed
		case !exit.Success() || !bytes.Equal(got.Bytes(), want.Bytes()):
			return fmt.Errorf("ended %s with %d bytes of output, want %d", exit, got.Len(), want.Len())
		}
		return nil
	})
}

func (l *life) files(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	return within(ctx, c, func(sb *client.Sandbox) error {
		data := bytes.Repeat([]byte{byte(rnd.IntN(256))}, rnd.IntN(4<<20))
		files := sb.Files()
		if _, err := files.Write(ctx, "f", bytes.NewReader(data), 0o644); err != nil {
			return err
		}
		r, err := files.Read(ctx, "f", 0)
		if err != nil {
			return err
		}
		defer r.Close()
		got, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, data) {
			return fmt.Errorf("a file of %d bytes came back with %d", len(data), len(got))
		}
		return files.Remove(ctx, "f")
	})
}

const echoServer = `
import socket
s = socket.create_server(("127.0.0.1", 8000))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    while data := c.recv(65536): c.sendall(data)
    c.close()
`

func (l *life) port(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	return within(ctx, c, func(sb *client.Sandbox) error {
		p, err := sb.Start(ctx, tranca.StartRequest{Args: []string{"python3", "-c", echoServer}})
		if err != nil {
			return err
		}
		f := p.Follow(client.FollowOptions{})
		defer f.Close()
		if _, err := f.Next(ctx); err != nil {
			if err == io.EOF {
				return errDisturbed
			}
			return err
		}
		conn, err := sb.Dial(ctx, 8000)
		if err != nil {
			return err
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		text := strings.Repeat("x", 1+rnd.IntN(100000))
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(conn, text)
			sent <- errors.Join(err, conn.CloseWrite())
		}()
		got, err := io.ReadAll(conn)
		if err := errors.Join(err, <-sent); err != nil {
			return fmt.Errorf("%w: %w", errDisturbed, err)
		}
		if string(got) != text {
			return fmt.Errorf("%d bytes came back of %d: %w", len(got), len(text), l.gone(ctx, sb))
		}
		return nil
	})
}

// gone returns [errDisturbed] where a sandbox is no more.
func (l *life) gone(ctx context.Context, sb *client.Sandbox) error {
	if _, err := sb.Run(ctx, tranca.Request{Command: []string{"true"}}); err != nil {
		return fmt.Errorf("%w: %w", errDisturbed, err)
	}
	return errors.New("the sandbox lives")
}

func (l *life) terminal(ctx context.Context, c *client.Client, rnd *rand.Rand) error {
	return within(ctx, c, func(sb *client.Sandbox) error {
		p, err := sb.Start(ctx, tranca.StartRequest{Args: []string{"sh"}, Terminal: &tranca.TerminalSize{Rows: 24, Columns: 80}})
		if err != nil {
			return err
		}
		size := tranca.TerminalSize{Rows: uint16(1 + rnd.IntN(200)), Columns: uint16(20 + rnd.IntN(200))}
		if err := p.Resize(ctx, size); err != nil {
			return err
		}
		if err := p.Write(ctx, []byte("stty size; exit 7\n")); err != nil {
			return err
		}
		exit, err := p.Wait(ctx)
		if err != nil {
			return err
		}
		if exit.Reason == tranca.EndError || exit.Reason == tranca.EndClosed || exit.Signal == tranca.SIGKILL {
			return errDisturbed
		}
		out, err := p.Output(ctx)
		if err != nil {
			return err
		}
		want := fmt.Sprintf("%d %d\r\n", size.Rows, size.Columns)
		if exit.Code != 7 || !bytes.Contains(out.Stdout, []byte(want)) {
			return fmt.Errorf("ended %s with %q, want %q", exit, out.Stdout, want)
		}
		return nil
	})
}

// killedClient is a process that is killed with -9 in the midst of a run.
func (l *life) killedClient(ctx context.Context, _ *client.Client, rnd *rand.Rand) error {
	cmd := exec.Command(l.program, "run", "--server", l.socket, "-c", "import time\nwhile True: print('x' * 1000); time.sleep(0.01)")
	if err := cmd.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rnd.IntN(500)) * time.Millisecond):
	}
	err := cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return err
}
