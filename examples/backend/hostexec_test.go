package hostexec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"example.com/hostexec"

	"tranca"
	"tranca/backendtest"
	"tranca/local"
)

// TestConformance runs tranca's own suite, with what this backend promises.
func TestConformance(t *testing.T) {
	backendtest.Run(t, func(*testing.T) tranca.Backend { return hostexec.New() }, backendtest.Expect{
		Policy: func(p *tranca.Policy) { p.Floor = tranca.LevelSubprocess },
		Lacks: []backendtest.Ability{
			backendtest.KillsTree, backendtest.EndsByMemory, backendtest.BoundsTreeMemory,
			backendtest.BoundsTreeCPU, backendtest.BoundsProcesses, backendtest.SeesProcessLimit,
			backendtest.BoundsDisk, backendtest.BoundsInodes, backendtest.CountsUsage,
			backendtest.OwnWorkdir, backendtest.ListsHuge, backendtest.RunsSeveral, backendtest.HasTerminals,
			backendtest.DialsPorts, backendtest.ResumesWrites, backendtest.MakesLinks,
		},
	})
}

// TestLocal uses the backend as a program would.
func TestLocal(t *testing.T) {
	l, err := local.New(local.WithBackend(hostexec.New()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	res, err := l.Run(t.Context(), "import os\nprint(6*7, os.path.basename(__file__))\n")
	if err != nil || string(res.Stdout) != "42 .main.py\n" || res.Backend != hostexec.Name {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestBelowTheFloor: a policy that asks for more is not run on it.
func TestBelowTheFloor(t *testing.T) {
	l, err := local.New(local.WithBackend(hostexec.New()), local.WithPolicy(local.DefaultPolicy()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var refused *tranca.RefusalError
	if _, err := l.Run(t.Context(), "print(1)"); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

func Example() {
	l, err := local.New(local.WithBackend(hostexec.New()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer l.Close()
	res, err := l.Run(context.Background(), "print(6*7)")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Printf("%s%s at level %s\n", res.Stdout, res.Exit, res.Isolation)
	// Output:
	// 42
	// exit 0 at level subprocess
}
