package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"tranca"
)

func TestAThirdIsKilled(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	killed, seen := 0, map[string]bool{}
	for n := range 300 {
		j := pick(n, rnd)
		seen[j.name] = true
		if j.name == "killed" {
			killed++
		}
		if j.right == nil || j.code == "" {
			t.Fatalf("job %+v can't be wrong", j)
		}
	}
	if killed != 100 || len(seen) != len(whole)+1 {
		t.Errorf("%d of 300 killed, %d kinds of %d", killed, len(seen), len(whole)+1)
	}
}

func TestWrongEndsAreSeen(t *testing.T) {
	wall := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndWall, Code: -1}}
	if prints("42\n")(wall) == nil || ends(tranca.EndMemory, 0)(wall) == nil {
		t.Error("a run that the clock ended is taken for another end")
	}
	three := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited, Code: 3}}
	if ends(tranca.EndExited, 3)(three) != nil || ends(tranca.EndExited, 0)(three) == nil {
		t.Error("codes are not told apart")
	}
}

// flaky is an engine that is away for some runs.
type flaky struct {
	tranca.Runner
	away    int
	results []*tranca.Result
}

func (f *flaky) Run(context.Context, tranca.Request) (*tranca.Result, error) {
	if f.away > 0 {
		f.away--
		return nil, tranca.ErrUnavailable
	}
	res := f.results[0]
	f.results = f.results[1:]
	return res, nil
}

// An outage excuses a failure that says so, as long as the run is right in the
// end; it excuses no wrong result.
func TestOutages(t *testing.T) {
	right := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited}, Stdout: []byte("42\n")}
	failed := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndError, Code: -1}}
	wrong := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited, Code: 1}}
	j := job{name: "answer", right: prints("42\n")}
	for _, c := range []struct {
		name    string
		outages bool
		away    int
		results []*tranca.Result
		ok      bool
	}{
		{"away, then right", true, 1, []*tranca.Result{failed, right}, true},
		{"away, then wrong", true, 1, []*tranca.Result{wrong, right}, false},
		{"away where it may not be", false, 1, []*tranca.Result{right}, false},
		{"failed where it may not", false, 0, []*tranca.Result{failed, right}, false},
	} {
		o := &options{outages: c.outages}
		err := o.runJob(t.Context(), &flaky{away: c.away, results: c.results}, j)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What an engine leaves of itself is told from what sandboxes leave, and only
// where the engine was killed.
func TestEnginesOwnLeftovers(t *testing.T) {
	left := []string{"folder or file /run/x/docker/containerd/1", "mount /space"}
	o := &options{crashes: 1, crashLeaves: "/docker/containerd/"}
	if got := o.ours(slices.Clone(left)); !slices.Equal(got, left[1:]) {
		t.Errorf("with the engine killed: %q", got)
	}
	o.crashes = 0
	if got := o.ours(slices.Clone(left)); !slices.Equal(got, left) {
		t.Errorf("with the engine well: %q", got)
	}
}

func TestCrashesNeedAnEngine(t *testing.T) {
	for _, o := range []options{
		{backend: "container", crashes: 1},
		{backend: "container", crash: "true"},
		{backend: "process", crashes: 1, crash: "true"},
	} {
		if o.check() == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	o := options{backend: "container", crashes: 1, crash: "true"}
	if err := o.check(); err != nil {
		t.Error(err)
	}
}
