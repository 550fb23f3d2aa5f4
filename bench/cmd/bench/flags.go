package main

import (
	"flag"
	"os"
)

// flags reads the command line. plain is set where this is the plain server.
func flags() (o options, plain string) {
	flag.IntVar(&o.rounds, "n", 200, "rounds of the starts")
	flag.IntVar(&o.warm, "warm", 10, "rounds before that don't count")
	flag.IntVar(&o.idle, "idle", 50, "idle sandboxes in the rows of the server's memory")
	flag.IntVar(&o.finished, "finished", 10000, "finished runs in the row of the server's memory")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the order")
	flag.StringVar(&o.tranca, "tranca", "bin/tranca", "the command to measure")
	flag.StringVar(&o.waive, "waive", "", "items to waive, comma-separated")
	flag.StringVar(&o.json, "json", "", "file for all figures")
	flag.StringVar(&o.only, "only", "", "only these parts, comma-separated: targets, starts, image, stream, agent, server")
	flag.StringVar(&o.engine, "engine", os.Getenv("TRANCA_TEST_DOCKER"), "socket of a Docker Engine for the image rows")
	flag.StringVar(&o.image, "image", os.Getenv("TRANCA_TEST_IMAGE"), "image with python3 in that engine")
	flag.StringVar(&o.result, "result", "", "a result of `tranca bench --json` to hold against the targets")
	flag.StringVar(&plain, "plain", "", "serve a plain gibibyte at this socket (used by bench itself)")
	flag.Parse()
	return o, plain
}
