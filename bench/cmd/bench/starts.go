package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"tranca"
	"tranca/bench/sample"
)

// The subjects of the starts, by the names that the table shows.
const (
	bare   = "bare python3 -I -c"
	bwrap  = "bubblewrap --unshare-all"
	cold   = "engine, cold"
	pooled = "engine, booted beforehand"
	whole  = "bin/tranca run, whole process"
)

// starts times one answer of one program, in five ways.
func (o *options) starts(ctx context.Context, rep *report) error {
	coldRunner, err := o.open(ctx, 0)
	if err != nil {
		return err
	}
	defer coldRunner.close()
	pool, err := o.open(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.close()
	bw, err := bubblewrap()
	if err != nil {
		return err
	}
	command, err := o.runs("process")
	if err != nil {
		return err
	}
	subjects := []sample.Subject{
		{Name: bare, Do: runs(python, "-I", "-c", code)},
		{Name: bwrap, Do: runs(bw[0], append(bw[1:], python, "-I", "-c", code)...)},
		{Name: cold, Do: coldRunner.answers},
		{Name: pooled, Prepare: pool.waitReady, Do: pool.answers},
		{Name: whole, Do: command},
	}
	times, err := sample.Interleave(ctx, subjects, o.warm, o.rounds, o.seed)
	if err != nil {
		return err
	}
	o.addStarts(rep, times)
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

func (o *options) addStarts(rep *report, times map[string]sample.Series) {
	base := times[bare]
	add := func(name, figure string, value, target float64) {
		rep.Rows = append(rep.Rows, row{
			Part: "starts", Name: name, Figure: figure, Value: value, Target: target, Unit: "x bare",
		})
	}
	ratio := func(name string, p float64) float64 {
		return ms(times[name].Percentile(p)) / ms(base.Percentile(p))
	}
	targets := map[string]float64{cold: 1.5, pooled: 1.25, whole: 2.5}
	if os.Geteuid() != 0 {
		targets = map[string]float64{} // there the figure is only reported
	}
	for _, name := range []string{bare, bwrap, cold, pooled, whole} {
		rep.Times[name] = times[name]
		add(name, quantiles(times[name]), ratio(name, 50), targets[name])
	}
	if os.Geteuid() == 0 {
		add(cold+": p99", fmt.Sprintf("p99 %.1f ms", ms(times[cold].Percentile(99))), ratio(cold, 99), 2)
		add(pooled+": against bubblewrap", fmt.Sprintf("p50 %.1f ms", ms(times[pooled].Percentile(50))),
			ratio(pooled, 50), ratio(bwrap, 50))
	}
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

// bubblewrap returns the command line of a sandbox that is as near to ours as
// bubblewrap has it: all namespaces, read-only system folders, fresh proc, dev
// and tmp.
func bubblewrap() ([]string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, fmt.Errorf("%w: install bubblewrap: it is what tranca is held against", err)
	}
	args := []string{path, "--unshare-all", "--die-with-parent", "--clearenv", "--ro-bind", "/usr", "/usr"}
	for _, dir := range []string{"/bin", "/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/work", "--chdir", "/work"), nil
}

// checkAnswer says what is wrong with a result of the program.
func checkAnswer(r *tranca.Result) error {
	if !r.Exit.Success() || string(r.Stdout) != answer {
		return fmt.Errorf("ended %s and printed %q, want %q; stderr %q", r.Exit, r.Stdout, answer, r.Stderr)
	}
	return nil
}
