package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"time"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/engine"
)

// wholeInput bounds the input that is written by one call, and so never mixed
// with another's.
const wholeInput = 1 << 20

func listProcesses(c *call) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	out := api.ProcessList{Processes: s.Processes(c.query.text("tag"))}
	if out.Processes == nil {
		out.Processes = []tranca.ProcessInfo{}
	}
	return c.json(http.StatusOK, out)
}

func startProcess(c *call) error {
	var in api.StartRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	wall, err := api.Duration("wall_ms", in.WallMS)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if c.s.cfg.LogCode {
		c.attrs = append(c.attrs, slog.Any("args", in.Args))
	}
	p, err := s.Start(c.ctx(), tranca.StartRequest{
		Args: in.Args, Env: in.Env, Dir: in.Dir, Tag: in.Tag,
		Terminal: in.Terminal, Stdin: in.Stdin, Wall: wall,
	})
	if err != nil {
		return err
	}
	info := p.Info()
	c.w.Header().Set("Location", "/v1/sandboxes/"+string(c.sandbox)+"/processes/"+string(info.ID))
	return c.json(http.StatusCreated, info)
}

// process finds the program that the path names.
func (c *call) process() (*engine.Process, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	return s.Process(c.r.PathValue("process"))
}

func getProcess(c *call) error {
	p, err := c.process()
	if err != nil {
		return err
	}
	if wait := time.Duration(c.query.number("wait_ms")) * time.Millisecond; wait > 0 {
		if err := waitProcess(c, p, wait); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, p.Info())
}

// waitProcess waits for the end of a program, but no longer than that.
func waitProcess(c *call, p *engine.Process, wait time.Duration) error {
	ctx, cancel := c.until()
	defer cancel()
	limited, stop := context.WithTimeout(ctx, wait)
	defer stop()
	if _, err := p.Wait(limited); err != nil && limited.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

func followOutput(c *call) error {
	p, err := c.process()
	if err != nil {
		return err
	}
	ctx, cancel := c.until()
	defer cancel()
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	info := p.Info()
	at := [2]int64{c.query.number("stdout_from"), c.query.number("stderr_from")}
	f := p.Follow(engine.FollowOptions{StdoutFrom: at[0], StderrFrom: at[1], Headroom: api.OutputHeadroom})
	defer f.Close()
	following := c.query.flag("follow")
	st := c.follow(following, func() { gone(errClientGone) })
	if err := st.Event(api.Event{Type: api.EventProcess, Process: &info}); err != nil {
		return st.end(nil)
	}
	last := [2]int64{info.Stdout.Written, info.Stderr.Written}
	if following {
		last = [2]int64{math.MaxInt64, math.MaxInt64}
	}
	err = copyOutput(ctx, st, f, at, last)
	if errors.Is(err, io.EOF) {
		err = endOutput(ctx, st, p)
	}
	return st.end(err)
}

// copyOutput tells output until both streams have come as far as last. The
// error is [io.EOF] when the program has ended.
func copyOutput(ctx context.Context, st *stream, f *engine.Follower, at, last [2]int64) error {
	for at[0] < last[0] || at[1] < last[1] {
		chunk, err := f.Next(ctx)
		if err != nil {
			return err
		}
		which, name := 0, "stdout"
		if chunk.Stderr {
			which, name = 1, "stderr"
		}
		if chunk.Dropped > 0 {
			err = st.Event(api.Event{Type: api.EventDropped, Stream: name, Bytes: chunk.Dropped})
		}
		if err == nil && len(chunk.Data) > 0 {
			err = st.HeadedOutput(chunk.Stderr, chunk.Headed, chunk.More)
		}
		if err != nil {
			return errClientGone
		}
		at[which] = chunk.Offset + int64(len(chunk.Data))
	}
	return nil
}

// endOutput tells how the program ended.
func endOutput(ctx context.Context, st *stream, p *engine.Process) error {
	if _, err := p.Wait(ctx); err != nil {
		return err
	}
	info := p.Info()
	_ = st.Event(api.Event{Type: api.EventExit, Process: &info})
	return nil
}

func writeStdin(c *call) error {
	p, err := c.process()
	if err != nil {
		return err
	}
	out, err := copyInput(c, p)
	if err != nil {
		return err
	}
	if c.query.flag("close") {
		if err := p.CloseStdin(c.ctx()); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, out)
}

// copyInput writes the body to a program: whole where it is small, else piece
// by piece.
func copyInput(c *call, p *engine.Process) (api.InputAnswer, error) {
	var out api.InputAnswer
	if c.body.length >= 0 && c.body.length <= wholeInput {
		c.body.remember()
		b, err := io.ReadAll(c.body)
		if err != nil || len(b) == 0 {
			return out, err
		}
		out.Written = int64(len(b))
		return out, p.Write(c.ctx(), b)
	}
	c.body.wait()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := c.body.Read(buf[:])
		if n > 0 {
			if err := p.Write(c.ctx(), buf[:n]); err != nil {
				return out, err
			}
			out.Written += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

func signalProcess(c *call) error {
	var in api.SignalRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Signal < 1 || in.Signal > 64 {
		return fmt.Errorf("%w: signal is %d: want 1 to 64", tranca.ErrInvalid, in.Signal)
	}
	p, err := c.process()
	if err != nil {
		return err
	}
	if err := p.Signal(c.ctx(), tranca.Signal(in.Signal), in.Group); err != nil {
		return err
	}
	return c.none()
}

func resizeTerminal(c *call) error {
	var in tranca.TerminalSize
	if err := c.decode(&in); err != nil {
		return err
	}
	if in.Rows == 0 || in.Columns == 0 {
		return fmt.Errorf("%w: a terminal of %d rows and %d columns: each is 1 to 65535", tranca.ErrInvalid, in.Rows, in.Columns)
	}
	p, err := c.process()
	if err != nil {
		return err
	}
	if err := p.Resize(c.ctx(), in); err != nil {
		return err
	}
	return c.none()
}
