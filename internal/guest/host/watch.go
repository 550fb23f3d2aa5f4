package host

import (
	"context"
	"fmt"
	"io"
	"strings"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// Watch is [tranca.FileWatcher].
func (f files) Watch(ctx context.Context, path string, recursive bool) (tranca.Watch, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	req := message.WatchDirRequest{Path: path, Recursive: recursive}
	call, err := f.sb.sess.Open(ctx, message.MethodWatchDir, 0, req.Append(nil), true)
	if err != nil {
		return nil, f.sb.explain(ctx, err)
	}
	var first message.WatchDirResponse
	err = f.next(ctx, call.Stream, &first)
	if err == io.EOF || err == nil && !first.Start {
		err = f.sb.breach("a watch that does not begin with its start")
	}
	if err != nil {
		call.Close()
		return nil, err
	}
	return &watch{sb: f.sb, call: call, turn: make(chan struct{}, 1)}, nil
}

// watch is a folder that is watched. What the guest says meanwhile waits in the
// stream's window, which bounds it.
type watch struct {
	sb   *sandbox
	call *wire.Call
	turn chan struct{} // a lock that a context can wait for
}

func (w *watch) Next(ctx context.Context) (tranca.FileEvent, error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return tranca.FileEvent{}, context.Cause(ctx)
	}
	for {
		if err := ctx.Err(); err != nil {
			return tranca.FileEvent{}, context.Cause(ctx)
		}
		b, err := w.call.Recv(ctx)
		if err == io.EOF {
			return tranca.FileEvent{}, w.sb.breach("a watch that ends without a reason")
		}
		if err == wire.ErrClosed {
			return tranca.FileEvent{}, fmt.Errorf("%w: the watch", tranca.ErrClosed)
		}
		if err != nil {
			return tranca.FileEvent{}, w.sb.explain(ctx, err)
		}
		var m message.WatchDirResponse
		err = m.Unmarshal(b.Bytes())
		b.Free()
		if err != nil || m.Start {
			return tranca.FileEvent{}, w.sb.breach("an event of a watch that can't be read, or a second start")
		}
		if m.Keepalive {
			continue
		}
		return w.event(&m)
	}
}

// Close ends the watch. A Next that waits returns.
func (w *watch) Close() error {
	w.call.Close()
	return nil
}

var eventKinds = map[message.EventType]tranca.FileEventKind{
	message.EventCreate: tranca.FileCreated,
	message.EventWrite:  tranca.FileWritten,
	message.EventRemove: tranca.FileRemoved,
	message.EventRename: tranca.FileRenamed,
	message.EventChmod:  tranca.FileChmod,
}

// event checks an event of the guest. Its path is one that stays below the
// folder wherever it is joined to one.
func (w *watch) event(m *message.WatchDirResponse) (tranca.FileEvent, error) {
	if m.Overflow {
		return tranca.FileEvent{Kind: tranca.FileOverflow}, nil
	}
	kind, known := eventKinds[m.Filesystem.Type]
	if !known || !below(m.Filesystem.Name) {
		return tranca.FileEvent{}, w.sb.breach("an event of no kind, or with a path that does not lie below the folder")
	}
	return tranca.FileEvent{Kind: kind, Path: m.Filesystem.Name}, nil
}

// below reports whether a path is made of names only.
func below(path string) bool {
	if strings.IndexByte(path, 0) >= 0 {
		return false
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || len(name) > message.MaxName {
			return false
		}
	}
	return true
}
