// Churn makes sandboxes by the thousand, kills a third of them in mid-run and
// their supervisor with -9 again and again, and then compares the host with
// what it was before. Nothing may be left.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var o options
	flag.IntVar(&o.sandboxes, "sandboxes", 1000, "sandboxes in all")
	flag.IntVar(&o.parallel, "parallel", 32, "sandboxes at a time")
	flag.IntVar(&o.kills, "kills", 10, "times that the supervisor is killed with -9")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of what happens when")
	flag.StringVar(&o.backend, "backend", "process", "backend")
	flag.StringVar(&o.waive, "waive", "", "items to waive, comma-separated")
	flag.BoolVar(&o.supervise, "supervise", false, "be the supervisor (used by churn itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "churn:", err)
		os.Exit(1)
	}
}
