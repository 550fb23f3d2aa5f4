package statefile

import (
	"errors"
	"testing"

	"tranca"
)

func TestPath(t *testing.T) {
	env := func(vars map[string]string) func(string) string { return func(n string) string { return vars[n] } }
	for want, vars := range map[string]map[string]string{
		"/s/tranca/bench.json":              {"XDG_STATE_HOME": "/s", "HOME": "/h"},
		"/h/.local/state/tranca/bench.json": {"XDG_STATE_HOME": "relative", "HOME": "/h"},
	} {
		if got, err := Path(env(vars), Bench); err != nil || got != want {
			t.Errorf("%v: %q, %v", vars, got, err)
		}
	}
	if _, err := Path(env(nil), Bench); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("nowhere to go: %v", err)
	}
}
