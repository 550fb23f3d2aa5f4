package local_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"tranca"
	"tranca/local"
)

func Example() {
	l, err := local.New()
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
	fmt.Fprintf(os.Stdout, "%s%s on %s\n", res.Stdout, res.Exit, res.Backend)
}

// A policy of one's own, and what the agent is told of a run.
func ExampleWithPolicy() {
	p := local.DefaultPolicy()
	p.Limits.Wall = 5 * time.Second
	p.Limits.Output.Size = 64 << 10
	l, err := local.New(local.WithPolicy(p), local.WithMaxInFlight(2))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer l.Close()
	res, err := l.RunRequest(context.Background(), tranca.Request{
		Language: "sh", Code: `echo "$1"; sleep 60`, Args: []string{"hello"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	view := res.AgentView()
	fmt.Fprintln(os.Stdout, view.Stdout, view.Ended)
}
