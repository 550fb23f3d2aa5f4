package main

import (
	"flag"
	"fmt"
	"regexp"

	"tranca/internal/backend/container"
)

type options struct {
	sandboxes, parallel, kills, crashes int
	seed                                uint64
	backend, image, runtime, waive      string
	crash                               string // command that kills and restarts the engine
	crashLeaves                         string // what an engine that was killed leaves itself
	supervise, outages                  bool
}

func (o *options) flags() {
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
