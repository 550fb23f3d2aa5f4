package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"tranca/bench/sample"
)

type options struct {
	rounds, warm, callers, idle, finished int
	seed                                  uint64
	tranca, waive, json, only             string
	engine, image                         string
}

// The program that every row runs, and its only right answer.
const (
	python = "/usr/bin/python3"
	code   = "print(6*7)"
	answer = "42\n"
)

func (o *options) run(ctx context.Context) error {
	rep := &report{Host: hostFacts(), Times: map[string]sample.Series{}}
	parts := []struct {
		name    string
		measure func(context.Context, *report) error
	}{
		{"starts", o.starts},
		{"throughput", o.throughput},
		{"idle", o.idleMemory},
		{"gvisor", o.gvisor},
		{"container", o.containers},
		{"image", o.images},
		{"stream", o.stream},
		{"agent", o.agent},
		{"server", o.server},
	}
	var only []string // empty is all
	if o.only != "" {
		only = strings.Split(o.only, ",")
	}
	for _, p := range parts {
		if o.only != "" && !slices.Contains(only, p.name) {
			continue
		}
		only = slices.DeleteFunc(only, func(name string) bool { return name == p.name })
		fmt.Fprintf(os.Stderr, "bench: %s\n", p.name)
		if err := p.measure(ctx, rep); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if len(only) > 0 {
		return fmt.Errorf("-only %s: there are no such parts: %q", o.only, only)
	}
	h := rep.Host
	fmt.Printf("Linux %s, %d CPUs (%s), %s of memory, user id %d, %s\n\n",
		h.Kernel, h.CPUs, h.CPU, h.Memory, h.UserID, h.Time.Format("2006-01-02"))
	if err := printRows(os.Stdout, rep.Rows); err != nil {
		return err
	}
	if o.json != "" {
		return rep.write(o.json)
	}
	return nil
}
