package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"tranca"
	"tranca/internal/bench/sample"
)

// The subjects of the starts, by the names that the table shows.
const (
	bare   = "bare python3 -I -c"
	pooled = "engine, booted beforehand"
	whole  = "bin/tranca run, whole process"
)

// starts times one answer of one program in the ways that `tranca bench` does
// not have: from a pool, and by the command as a whole.
func (o *options) starts(ctx context.Context, rep *report) error {
	pool, err := o.openPool(ctx)
	if err != nil {
		return err
	}
	defer pool.close()
	command, err := o.runs("process")
	if err != nil {
		return err
	}
	subjects := []sample.Subject{
		{Name: bare, Do: runs(python, "-I", "-c", code)},
		{Name: pooled, Prepare: pool.waitReady, Do: pool.answers},
		{Name: whole, Do: command},
	}
	times, err := sample.Interleave(ctx, subjects, o.warm, o.rounds, o.seed)
	if err != nil {
		return err
	}
	targets := map[string]float64{pooled: 1.25, whole: 2.5}
	if os.Geteuid() != 0 {
		targets = nil // there the figure is only reported
	}
	rep.beside("starts", "x bare", times, bare, targets, bare, pooled, whole)
	return nil
}

// runs makes a Do that is a whole `tranca run` of the program, at a level.
func (o *options) runs(level string) (func(context.Context) error, error) {
	command, err := filepath.Abs(o.tranca)
	args := []string{"run", "--isolation", level}
	for _, item := range o.policy().Waive {
		args = append(args, "--waive", string(item))
	}
	return runs(command, append(args, "-c", code)...), err
}

// runs makes a Do that runs a program and wants the right answer.
func runs(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if string(out) != answer {
			return fmt.Errorf("%s printed %q, want %q", name, out, answer)
		}
		return nil
	}
}

// checkAnswer says what is wrong with a result of the program.
func checkAnswer(r *tranca.Result) error {
	if !r.Exit.Success() || string(r.Stdout) != answer {
		return fmt.Errorf("ended %s and printed %q, want %q; stderr %q", r.Exit, r.Stdout, answer, bytes.TrimSpace(r.Stderr))
	}
	return nil
}
