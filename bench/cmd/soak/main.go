// Soak lets random clients do random things to `tranca serve` for some time,
// while clients, sandboxes and the server itself are killed at random moments.
// Every answer is checked: what was not disturbed has to be right, what was has
// to say so in its class of error. In between the server comes to rest and is
// looked at from outside: its descriptors and its memory have to be where they
// were. At the end the host is compared with what it was before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	var o options
	flag.DurationVar(&o.time, "for", 10*time.Minute, "how long")
	flag.IntVar(&o.clients, "clients", 16, "clients at a time")
	flag.IntVar(&o.kills, "kills", 4, "times that the server is killed with -9")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of what happens when")
	flag.StringVar(&o.tranca, "tranca", "bin/tranca", "the program to try")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
