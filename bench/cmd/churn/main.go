// Churn makes sandboxes by the thousand, kills a third of them in mid-run and
// their supervisor with -9 again and again, and the container engine where there
// is one, and then compares the host with what it was before. Nothing may be
// left.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"

	"tranca/internal/backend/container"
)

func main() {
	var o options
	flag.IntVar(&o.sandboxes, "sandboxes", 1000, "sandboxes in all")
	flag.IntVar(&o.parallel, "parallel", 32, "sandboxes at a time")
	flag.IntVar(&o.kills, "kills", 10, "times that the supervisor is killed with -9")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of what happens when")
	flag.IntVar(&o.crashes, "crashes", 0, "times that the container engine is killed, by -crash")
	flag.StringVar(&o.crash, "crash", "", "shell command that kills the container engine with -9 and starts it again")
	flag.StringVar(&o.crashLeaves, "crash-leaves", "", "regular expression: what the engine leaves of itself where it is killed")
	flag.StringVar(&o.backend, "backend", "process", "backend: process, gvisor or container")
	flag.StringVar(&o.image, "image", "", "image for the policy; none leaves the backend's default")
	flag.StringVar(&o.runtime, "runtime", "", "runtime of the container engine")
	flag.StringVar(&o.waive, "waive", "", "items to waive, comma-separated")
	flag.BoolVar(&o.supervise, "supervise", false, "be the supervisor (used by churn itself)")
	flag.BoolVar(&o.outages, "outages", false, "the engine may be away for a while (used by churn itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.check()
	if err == nil {
		err = o.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "churn:", err)
		os.Exit(1)
	}
}

// check refuses what could prove nothing.
func (o *options) check() error {
	if (o.crashes > 0) != (o.crash != "") {
		return fmt.Errorf("-crashes and -crash go together")
	}
	if _, err := regexp.Compile(o.crashLeaves); err != nil {
		return fmt.Errorf("-crash-leaves: %w", err)
	}
	if o.crashes > 0 && o.backend != container.Name {
		return fmt.Errorf("-crashes: backend %s has no engine", o.backend)
	}
	return nil
}
