package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tranca/internal/bench"
)

// target is a bound of one figure of `tranca bench`: as a multiple of the same
// figure of another subject, or as it stands.
type target struct {
	subject string
	measure bench.MeasureName
	p99     bool
	to      string // empty: Bound is in the measure's unit
	bound   float64
	atLeast bool
}

const mebi = 1 << 20

func targetList() []target {
	return []target{
		{subject: "process", measure: bench.Whole, to: "bare", bound: 1.5},
		{subject: "process", measure: bench.Whole, p99: true, to: "bare", bound: 2},
		{subject: "process", measure: bench.Throughput64, to: "bare", bound: 0.45, atLeast: true},
		{subject: "process", measure: bench.IdleMemory, bound: 3 * mebi},
		{subject: "gvisor", measure: bench.Whole, to: "runsc-do", bound: 1.2},
		{subject: "gvisor", measure: bench.IdleMemory, bound: 32 * mebi},
		{subject: "container:runc", measure: bench.Whole, to: "docker-run", bound: 1},
	}
}

// targets holds a result of `tranca bench` against what is promised of it as
// root. A subject that isn't in it has no row.
func (o *options) targets(_ context.Context, rep *report) error {
	if o.result == "" {
		return errors.New("-result names a result of `tranca bench --json`: make bench makes its own")
	}
	f, err := os.Open(o.result)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := bench.Read(f)
	if err != nil {
		return err
	}
	for _, t := range targetList() {
		if row, ok := t.row(r); ok {
			rep.Rows = append(rep.Rows, row)
		}
	}
	return nil
}

// row holds one target; ok is false where the result has no such figure.
func (t target) row(r *bench.Result) (_ row, ok bool) {
	own := figureOf(r, t.subject, t.measure, t.p99)
	if own == 0 {
		return row{}, false
	}
	meaning, _ := bench.MeaningOf(t.measure)
	out := row{
		Part: "targets", Name: t.subject + ", " + meaning.Title, Figure: meaning.Unit.Format(own),
		Value: own, Target: t.bound, AtLeast: t.atLeast, Unit: string(meaning.Unit),
	}
	if t.p99 {
		out.Name += ": p99"
	}
	if meaning.Unit == bench.Bytes {
		out.Value, out.Target, out.Unit = own/mebi, t.bound/mebi, "MiB"
	}
	if t.to != "" {
		other := figureOf(r, t.to, t.measure, t.p99)
		if other == 0 {
			return row{}, false
		}
		out.Value, out.Unit = own/other, fmt.Sprintf("x %s", t.to)
	}
	return out, true
}

// figureOf returns a median or 99th percentile; 0 where there is none.
func figureOf(r *bench.Result, subject string, name bench.MeasureName, p99 bool) float64 {
	s := r.Find(subject)
	if s == nil {
		return 0
	}
	m := s.Measure(name)
	switch {
	case m == nil:
		return 0
	case p99:
		return m.P99
	}
	return m.P50
}
