//go:build linux

package app

import (
	"context"
	"errors"

	"tranca/client"
	"tranca/internal/app/direct"
	"tranca/internal/cli"
	"tranca/internal/engine"
	"tranca/internal/server"
)

// Inside returns a client of a server in this process, over an engine that is
// its own from then on. So a command does the same whether it speaks to a
// server or is one: the person at the command line is the operator here, and
// no key is asked for.
func Inside(e *engine.Engine) (cli.Engine, error) {
	i, err := newInside(e)
	if err != nil {
		return nil, err
	}
	return i, nil
}

func newInside(e *engine.Engine) (*inside, error) {
	s, err := server.New(server.Config{Engine: e, Version: cli.Version})
	if err != nil {
		return nil, err
	}
	t := direct.New(s.Local())
	c, err := client.New(client.WithTransport(t))
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return &inside{Client: c, server: s, engine: e}, nil
}

// inside is a client with all that it stands on.
type inside struct {
	*client.Client
	server *server.Server
	engine *engine.Engine
}

// Close ends what runs, and frees everything.
func (i *inside) Close(ctx context.Context) error {
	i.server.Close()
	if err := i.engine.Close(ctx); err != nil {
		return err
	}
	return i.Client.Close()
}
