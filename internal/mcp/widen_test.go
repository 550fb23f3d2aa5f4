package mcp

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tranca"
	"tranca/internal/policy"
)

// TestNoArgumentWidens calls the tools with generated arguments: whatever they
// are, what reaches the runner narrows to a policy within the operator's.
func TestNoArgumentWidens(t *testing.T) {
	r := &scripted{answer: exited(0, "")}
	h := connect(t, Config{Runner: r})
	operator := policy.Default()
	known := map[string]bool{"code": true, "stdin": true, "args": true, "timeout_seconds": true}
	rapid.Check(t, func(rt *rapid.T) {
		args := map[string]any{"code": "x"}
		asked := rapid.Float64().Draw(rt, "seconds")
		if rapid.Bool().Draw(rt, "time") {
			args["timeout_seconds"] = asked
		}
		extra := rapid.OneOf(
			rapid.SampledFrom([]string{"policy", "memory", "limits", "backend", "waive", "mounts", "network", "env", "Code", "timeout", "narrow", "Narrow"}),
			rapid.StringMatching(`[a-zA-Z_]{1,12}`),
		).Draw(rt, "extra")
		invented := rapid.Bool().Draw(rt, "invented") && !known[extra]
		if invented {
			args[extra] = rapid.OneOf(rapid.Just[any]("1TiB"), rapid.Just[any](1e12), rapid.Just[any](map[string]any{})).Draw(rt, "value")
		}
		before := r.count()
		res := h.call(t, "run_python", args)
		ran := r.count() > before
		_, timed := args["timeout_seconds"]
		if ran == res.IsError || (ran && (invented || (timed && asked > operator.Limits.Wall.Seconds()))) {
			rt.Fatalf("%v: ran %v, error %v", args, ran, res.IsError)
		}
		if !ran {
			return
		}
		req, _ := r.last(t)
		narrowed, problems := policy.Narrow(operator, req.Narrow)
		if len(problems) > 0 || !policy.Within(narrowed, operator) {
			rt.Fatalf("%v became %+v: %v", args, req.Narrow, problems)
		}
	})
}

func TestTimeNeverGrows(t *testing.T) {
	s := &Server{policy: policy.Default()}
	rapid.Check(t, func(rt *rapid.T) {
		asked := rapid.OneOf(rapid.Float64(), rapid.Just(math.Inf(1)), rapid.Just(math.NaN())).Draw(rt, "seconds")
		before := time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(rt, "narrowed"))
		n := tranca.Narrowing{Wall: before}
		s.narrowTime(&n, &asked)
		if n.Wall < 0 || n.Wall > s.policy.Limits.Wall {
			rt.Fatalf("%v s of %v became %v", asked, before, n.Wall)
		}
	})
}
