package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tranca/internal/bench/measure"
	"tranca/internal/bench/sample"
)

type options struct {
	rounds, warm, idle, finished int
	seed                         uint64
	tranca, waive, json, only    string
	engine, image, result        string
}

// The program that every row runs, and its only right answer.
const (
	python = "/usr/bin/python3"
	code   = measure.StartCode
	answer = measure.Answer
)

func (o *options) run(ctx context.Context) error {
	rep := &report{Host: measure.Host(python), Time: time.Now().UTC().Truncate(time.Second), Times: map[string]sample.Series{}}
	parts := []struct {
		name    string
		measure func(context.Context, *report) error
	}{
		{"targets", o.targets},
		{"starts", o.starts},
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
	fmt.Printf("Linux %s, %d CPUs (%s), %d MiB of memory, user id %d, %s\n\n",
		h.Kernel, h.CPUs, h.CPU, h.Memory>>20, h.UserID, rep.Time.Format("2006-01-02"))
	if err := printRows(os.Stdout, rep.Rows); err != nil {
		return err
	}
	if o.json != "" {
		return rep.write(o.json)
	}
	return nil
}
