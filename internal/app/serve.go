//go:build linux

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/app/backends"
	"tranca/internal/cli"
	"tranca/internal/engine"
	"tranca/internal/image"
	"tranca/internal/server"
	"tranca/internal/server/listen"
)

// closeTime bounds the destruction of all sandboxes when the server ends.
const closeTime = 2 * time.Minute

// serve serves the HTTP API until ctx ends.
func serve(ctx context.Context, setup cli.ServeSetup) (err error) {
	// A command may leave its garbage, a server lives too long for that: it
	// collects at twice of what it holds, however much its sandboxes need.
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	logger, err := serveLogger(setup)
	if err != nil {
		return err
	}
	key := ""
	if setup.KeyFile != "" {
		if key, err = listen.ReadKey(setup.KeyFile); err != nil {
			return err
		}
	}
	places, listeners, err := openListeners(setup)
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			if closed := l.Close(); !errors.Is(closed, net.ErrClosed) {
				err = errors.Join(err, closed)
			}
		}
	}()
	e, err := serveEngine(setup, logger)
	if err != nil {
		return err
	}
	defer func() {
		// In a time of its own: ctx has ended, and nothing may be left.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = errors.Join(err, e.Close(ending))
	}()
	s, err := server.New(server.Config{
		Engine: e, Version: setup.Version, Key: key, Logger: logger, LogCode: setup.LogCode,
	})
	if err != nil {
		return err
	}
	for _, l := range listeners[1:] {
		if !listen.Loopback(l) {
			logger.Warn("the key and all that is said go over the network unencrypted", "address", l.Addr().String())
		}
	}
	logger.Info("listening", "places", places)
	setup.Listening(places)
	return s.Serve(ctx, setup.Grace, listeners...)
}

// openListeners opens the socket, and TCP where it was asked for.
func openListeners(setup cli.ServeSetup) (places []string, all []net.Listener, err error) {
	path := setup.Socket
	if path == "" {
		path = api.DefaultSocket()
	}
	socket, err := listen.Unix(path)
	if err != nil {
		return nil, nil, err
	}
	places, all = []string{"unix://" + socket.Path()}, []net.Listener{socket}
	if setup.Listen == "" {
		return places, all, nil
	}
	tcp, err := listen.TCP(setup.Listen)
	if err != nil {
		return nil, nil, errors.Join(err, socket.Close())
	}
	return append(places, "http://"+tcp.Addr().String()), append(all, tcp), nil
}

func serveEngine(setup cli.ServeSetup, logger *slog.Logger) (*engine.Engine, error) {
	all, err := backends.All(setup.Ready)
	if err != nil {
		return nil, err
	}
	cfg := engine.Config{
		Changes:  openChanges,
		Backends: all, Images: image.New(image.Options{}), Logger: logger, MaxSandboxes: setup.MaxSandboxes,
		MaxMemory: setup.MaxMemory, MaxMilliCPUs: setup.MaxMilliCPUs,
		MaxTTL: setup.MaxTTL, DefaultTTL: setup.DefaultTTL,
	}
	for _, p := range setup.Profiles {
		cfg.Profiles = append(cfg.Profiles, engine.Profile{Name: p.Name, Policy: p.Policy})
	}
	return engine.New(cfg)
}

func serveLogger(setup cli.ServeSetup) (*slog.Logger, error) {
	var level slog.Level
	words := []string{"debug", "info", "warn", "error"}
	for i, w := range words {
		if setup.Level == w {
			level = slog.Level(4 * (i - 1))
			return slog.New(slog.NewJSONHandler(setup.Log, &slog.HandlerOptions{Level: level})), nil
		}
	}
	return nil, fmt.Errorf("%w: log level %q: want %s", tranca.ErrInvalid, setup.Level, strings.Join(words, ", "))
}
