package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt/image"
	"tranca/hostile/place"
	"tranca/hostile/suite"
	"tranca/internal/app/backends"
	"tranca/internal/cli"
)

// servePlace is the first process of the disposable place.
func servePlace(ctx context.Context, in io.Reader, out io.Writer) error {
	return place.Serve(ctx, in, out, func(column string, waive []tranca.Item, program []byte) (suite.Target, func(), error) {
		if column != subprocess {
			return nil, nil, fmt.Errorf("%w: %s", errNoTarget, column)
		}
		return targetOf(ctx, column, waive, program)
	})
}

// targetOf makes a target by the name of its column, in a process of its own.
func targetOf(ctx context.Context, column string, waive []tranca.Item, program []byte) (*suite.Box, func(), error) {
	name, runtime, _ := strings.Cut(strings.TrimSuffix(column, ")"), " (")
	all, err := backends.All(0)
	if err != nil {
		return nil, nil, err
	}
	b, err := all.Get(name)
	if err != nil {
		return nil, nil, err
	}
	p := &proof{program: program, setup: cli.HostileSetup{Waive: waive}}
	p.undo = append(p.undo, func() { _ = closeProbed(ctx, b) })
	held, err := suite.Hold(b)
	if err != nil {
		return nil, nil, err
	}
	found, err := probeOf(ctx, held.All()[0], runtime)
	if err == nil {
		p.dir, err = os.MkdirTemp("", "tranca-hostile-")
	}
	if err != nil {
		p.close()
		return nil, nil, err
	}
	p.undo = append(p.undo, func() { _ = os.RemoveAll(p.dir) })
	return p.box(held, column, runtime, found), p.close, nil
}

func probeOf(ctx context.Context, b tranca.Backend, runtime string) (tranca.Report, error) {
	if runtime == "" {
		return b.Probe(ctx)
	}
	r, ok := tranca.As[tranca.RuntimeProber](b)
	if !ok {
		return tranca.Report{}, fmt.Errorf("%w: %s has no runtimes", tranca.ErrNotFound, b.Name())
	}
	return r.ProbeRuntime(ctx, runtime)
}

// maxCharge bounds what a supervisor reads.
const maxCharge = 1 << 20

// supervise runs one program in a sandbox and waits for it, to be killed.
func supervise(ctx context.Context, in io.Reader, out io.Writer) error {
	var charge suite.Charge
	if err := json.NewDecoder(io.LimitReader(in, maxCharge)).Decode(&charge); err != nil {
		return errors.Join(errors.New("this is a part of `tranca hostile`, and nothing to be called by hand"), err)
	}
	probe, err := hostile.Parse(charge.Probe, []byte(charge.Text))
	if err != nil {
		return err
	}
	program, err := image.Program()
	if err != nil {
		return err
	}
	target, closing, err := targetOf(ctx, charge.Column, charge.Waive, program)
	if err != nil {
		return err
	}
	defer closing()
	return target.Supervise(ctx, probe, charge.Program, out)
}
