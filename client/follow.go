package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"tranca"
	"tranca/internal/api"
)

// FollowOptions say where a follower begins, in bytes from the beginning of
// each stream.
type FollowOptions struct {
	StdoutFrom, StderrFrom int64
}

// Chunk is a piece of one output stream.
type Chunk struct {
	Stderr bool
	// Data is valid until the next call of Next. It is empty where only Dropped
	// is told.
	Data []byte
	// Offset is that of Data's first byte in its stream.
	Offset int64
	// Dropped says that so many bytes before Data are not kept any more.
	Dropped int64
}

// Follower reads the output of a process from some byte on. Close it. One
// goroutine uses it at a time.
type Follower struct {
	p      *Process
	cancel context.CancelCauseFunc
	once   sync.Once
	pieces chan piece
	spare  chan []byte
	done   chan struct{}
	held   []byte // is lent out, where lent is set
	lent   bool
	end    error
}

type piece struct {
	chunk Chunk
	buf   []byte
	err   error
}

// Follow reads the output from some byte on, also what was written before the
// call as far as it is kept. Any number of followers may read one process. One
// that reads in time loses nothing, because the program waits for it; one that
// takes nothing for long is told by Chunk.Dropped what it missed.
//
// A connection that breaks is made again, and reading goes on at the same byte.
func (p *Process) Follow(o FollowOptions) *Follower {
	f := &Follower{
		p: p, pieces: make(chan piece), spare: make(chan []byte, 3), done: make(chan struct{}),
	}
	for range cap(f.spare) - 1 {
		f.spare <- nil
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancelCause(context.Background())
	r := &reception{p: p, f: f, follow: true, at: [2]int64{o.StdoutFrom, o.StderrFrom}}
	go func() {
		defer close(f.done)
		r.run(ctx)
	}()
	return f
}

// Next returns the next piece of output, in the order it came within each
// stream. The error is [io.EOF] after the end of the process and all its
// output, that of ctx, after which Next may be called again, or wraps
// [tranca.ErrClosed] after Close, [tranca.ErrGone], or
// [tranca.ErrUnavailable] where the connection could not be made again.
func (f *Follower) Next(ctx context.Context) (Chunk, error) {
	if f.end != nil {
		return Chunk{}, f.end
	}
	if f.lent {
		f.spare <- f.held
		f.lent = false
	}
	select {
	case <-ctx.Done():
		return Chunk{}, context.Cause(ctx)
	case p := <-f.pieces:
		f.held, f.lent, f.end = p.buf, p.err == nil, p.err
		return p.chunk, p.err
	}
}

// Close ends it and lets the program go on without this reader. Idempotent.
func (f *Follower) Close() {
	f.once.Do(func() {
		f.cancel(fmt.Errorf("%w: the follower", tranca.ErrClosed))
		if f.end == nil {
			f.end = fmt.Errorf("%w: the follower", tranca.ErrClosed)
		}
		<-f.done
	})
}

// Output is what is kept of a program's output.
type Output struct {
	Stdout, Stderr []byte
	// StdoutDropped and StderrDropped are how many bytes before it are not kept
	// any more.
	StdoutDropped, StderrDropped int64
}

// Output returns what is kept of the output so far, without waiting for more.
func (p *Process) Output(ctx context.Context) (Output, error) {
	var o Output
	r := &reception{p: p, take: func(c Chunk) error {
		kept, dropped := &o.Stdout, &o.StdoutDropped
		if c.Stderr {
			kept, dropped = &o.Stderr, &o.StderrDropped
		}
		*kept = append(*kept, c.Data...)
		*dropped += c.Dropped
		if len(*kept) > maxOutput {
			return fmt.Errorf("%w: more than %d bytes of output are kept", tranca.ErrProtocol, maxOutput)
		}
		return nil
	}}
	if err := r.whole(ctx); err != io.EOF {
		return Output{}, err
	}
	return o, nil
}

// maxFrames is more than one piece of output ever has.
const maxFrames = 1 << 32

// reception takes the events of a process's output, over as many connections
// as it needs.
type reception struct {
	p      *Process
	f      *Follower
	take   func(Chunk) error
	follow bool
	at     [2]int64 // the offsets of stdout and stderr
	buf    []byte
}

// run hands everything to the follower, and the end as the last.
func (r *reception) run(ctx context.Context) {
	r.take = func(c Chunk) error {
		select {
		case r.f.pieces <- piece{chunk: c, buf: r.buf}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case r.buf = <-r.f.spare:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := r.whole(ctx)
	select {
	case r.f.pieces <- piece{err: err}:
	case <-ctx.Done():
	}
}

// whole returns [io.EOF] when all was taken. Connections that break are made
// again, until three in a row have brought nothing.
func (r *reception) whole(ctx context.Context) error {
	pause := firstPause
	for try := 1; ; try++ {
		before := r.at
		err := r.stream(ctx)
		if !passing(err) {
			return err
		}
		if r.at != before {
			try, pause = 1, firstPause
		}
		if try == maxTries {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 4
	}
}

// stream takes what one connection brings.
func (r *reception) stream(ctx context.Context) error {
	q := r.p.call(api.RouteOutput).again().with(
		"stdout_from", strconv.FormatInt(r.at[0], 10), "stderr_from", strconv.FormatInt(r.at[1], 10),
		"follow", strconv.FormatBool(r.follow),
	)
	q.accept = api.TypeFrames
	resp, err := r.p.s.c.send(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for {
		// The connection is buffered; one more buffer would only be a copy.
		ev, data, err := api.ReadFrame(resp.Body, &r.buf)
		switch {
		case err == io.EOF && !r.follow:
			return io.EOF
		case errors.Is(err, tranca.ErrProtocol):
			return err
		case err != nil:
			return r.p.s.c.broken(ctx, unexpected(err))
		}
		if err := r.event(ev, data); err != nil {
			return err
		}
	}
}

func (r *reception) event(ev api.Event, data []byte) error {
	switch ev.Type {
	case api.EventStdout, api.EventStderr:
		return r.output(Chunk{Stderr: ev.Type == api.EventStderr, Data: data})
	case api.EventDropped:
		if ev.Bytes <= 0 || ev.Stream != "stdout" && ev.Stream != "stderr" {
			return fmt.Errorf("%w: %d bytes of %q were dropped", tranca.ErrProtocol, ev.Bytes, ev.Stream)
		}
		return r.output(Chunk{Stderr: ev.Stream == "stderr", Dropped: ev.Bytes})
	case api.EventProcess, api.EventExit:
		if ev.Process == nil || ev.Type == api.EventExit && ev.Process.Exit == nil {
			return fmt.Errorf("%w: an event %s without what it tells", tranca.ErrProtocol, ev.Type)
		}
		if _, err := r.p.heard(*ev.Process); err != nil {
			return err
		}
		if ev.Type == api.EventExit {
			return io.EOF
		}
	case api.EventError:
		return problem(ev)
	}
	return nil
}

func (r *reception) output(c Chunk) error {
	which := 0
	if c.Stderr {
		which = 1
	}
	if c.Dropped > math.MaxInt64-maxFrames-r.at[which] {
		return fmt.Errorf("%w: %d bytes of output were dropped", tranca.ErrProtocol, c.Dropped)
	}
	c.Offset = r.at[which] + c.Dropped
	r.at[which] = c.Offset + int64(len(c.Data))
	return r.take(c)
}
