package weaken

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tranca"
)

func TestTable(t *testing.T) {
	last := map[string]int{}
	for _, s := range Switches() {
		at := slices.Index(tranca.Items(), s.Item)
		if before, ok := last[s.Backend]; at < 0 || ok && at <= before {
			t.Errorf("%s: it is no item, or not in its place", s.Name())
		}
		last[s.Backend] = at
		if (s.Takes == "") == (s.None == "") {
			t.Errorf("%s: it takes %q away, and nothing because %q", s.Name(), s.Takes, s.None)
		}
		if s.Layer != "" && s.Takes == "" {
			t.Errorf("%s: it stands behind %q, and nothing is taken away", s.Name(), s.Layer)
		}
		if found, ok := Find(s.Backend, s.Item); !ok || found != s {
			t.Errorf("%s is not found: %v", s.Name(), found)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("process:network,subprocess:user")
	if err != nil || len(got) != 2 || got[0].Name() != "process:network" || got[1].Name() != "subprocess:user" {
		t.Errorf("%v %v", got, err)
	}
	if got, err := parse(""); got != nil || err != nil {
		t.Errorf("nothing: %v %v", got, err)
	}
	for list, says := range map[string]string{
		"process":                   "process:network",
		"proces:network":            "there are process, subprocess, gvisor, container",
		"process:netwerk":           "it has isolation, files",
		"process:network,":          "write backend:item",
		"subprocess:isolation":      "can't be taken away",
		"subprocess:files":          "no switch for an item",
		"process:network process:x": "no switch",
	} {
		if _, err := parse(list); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestLacks(t *testing.T) {
	how := map[tranca.Item]func(int){tranca.ItemNetwork: func(int) {}, tranca.ItemWall: func(int) {}}
	report := tranca.Report{Backend: "subprocess", Level: tranca.LevelSubprocess, Guarantees: []tranca.Guarantee{
		{Item: tranca.ItemNetwork, Held: true}, {Item: tranca.ItemFiles}, {Item: tranca.ItemIPC, Held: true},
	}}
	got := strings.Join(Lacks(report, how), "\n")
	for _, want := range []string{
		"subprocess claims ipc", "subprocess:user: made by the backend: false, made by the engine: false",
		"subprocess:limits.wall: made by the backend: true, made by the engine: true",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	for _, wrong := range []string{"claims files", "subprocess:network", "limits.output", "isolation"} {
		if strings.Contains(got, wrong) {
			t.Errorf("%q is in:\n%s", wrong, got)
		}
	}
}
