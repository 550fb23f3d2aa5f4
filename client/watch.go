package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"tranca"
	"tranca/internal/api"
)

// Watch implements [tranca.FileWatcher]. A connection that breaks ends the
// watch with [tranca.ErrUnavailable], since changes may have been missed.
func (f *files) Watch(ctx context.Context, path string, recursive bool) (tranca.Watch, error) {
	q := f.call(api.RouteWatch).again().with("path", path, "recursive", strconv.FormatBool(recursive))
	q.accept = api.TypeFrames
	w := &watch{c: f.s.c, events: make(chan tranca.FileEvent), done: make(chan struct{})}
	var live context.Context
	live, w.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	// ctx bounds the start only.
	stop := context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })
	body, in, err := w.start(live, q)
	if !stop() || err != nil {
		w.cancel(nil)
		if body != nil {
			body.Close()
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	go w.run(live, body, in)
	return w, nil
}

// watch is a [tranca.Watch] over a connection.
type watch struct {
	c      *Client
	cancel context.CancelCauseFunc
	events chan tranca.FileEvent
	once   sync.Once
	done   chan struct{} // closed when err is set
	err    error
}

// start returns when changes from then on are told.
func (w *watch) start(ctx context.Context, q *call) (io.Closer, *bufio.Reader, error) {
	resp, err := w.c.send(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(resp.Body)
	for {
		ev, err := w.next(ctx, in, new([]byte))
		switch {
		case err != nil:
			return resp.Body, nil, err
		case ev.Type == api.EventWatching:
			return resp.Body, in, nil
		case ev.Type == api.EventFile:
			return resp.Body, nil, fmt.Errorf("%w: a change before the watch has begun", tranca.ErrProtocol)
		}
	}
}

func (w *watch) next(ctx context.Context, in io.Reader, buf *[]byte) (api.Event, error) {
	ev, _, err := api.ReadFrame(in, buf)
	switch {
	case errors.Is(err, tranca.ErrProtocol):
		return ev, err
	case err != nil:
		return ev, w.c.broken(ctx, unexpected(err))
	case ev.Type == api.EventError:
		return ev, problem(ev)
	case ev.Type == api.EventFile && ev.File == nil:
		return ev, fmt.Errorf("%w: an event of a change without one", tranca.ErrProtocol)
	}
	return ev, nil
}

func (w *watch) run(ctx context.Context, body io.Closer, in *bufio.Reader) {
	defer close(w.done)
	defer body.Close()
	var buf []byte
	for {
		ev, err := w.next(ctx, in, &buf)
		if err != nil {
			w.err = err
			return
		}
		if ev.Type != api.EventFile {
			continue
		}
		select {
		case w.events <- *ev.File:
		case <-ctx.Done():
			w.err = context.Cause(ctx)
			return
		}
	}
}

// Next implements [tranca.Watch].
func (w *watch) Next(ctx context.Context) (tranca.FileEvent, error) {
	select {
	case ev := <-w.events:
		return ev, nil
	case <-w.done:
		return tranca.FileEvent{}, w.err
	case <-ctx.Done():
		return tranca.FileEvent{}, context.Cause(ctx)
	}
}

// Close implements [tranca.Watch].
func (w *watch) Close() error {
	w.once.Do(func() { w.cancel(fmt.Errorf("%w: the watch", tranca.ErrClosed)) })
	<-w.done
	return nil
}
