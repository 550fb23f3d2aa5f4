//go:build linux

package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/app/backends"
	"tranca/internal/changeset"
	"tranca/internal/cli"
	"tranca/internal/engine"
	guestimage "tranca/internal/guest/image"
	"tranca/internal/image"
	"tranca/internal/policyfile"
	"tranca/internal/weaken"
)

// World returns what the command line uses in a real process. Making it costs
// nothing: backends are made when a command needs them.
func World() cli.World {
	return cli.World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv,
		Quit:   os.Exit,
		FindPolicy: func(path string) (tranca.Policy, bool, error) {
			return policyfile.Find(policyfile.Options{Path: path})
		},
		Open: func(p tranca.Policy) (cli.Engine, error) {
			e, err := Engine(p, slog.New(slog.DiscardHandler), 0)
			if err != nil {
				return nil, err
			}
			return Inside(e)
		},
		Probe:    probe,
		Inspect:  inspect,
		Evidence: gatherEvidence,
		MCP:      serveMCP,
		Serve:    serve,
		Bench:    runBench,
		Images:   newImages,
		Changes: func() (cli.Changes, error) {
			s, err := openChanges()
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Guest:             guestimage.Digest,
		Hostile:           runHostile,
		HostileProbes:     hostileProbes,
		HostilePlace:      servePlace,
		HostileSupervisor: supervise,
		Notice:            weaken.Notice(),
	}
}

// Engine makes an engine with every backend of this build, which keeps up to
// ready sandboxes booted ahead. Close it.
func Engine(p tranca.Policy, logger *slog.Logger, ready int) (*engine.Engine, error) {
	all, err := backends.All(ready)
	if err != nil {
		return nil, err
	}
	// Whoever opens a session in this process closes it.
	return engine.New(engine.Config{
		Backends: all, Policy: p, Images: image.New(image.Options{}), Logger: logger, MaxTTL: -1,
		Changes: openChanges,
	})
}

// openChanges opens where this user's changes are kept.
func openChanges() (*changeset.Store, error) {
	path, err := changeset.DefaultFolder(os.Getenv)
	if err != nil {
		return nil, err
	}
	return changeset.OpenStore(path)
}

// probe asks every backend.
func probe(ctx context.Context) []cli.Probed { return probeKnowing(ctx, backends.Advisories()) }

func probeKnowing(ctx context.Context, known *advisory.InForce) []cli.Probed {
	all, err := backends.AllKnowing(0, known)
	if err != nil {
		return []cli.Probed{{Backend: "tranca", Err: err}}
	}
	var probed []cli.Probed
	for _, b := range all.All() {
		report, err := b.Probe(ctx)
		probed = append(probed, cli.Probed{Backend: b.Name(), Report: report, Err: err})
		if err := closeProbed(ctx, b); err != nil {
			probed[len(probed)-1].Err = errors.Join(probed[len(probed)-1].Err, err)
		}
	}
	return probed
}

// closeProbed frees what a backend holds, in a time of its own: a Ctrl-C that
// ends the probe must not leave its lock and control groups behind.
func closeProbed(ctx context.Context, b tranca.Backend) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return b.Close(ctx)
}
