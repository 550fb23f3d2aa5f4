package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"tranca/internal/bench"
)

// fake runs no program: it takes its time and answers as the program would.
type fake struct {
	// takes is how long a run lasts; nil is 4 ms.
	takes func(run int64) time.Duration
	// broken says which program fails, and how, in which run.
	broken func(run int64, code string) error

	runs, open, closed atomic.Int64
}

var errNoProgram = errors.New("the fake knows no such program")

func (f *fake) Run(ctx context.Context, code string, out io.Writer) error {
	n := f.runs.Add(1)
	if f.broken != nil {
		if err := f.broken(n, code); err != nil {
			return err
		}
	}
	d := 4 * time.Millisecond
	if f.takes != nil {
		d = f.takes(n)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return reply(code, d, out)
}

func reply(code string, d time.Duration, out io.Writer) error {
	size := 0
	switch {
	case code == StartCode:
		_, _ = io.WriteString(out, Answer)
	case strings.Contains(code, "begin()\n"):
		for range strings.Count(code, "begin()\n") {
			_, _ = io.WriteString(out, ".")
			time.Sleep(d)
			_, _ = io.WriteString(out, ".")
		}
	case strings.Contains(code, "left, block = "):
		if _, err := fmt.Sscanf(code, "import os\nleft, block = %d,", &size); err != nil {
			return err
		}
		piece := make([]byte, 1<<16)
		for ; size > 0; size -= len(piece) {
			_, _ = out.Write(piece[:min(size, len(piece))])
		}
	default:
		return errNoProgram
	}
	return nil
}

func (f *fake) Stream(ctx context.Context, code string, out io.Writer) error {
	return f.Run(ctx, code, out)
}

func (f *fake) Describe(s *bench.Subject) { s.Isolation = "process" }

func (f *fake) Close(context.Context) error {
	f.closed.Add(1)
	return nil
}

// subject makes a subject of it.
func (f *fake) subject(name string, kind bench.Kind) Subject {
	return Subject{About: bench.Subject{Name: name, Kind: kind}, Open: func(context.Context) (Runner, error) {
		f.open.Add(1)
		return f, nil
	}}
}

// keeping is a fake with sandboxes that stay.
type keeping struct{ *fake }

func (k keeping) Keep(context.Context) (Kept, error) { return keptFake{k.fake}, nil }

func (k keeping) subject(name string) Subject {
	s := k.fake.subject(name, bench.KindBackend)
	open := s.Open
	s.Open = func(ctx context.Context) (Runner, error) {
		_, err := open(ctx)
		return k, err
	}
	return s
}

type keptFake struct{ f *fake }

func (k keptFake) Run(ctx context.Context, code string, out io.Writer) error {
	return k.f.Run(ctx, code, out)
}

func (k keptFake) Close(context.Context) error {
	time.Sleep(time.Millisecond)
	return nil
}

// shortRun is a run of few samples.
func shortRun(subjects ...Subject) *run {
	r := newRun(Config{
		Subjects: subjects, Quick: true, Rounds: 4, Seed: 1,
		Loop:   func(context.Context) error { time.Sleep(4 * time.Millisecond); return nil },
		Result: bench.Result{Host: bench.Host{CPUs: 2}},
	})
	r.pace.harness, r.pace.eachTurn, r.pace.baseline = 2, 2, 4
	r.pace.after, r.pace.atEnd = 300*time.Millisecond, 300*time.Millisecond
	r.pace.window, r.pace.quiet, r.pace.outputSize = 20*time.Millisecond, time.Millisecond, 1<<20
	return r
}

func (r *run) result(ctx context.Context) (*bench.Result, error) {
	err := r.phases(ctx)
	r.closeAll(ctx)
	return r.finish(err), err
}
