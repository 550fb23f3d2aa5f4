package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/sample"
)

// row is one line of the table: a measured figure and what it is held against.
type row struct {
	Part   string  `json:"part"`
	Name   string  `json:"name"`
	Figure string  `json:"figure"`
	Value  float64 `json:"value"`
	// Target is the bound of Value; AtLeast says that it is a lower one. A
	// row without a target is a reference.
	Target  float64 `json:"target,omitempty"`
	AtLeast bool    `json:"at_least,omitempty"`
	Unit    string  `json:"unit"`
}

func (r row) met() string {
	switch {
	case r.Target == 0:
		return ""
	case r.AtLeast && r.Value >= r.Target, !r.AtLeast && r.Value <= r.Target:
		return "met"
	}
	return "MISSED"
}

func (r row) target() string {
	switch {
	case r.Target == 0:
		return ""
	case r.AtLeast:
		return fmt.Sprintf(">= %.2f %s", r.Target, r.Unit)
	}
	return fmt.Sprintf("<= %.2f %s", r.Target, r.Unit)
}

func printRows(w io.Writer, rows []row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tmeasured\tratio or size\ttarget\t")
	for _, r := range rows {
		value := ""
		if r.Unit != "" {
			value = fmt.Sprintf("%.2f %s", r.Value, r.Unit)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Figure, value, r.target(), r.met())
	}
	return tw.Flush()
}

// report is what -json writes.
type report struct {
	Time  time.Time                `json:"time"`
	Host  bench.Host               `json:"host"`
	Rows  []row                    `json:"rows"`
	Times map[string]sample.Series `json:"times_ns"`
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// beside adds a row for each of some subjects, as ratios of the p50 of one.
func (r *report) beside(part, unit string, times map[string]sample.Series, base string, targets map[string]float64, names ...string) {
	of := ms(times[base].Percentile(50))
	for _, name := range names {
		r.Times[name] = times[name]
		r.Rows = append(r.Rows, row{
			Part: part, Name: name, Figure: quantiles(times[name]),
			Value: ms(times[name].Percentile(50)) / of, Target: targets[name], Unit: unit,
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantiles says the three that are reported.
func quantiles(s sample.Series) string {
	return fmt.Sprintf("p50 %.1f  p95 %.1f  p99 %.1f ms",
		ms(s.Percentile(50)), ms(s.Percentile(95)), ms(s.Percentile(99)))
}
