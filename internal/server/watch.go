package server

import (
	"context"
	"fmt"

	"tranca"
	"tranca/internal/api"
)

func watchFolder(c *call) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	watcher, ok := tranca.As[tranca.FileWatcher](files)
	if !ok {
		return fmt.Errorf("%w: this backend can't watch folders", tranca.ErrUnsupported)
	}
	ctx, cancel := c.until()
	defer cancel()
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	w, err := watcher.Watch(ctx, c.query.text("path"), c.query.flag("recursive"))
	if err != nil {
		return err
	}
	defer w.Close()
	st := c.follow(false, func() { gone(errClientGone) })
	if err := st.Event(api.Event{Type: api.EventWatching}); err != nil {
		return st.end(nil)
	}
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return st.end(err)
		}
		ev.Path = text(ev.Path)
		if err := st.Event(api.Event{Type: api.EventFile, File: &ev}); err != nil {
			return st.end(nil)
		}
	}
}
