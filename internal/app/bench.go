//go:build linux

package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/app/backends"
	"tranca/internal/backend"
	"tranca/internal/bench"
	"tranca/internal/bench/baseline"
	"tranca/internal/bench/measure"
	"tranca/internal/cli"
	"tranca/internal/policy"
)

// runBench measures every backend of this build and every baseline that are
// here, or those that were asked for. The policy of each is the default one
// that names it: what runs is the benchmark's own, and nobody else's.
func runBench(ctx context.Context, s cli.BenchSetup) (*bench.Result, error) {
	subjects, err := benchSubjects(ctx, s)
	if err != nil {
		return nil, err
	}
	python, err := baseline.Python()
	if err != nil {
		python = err.Error()
	}
	return measure.Run(ctx, measure.Config{
		Subjects: subjects, Loop: baseline.Loop,
		Result: bench.Result{Tranca: cli.Version, Only: s.Only, Host: measure.Host(python)},
		Quick:  s.Quick, Rounds: s.Rounds, Seed: s.Seed, Progress: s.Progress,
	})
}

func benchSubjects(ctx context.Context, s cli.BenchSetup) ([]measure.Subject, error) {
	all, err := backends.All(0)
	if err != nil {
		return nil, err
	}
	names := []string{baseline.Bare}
	for _, b := range all.All() {
		names = append(names, b.Name())
	}
	names = append(names, baseline.Bubblewrap, baseline.Firejail, baseline.RunscDo, baseline.DockerRun)
	wanted, err := asked(s.Only, names)
	if err != nil {
		return nil, err
	}
	var runtimes []string
	var noEngine error
	if wanted("container") || wanted(baseline.DockerRun) {
		if runtimes, noEngine = containerRuntimes(ctx, all); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	theirs := baseline.Subjects(ctx, baseline.Options{Getenv: os.Getenv, Policy: policy.Default(), Runtimes: rest(runtimes)})
	subjects := slices.Clone(theirs[:1])
	for _, b := range all.All() {
		if b.Name() == "container" && noEngine == nil {
			for _, name := range runtimes {
				subjects = append(subjects, backendSubject(b, name, s))
			}
			continue
		}
		subjects = append(subjects, backendSubject(b, "", s))
	}
	return only(s.Only, append(subjects, theirs[1:]...), wanted)
}

// asked makes a test from the names that were asked for. All are without any.
func asked(list, names []string) (func(name string) bool, error) {
	for _, n := range list {
		if base, _, _ := strings.Cut(n, ":"); !slices.Contains(names, base) {
			return nil, fmt.Errorf("%w: there is nothing called %q to measure; there are %s",
				tranca.ErrInvalid, n, strings.Join(names, ", "))
		}
	}
	return func(name string) bool {
		base, _, _ := strings.Cut(name, ":")
		return len(list) == 0 || slices.ContainsFunc(list, func(n string) bool {
			asked, _, _ := strings.Cut(n, ":")
			return n == name || n == base || name == asked
		})
	}, nil
}

// only keeps bare, and what was asked for.
func only(list []string, all []measure.Subject, wanted func(string) bool) ([]measure.Subject, error) {
	var kept []measure.Subject
	var names []string
	for _, s := range all {
		names = append(names, s.About.Name)
		if s.About.Kind == bench.KindBare || wanted(s.About.Name) {
			kept = append(kept, s)
		}
	}
	for _, n := range list {
		if strings.Contains(n, ":") && !slices.Contains(names, n) {
			return nil, fmt.Errorf("%w: there is nothing called %q to measure here; there are %s",
				tranca.ErrInvalid, n, strings.Join(names, ", "))
		}
	}
	return kept, nil
}

// containerRuntimes lists the engine's runtimes, its default one first.
func containerRuntimes(ctx context.Context, all *backend.Registry) ([]string, error) {
	b, err := all.Get("container")
	if err != nil {
		return nil, err
	}
	report, err := b.Probe(ctx)
	closed := closeProbed(ctx, b)
	if err != nil {
		return nil, err
	}
	return runtimeNames(report), closed
}

// runtimeNames lists the runtimes that a report tells of, the default one first.
func runtimeNames(report tranca.Report) []string {
	names := []string{report.Facts[tranca.FactRuntime]}
	for name := range strings.SplitSeq(report.Facts["runtimes"], ", ") {
		// containerd's own names of its shims stand for the same again.
		if name != "" && !slices.Contains(names, name) && !strings.HasPrefix(name, "io.containerd.") {
			names = append(names, name)
		}
	}
	return names
}

func rest(names []string) []string { return names[min(1, len(names)):] }

// backendSubject makes a subject of an engine over one backend, as `tranca run`
// has it. The engine is the subject's alone, so that what it leaves is its own.
func backendSubject(b tranca.Backend, runtimeName string, s cli.BenchSetup) measure.Subject {
	level := backend.Level(b)
	about := bench.Subject{Name: b.Name(), Kind: bench.KindBackend, Isolation: level.String(), Runtime: runtimeName}
	if runtimeName != "" {
		about.Name += ":" + runtimeName
	}
	p := policy.Default()
	p.Floor, p.Backend, p.Runtime, p.Waive = level, b.Name(), runtimeName, s.Waive
	if level == tranca.LevelContainer && s.Image != "" {
		p.Image = s.Image
	}
	return measure.Backend(about, func(context.Context) (measure.Engine, error) {
		e, err := Engine(p, slog.New(slog.DiscardHandler), 0)
		if err != nil {
			return nil, err
		}
		return newInside(e)
	})
}
