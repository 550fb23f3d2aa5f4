package container

import (
	"errors"
	"strings"
	"testing"

	"tranca"
)

// A level above a container's needs a kernel that differs and a process outside
// that is not the agent.
func TestJudge(t *testing.T) {
	const host = "6.1.0-18-amd64"
	gvisor := "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
	other := "Linux version 6.12.1 (kata)"
	away := seen{known: true}
	for name, c := range map[string]struct {
		inside  string
		outside seen
		want    tranca.Level
	}{
		"the host's kernel":          {"Linux version " + host + " (debian)", seen{known: true, agent: true}, tranca.LevelContainer},
		"the same, hidden":           {"Linux version " + host + " (debian)", away, tranca.LevelContainer},
		"gVisor":                     {gvisor, away, tranca.LevelGVisor},
		"tranca's gVisor":            {"Linux version 4.19.0-gvisor #1 SMP", away, tranca.LevelGVisor},
		"only says it is gVisor":     {gvisor, seen{known: true, agent: true}, tranca.LevelContainer},
		"cannot be seen":             {gvisor, seen{}, tranca.LevelContainer},
		"another kernel, no machine": {other, away, tranca.LevelContainer},
		"a virtual machine":          {other, seen{known: true, vm: true}, tranca.LevelMicroVM},
		"a machine and our kernel":   {"Linux version " + host + " (debian)", seen{known: true, vm: true}, tranca.LevelContainer},
		"nothing":                    {"", seen{}, tranca.LevelContainer},
	} {
		if got, how := judge(c.inside, host, c.outside); got != c.want || how == "" {
			t.Errorf("%s: %s (%s), want %s", name, got, how, c.want)
		}
	}
	if got, _ := judge(gvisor, "", away); got != tranca.LevelContainer {
		t.Errorf("an engine that does not say its kernel: %s", got)
	}
}

func TestARuntimeThatIsNotThere(t *testing.T) {
	b, _ := against(t, nil)
	r, err := b.ProbeRuntime(t.Context(), "nope")
	if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "it has runc") || r.Level > tranca.LevelContainer {
		t.Errorf("%+v, %v", r, err)
	}
}
