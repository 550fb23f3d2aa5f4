package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"tranca"
	"tranca/bench/served"
	"tranca/client"
	"tranca/internal/bench/sample"
	"tranca/internal/hoststate"
)

// serving is a server in a process of its own, and a client of it.
type serving struct {
	*client.Client
	process *served.Server
}

// server measures the way through the socket.
func (o *options) server(ctx context.Context, rep *report) (err error) {
	dir, err := os.MkdirTemp("", "tranca-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	process, err := served.Start(ctx, o.tranca, filepath.Join(dir, "tranca.sock"), "--max-sandboxes", "80")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	c, err := process.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	s := &serving{c, process}
	for _, measure := range []func(context.Context, *report) error{
		func(ctx context.Context, rep *report) error { return o.secondCommand(ctx, rep, s) },
		func(ctx context.Context, rep *report) error { return o.manySandboxes(ctx, rep, s) },
		func(ctx context.Context, rep *report) error { return o.idleServer(ctx, rep, s) },
		func(ctx context.Context, rep *report) error { return o.streamed(ctx, rep, s, dir) },
		func(ctx context.Context, rep *report) error { return o.finishedRuns(ctx, rep, s) },
	} {
		if err := measure(ctx, rep); err != nil {
			return err
		}
	}
	return nil
}

// secondCommand times a command in a sandbox that lives, beside the command
// itself.
func (o *options) secondCommand(ctx context.Context, rep *report, s *serving) error {
	sb, err := s.Create(ctx, tranca.CreateRequest{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Close(context.WithoutCancel(ctx)) }()
	const outside, inside = "echo 42, outside", "echo 42, second command through the socket"
	times, err := sample.Interleave(ctx, []sample.Subject{
		{Name: outside, Do: runs("/bin/echo", "42")},
		{Name: inside, Do: func(ctx context.Context) error {
			r, err := sb.Run(ctx, tranca.Request{Command: []string{"/bin/echo", "42"}})
			if err != nil {
				return err
			}
			return checkAnswer(r)
		}},
	}, o.warm, o.rounds, o.seed)
	if err != nil {
		return err
	}
	rep.Times[outside], rep.Times[inside] = times[outside], times[inside]
	rep.Rows = append(rep.Rows,
		row{Part: "server", Name: outside, Figure: quantiles(times[outside])},
		row{
			Part: "server", Name: inside, Figure: quantiles(times[inside]),
			Value:  ms(times[inside].Percentile(50)) - ms(times[outside].Percentile(50)),
			Target: 3, Unit: "ms more",
		})
	return nil
}

// manySandboxes makes 64 at once and runs a command in each. An error ends it.
func (o *options) manySandboxes(ctx context.Context, rep *report, s *serving) error {
	const many = 64
	start := time.Now()
	errs := make([]error, many)
	ran := make(chan struct{})
	var ready, all sync.WaitGroup
	ready.Add(many)
	for i := range many {
		all.Go(func() {
			sb, err := s.Create(ctx, tranca.CreateRequest{})
			ready.Done()
			if err != nil {
				errs[i] = err
				return
			}
			<-ran // all of them live before the first one runs anything
			r, err := sb.Run(ctx, tranca.Request{Code: code})
			if err == nil {
				err = checkAnswer(r)
			}
			errs[i] = errors.Join(err, sb.Close(context.WithoutCancel(ctx)))
		})
	}
	ready.Wait()
	made := time.Since(start)
	close(ran)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	rep.Rows = append(rep.Rows, row{
		Part: "server", Name: "64 sandboxes at once, one command each",
		Figure: fmt.Sprintf("made in %.1f s, all in %.1f s, no error", made.Seconds(), time.Since(start).Seconds()),
	})
	return nil
}

// idleServer compares the server's own memory with and without idle sandboxes.
func (o *options) idleServer(ctx context.Context, rep *report, s *serving) error {
	before, err := s.memory(ctx)
	if err != nil {
		return err
	}
	var boxes []*client.Sandbox
	defer func() {
		for _, sb := range boxes {
			_ = sb.Close(context.WithoutCancel(ctx))
		}
	}()
	for range o.idle {
		sb, err := s.Create(ctx, tranca.CreateRequest{})
		if err != nil {
			return err
		}
		boxes = append(boxes, sb)
	}
	now, err := s.memory(ctx)
	if err != nil {
		return err
	}
	rep.Rows = append(rep.Rows, row{
		Part: "server", Name: fmt.Sprintf("server, for each of %d idle sandboxes", o.idle),
		Figure: fmt.Sprintf("%.1f MiB, before %.1f", mib(now), mib(before)),
		Value:  mib(now-before) / float64(o.idle), Target: 1, Unit: "MiB Private_Dirty",
	})
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// memory returns the lowest of what the server holds within some seconds: what
// waits to be collected isn't held.
func (s *serving) memory(ctx context.Context) (int64, error) {
	least := int64(1) << 62
	for range 10 {
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return 0, err
		}
		n, err := hoststate.PrivateDirty(s.process.PID())
		if err != nil {
			return 0, err
		}
		least = min(least, n)
	}
	return least, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finishedRuns looks at the server's memory before and after many runs.
func (o *options) finishedRuns(ctx context.Context, rep *report, s *serving) error {
	many := func(n int) error {
		_, err := together(ctx, 16, n/16, func(ctx context.Context) error {
			r, err := s.Run(ctx, tranca.Request{Command: []string{"/bin/echo", "42"}})
			if err != nil {
				return err
			}
			return checkAnswer(r)
		})
		return err
	}
	if err := many(o.finished / 10); err != nil {
		return err
	}
	before, err := s.memory(ctx)
	if err != nil {
		return err
	}
	if err := many(o.finished); err != nil {
		return err
	}
	now, err := s.memory(ctx)
	if err != nil {
		return err
	}
	rep.Rows = append(rep.Rows, row{
		Part: "server", Name: fmt.Sprintf("server after %d more runs", o.finished),
		Figure: fmt.Sprintf("%.1f MiB, before %.1f", mib(now), mib(before)),
		Value:  float64(now) / float64(before), Target: 1.1, Unit: "x before",
	})
	return nil
}

// streamed sends a gibibyte of a program's output through API and client,
// beside a plain copy by net/http over a unix socket from another process.
func (o *options) streamed(ctx context.Context, rep *report, s *serving, dir string) error {
	plain, stop, err := startPlain(ctx, filepath.Join(dir, "plain.sock"))
	if err != nil {
		return err
	}
	defer stop()
	sb, err := s.Create(ctx, tranca.CreateRequest{})
	if err != nil {
		return err
	}
	defer func() { _ = sb.Close(context.WithoutCancel(ctx)) }()
	const copied, through = "net/http over a unix socket, 1 GiB", "program to client through the API, 1 GiB"
	times, err := sample.Interleave(ctx, []sample.Subject{
		{Name: copied, Do: func(ctx context.Context) error { return fetch(ctx, plain) }},
		{Name: through, Do: func(ctx context.Context) error { return follow(ctx, sb) }},
	}, 1, 5, o.seed)
	if err != nil {
		return err
	}
	rep.addRates("server", "net/http", copied, through, times, 0.5)
	return nil
}

func follow(ctx context.Context, sb *client.Sandbox) error {
	p, err := sb.Start(ctx, tranca.StartRequest{Args: []string{"head", "-c", fmt.Sprint(streamBytes), "/dev/zero"}})
	if err != nil {
		return err
	}
	f := p.Follow(client.FollowOptions{})
	defer f.Close()
	var n int64
	for {
		chunk, err := f.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		n += int64(len(chunk.Data))
	}
	if n != streamBytes {
		return fmt.Errorf("%d bytes came, want %d", n, streamBytes)
	}
	return nil
}

// plainServer serves a gibibyte of zeros at a unix socket until its standard
// input ends. It is this program's other mode.
func plainServer(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Close()
	}()
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		zeros := make([]byte, 256<<10)
		for range streamBytes / len(zeros) {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}))
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func startPlain(ctx context.Context, socket string) (*http.Client, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-plain", socket)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop := func() { _ = in.Close(); _ = cmd.Wait() }
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			stop()
			return nil, nil, errors.New("the plain server does not listen")
		}
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}, stop, nil
}

func fetch(ctx context.Context, c *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://plain/", nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && n != streamBytes {
		err = fmt.Errorf("%d bytes came, want %d", n, streamBytes)
	}
	return err
}

// together calls do from several goroutines, each times over, and returns how
// long it took until the last was through.
func together(ctx context.Context, callers, each int, do func(context.Context) error) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make([]error, callers)
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			for range each {
				if errs[i] = do(ctx); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}
